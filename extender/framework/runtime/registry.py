"""Names to factories: which plugins exist. Only those that a profile enables are built.

kube-scheduler: pkg/scheduler/framework/runtime/registry.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from extender.framework.handle import Handle
from extender.framework.interface import Plugin

PluginFactory = Callable[[Any, Handle], Plugin]
"""(arguments or None, handle) -> plugin."""


class RegistryError(ValueError):
    """A name that is registered twice, or one that is enabled and not registered."""


class Registry(dict[str, PluginFactory]):
    """Name -> factory."""

    def register(self, name: str, factory: PluginFactory) -> None:
        if name in self:
            raise RegistryError(f"a plugin named {name} already exists")
        self[name] = factory

    def merge(self, others: Mapping[str, PluginFactory]) -> None:
        """Adds out-of-tree plugins. Raises RegistryError for a name that is taken."""
        for name, factory in others.items():
            self.register(name, factory)
