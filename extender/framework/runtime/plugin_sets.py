"""Which plugin runs where: MultiPoint expansion, overrides, weights.

kube-scheduler: pkg/scheduler/framework/runtime/framework.go (expandMultiPointPlugins, getScoreWeights)
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.config.types import EXTENSION_POINTS, PluginRef, Plugins, PluginSet
from extender.framework.interface import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)

INTERFACES: Mapping[str, type[Plugin]] = {
    "pre_enqueue": PreEnqueuePlugin,
    "queue_sort": QueueSortPlugin,
    "pre_filter": PreFilterPlugin,
    "filter": FilterPlugin,
    "post_filter": PostFilterPlugin,
    "pre_score": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "pre_bind": PreBindPlugin,
    "bind": BindPlugin,
    "post_bind": PostBindPlugin,
}

GO_NAMES = {
    "pre_enqueue": "PreEnqueue",
    "queue_sort": "QueueSort",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "reserve": "Reserve",
    "permit": "Permit",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
}


class PluginSetError(ValueError):
    """A profile that no framework can be built of."""


def needed_plugins(plugins: Plugins) -> list[str]:
    """Every name in some enabled list, in order of appearance."""
    names: dict[str, None] = {}
    for plugin_set in (plugins.multi_point, *plugins.points.values()):
        names.update(dict.fromkeys(ref.name for ref in plugin_set.enabled))
    return list(names)


def expand(plugins: Plugins, built: Mapping[str, Plugin]) -> dict[str, list[Plugin]]:
    """Extension point -> plugins in the order in which they run.

    First those that a point names itself and that override MultiPoint, then MultiPoint's, then the point's others.
    """
    multi_point = plugins.multi_point.enabled
    _refuse_twice(multi_point, "MultiPoint")
    expanded = {}
    for point in EXTENSION_POINTS:
        plugin_set = plugins.at(point)
        _refuse_twice(plugin_set.enabled, GO_NAMES[point])
        for ref in plugin_set.enabled:
            if not isinstance(built[ref.name], INTERFACES[point]):
                raise PluginSetError(f"plugin {ref.name} does not extend {GO_NAMES[point]} plugin")
        expanded[point] = [built[name] for name in _order(point, plugin_set, multi_point, built)]
    return expanded


def _order(
    point: str, plugin_set: PluginSet, multi_point: tuple[PluginRef, ...], built: Mapping[str, Plugin]
) -> list[str]:
    specific = [ref.name for ref in plugin_set.enabled]
    disabled = {ref.name for ref in plugin_set.disabled}
    if "*" in disabled:
        return specific
    everywhere = [ref.name for ref in multi_point]
    overriding = [name for name in specific if name in everywhere]
    inherited = [
        name
        for name in everywhere
        if name not in overriding and name not in disabled and isinstance(built[name], INTERFACES[point])
    ]
    return [*overriding, *inherited, *(name for name in specific if name not in overriding)]


def _refuse_twice(refs: tuple[PluginRef, ...], where: str) -> None:
    seen: set[str] = set()
    for ref in refs:
        if ref.name in seen:
            raise PluginSetError(f"plugin {ref.name} already registered as {where}")
        seen.add(ref.name)


def score_weights(plugins: Plugins, scoring: list[Plugin]) -> dict[str, int]:
    """The Score list's weight, else MultiPoint's; unset is 1."""
    weights: dict[str, int] = {}
    for ref in (*plugins.at("score").enabled, *plugins.multi_point.enabled):
        if ref.name not in weights:
            weights[ref.name] = ref.weight or 1
    return {plugin.name: weights.get(plugin.name, 1) for plugin in scoring}


def check(expanded: Mapping[str, list[Plugin]], profile: str) -> None:
    """Exactly one QueueSort, at least one Bind. Raises PluginSetError."""
    if len(expanded["queue_sort"]) != 1:
        names = ", ".join(plugin.name for plugin in expanded["queue_sort"])
        raise PluginSetError(
            f"profile {profile}: "
            + (
                f"only one queue sort plugin can be enabled, got {names}"
                if names
                else "no queue sort plugin is enabled"
            )
        )
    if not expanded["bind"]:
        raise PluginSetError(f"profile {profile}: at least one bind plugin is needed")
