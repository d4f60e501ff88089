"""What keeps a process from starting with the profiles of a file, found before it is started: plugins that do not exist, and points
that need a plugin and have none.

`serve` refuses such a file of ours, and the doctor says so, each with the field.
kube-scheduler: pkg/scheduler/framework/runtime/framework.go (NewFramework), which says it when it builds the profiles
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from extender.config.read_profile import camel
from extender.config.types import KubeSchedulerProfile, Plugins
from extender.config.yaml_file import Document, Mistake
from extender.framework.runtime.plugin_sets import needed_plugins
from extender.plugins import names
from extender.plugins.registry import new_in_tree_registry

ONLY_ONE = 'only one queue sort plugin required for profile with scheduler name "{}", but got 0'
AT_LEAST_ONE = 'at least one bind plugin is needed for profile with scheduler name "{}"'
NEEDED: Mapping[str, tuple[str, str]] = {
    "queue_sort": (names.PRIORITY_SORT, ONLY_ONE),
    "bind": (names.DEFAULT_BINDER, AT_LEAST_ONE),
}
"""Points that have to have a plugin: the only one in the tree that has the point, and what is said where there is none."""
OF_OURS = frozenset(new_in_tree_registry())
OF_KUBE_SCHEDULER = OF_OURS - {names.COSCHEDULING}  # that of scheduler-plugins sorts the queue


def unknown_plugins(
    document: Document, profiles: Sequence[KubeSchedulerProfile], known: Collection[str]
) -> Iterator[Mistake]:
    """document: that the profiles were read from. known: the names in the registry."""
    for index, profile in enumerate(profiles):
        for name in needed_plugins(profile.plugins):
            if name not in known:
                yield Mistake(_enabled_at(document, index, name), f'plugin "{name}" does not exist')


def empty_points(
    document: Document, profiles: Sequence[KubeSchedulerProfile], in_tree: Collection[str]
) -> Iterator[Mistake]:
    """in_tree: plugins of which the points are known. Any other may have the point that is missing: nothing is said then."""
    for index, profile in enumerate(profiles):
        for point, (only, message) in NEEDED.items():
            if all(name in in_tree and name != only for name in _offered(profile.plugins, point)):
                yield Mistake(_point_at(document, index, point), message.format(profile.scheduler_name))


def _offered(plugins: Plugins, point: str) -> Iterator[str]:
    """What is enabled there, and at MultiPoint unless it is disabled there."""
    own = plugins.at(point)
    yield from (ref.name for ref in own.enabled)
    disabled = {ref.name for ref in own.disabled}
    if "*" not in disabled:
        yield from (ref.name for ref in plugins.multi_point.enabled if ref.name not in disabled)


def _point_at(document: Document, index: int, point: str) -> str:
    plugins = f"profiles[{index}].plugins"
    own = f"{plugins}.{camel(point)}"
    return own if own in document.lines else f"{plugins}.multiPoint"


def unused_arguments(document: Document, profiles: Sequence[KubeSchedulerProfile]) -> Iterator[Mistake]:
    """Of plugins that the profile does not enable: they are read, and left."""
    for index, profile in enumerate(profiles):
        enabled = needed_plugins(profile.plugins)
        for number, entry in enumerate(_entry(document, index).get("pluginConfig") or ()):
            if entry["name"] not in enabled:
                field = f"profiles[{index}].pluginConfig[{number}].name"
                yield Mistake(field, f'the profile enables no plugin "{entry["name"]}": its arguments are not read')


def _enabled_at(document: Document, index: int, name: str) -> str:
    """The first place in the file where the profile enables the plugin."""
    plugins = f"profiles[{index}].plugins"
    for point, plugin_set in (_entry(document, index).get("plugins") or {}).items():
        for number, ref in enumerate((plugin_set or {}).get("enabled") or ()):
            if ref["name"] == name:
                return f"{plugins}.{point}.enabled[{number}].name"
    return plugins


def _entry(document: Document, index: int) -> dict[str, Any]:
    """A profile as it stands in the file; a null is an empty one."""
    entry: dict[str, Any] = document.value["profiles"][index] or {}
    return entry
