"""What a profile's plugins read beside pods and nodes, so that a scheduler watches that and no more.

A plugin says it in an attribute `watches`. kube-scheduler: pkg/scheduler/eventhandlers.go (addAllEventHandlers)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extender.client.interface import ResourceType
from extender.framework.interface import Plugin


def watched_resources(plugins: Iterable[Plugin]) -> tuple[ResourceType[Any], ...]:
    """Each kind once, in the order in which the plugins name them."""
    kinds: dict[ResourceType[Any], None] = {}
    for plugin in plugins:
        watches: tuple[ResourceType[Any], ...] = getattr(plugin, "watches", ())
        kinds.update(dict.fromkeys(watches))
    return tuple(kinds)
