"""What keeps a process from starting with the profiles of a file, found before it is started: plugins that do not exist.

`serve` refuses such a file of ours, and the doctor says so, each with the field.
kube-scheduler: pkg/scheduler/framework/runtime/framework.go (NewFramework), which says it when it builds the profiles
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from extender.config.types import KubeSchedulerProfile
from extender.config.yaml_file import Document, Mistake
from extender.framework.runtime.plugin_sets import needed_plugins


def unknown_plugins(
    document: Document, profiles: Sequence[KubeSchedulerProfile], known: Collection[str]
) -> Iterator[Mistake]:
    """document: that the profiles were read from. known: the names in the registry."""
    for index, profile in enumerate(profiles):
        for name in needed_plugins(profile.plugins):
            if name not in known:
                yield Mistake(_enabled_at(document, index, name), f'plugin "{name}" does not exist')


def unused_arguments(document: Document, profiles: Sequence[KubeSchedulerProfile]) -> Iterator[Mistake]:
    """Of plugins that the profile does not enable: they are read, and left."""
    for index, profile in enumerate(profiles):
        enabled = needed_plugins(profile.plugins)
        for number, entry in enumerate(document.value["profiles"][index].get("pluginConfig") or ()):
            if entry["name"] not in enabled:
                field = f"profiles[{index}].pluginConfig[{number}].name"
                yield Mistake(field, f'the profile enables no plugin "{entry["name"]}": its arguments are not read')


def _enabled_at(document: Document, index: int, name: str) -> str:
    """The first place in the file where the profile enables the plugin."""
    plugins = f"profiles[{index}].plugins"
    for point, plugin_set in (document.value["profiles"][index].get("plugins") or {}).items():
        for number, ref in enumerate((plugin_set or {}).get("enabled") or ()):
            if ref["name"] == name:
                return f"{plugins}.{point}.enabled[{number}].name"
    return plugins
