"""Which plugin runs where: MultiPoint expansion, overrides, weights.

kube-scheduler: pkg/scheduler/framework/runtime/framework.go (expandMultiPointPlugins, getScoreWeights)
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.config.types import EXTENSION_POINTS, Plugins, PluginSet
from extender.framework.interface import (
    MAX_NODE_SCORE,
    MAX_TOTAL_SCORE,
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
    Raises PluginSetError for a plugin that stands twice or does not have the point that names it.
    """
    expanded = {}
    for point in EXTENSION_POINTS:
        plugin_set = plugins.at(point)
        specific = _specific(point, plugin_set, built)
        inherited = _inherited(point, plugin_set, plugins.multi_point, specific, built)
        everywhere = {ref.name for ref in plugins.multi_point.enabled} if not _all_disabled(plugin_set) else set()
        overriding = [name for name in specific if name in everywhere and not _disabled(plugin_set, name)]
        others = [name for name in specific if name not in overriding]
        expanded[point] = [built[name] for name in (*overriding, *inherited, *others)]
    return expanded


def _specific(point: str, plugin_set: PluginSet, built: Mapping[str, Plugin]) -> list[str]:
    """What the point itself names."""
    names: list[str] = []
    for ref in plugin_set.enabled:
        if not isinstance(built[ref.name], INTERFACES[point]):
            raise PluginSetError(f'plugin "{ref.name}" does not extend {GO_NAMES[point]}Plugin plugin')
        if ref.name in names:
            raise PluginSetError(f'plugin "{ref.name}" already registered as "{GO_NAMES[point]}Plugin"')
        names.append(ref.name)
    return names


def _inherited(
    point: str, plugin_set: PluginSet, multi_point: PluginSet, specific: list[str], built: Mapping[str, Plugin]
) -> list[str]:
    """What comes to the point from MultiPoint and is not named by the point itself."""
    if _all_disabled(plugin_set):
        return []
    names: list[str] = []
    for ref in multi_point.enabled:
        if not isinstance(built[ref.name], INTERFACES[point]) or _disabled(plugin_set, ref.name):
            continue
        if ref.name in specific:
            continue
        if ref.name in names:
            raise PluginSetError(f'plugin "{ref.name}" already registered as "{GO_NAMES[point]}Plugin"')
        names.append(ref.name)
    return names


def _disabled(plugin_set: PluginSet, name: str) -> bool:
    return any(ref.name == name for ref in plugin_set.disabled)


def _all_disabled(plugin_set: PluginSet) -> bool:
    return _disabled(plugin_set, "*")


def score_weights(plugins: Plugins, built: Mapping[str, Plugin]) -> dict[str, int]:
    """Of each Score plugin: the Score list's weight, else MultiPoint's; unset is 1. Go: getValidScoreWeights."""
    weights: dict[str, int] = {}
    for ref in (*plugins.at("score").enabled, *plugins.multi_point.enabled):
        if isinstance(built[ref.name], ScorePlugin) and ref.name not in weights:
            weights[ref.name] = ref.weight or 1
    if sum(weights.values()) * MAX_NODE_SCORE > MAX_TOTAL_SCORE:
        raise PluginSetError("score plugins: total score of Score plugins could overflow")
    return weights


def check(expanded: Mapping[str, list[Plugin]], profile: str) -> None:
    """Exactly one QueueSort, at least one Bind. Raises PluginSetError."""
    count = len(expanded["queue_sort"])
    if count != 1:
        raise PluginSetError(
            f'only one queue sort plugin required for profile with scheduler name "{profile}", but got {count}'
        )
    if not expanded["bind"]:
        raise PluginSetError(f'at least one bind plugin is needed for profile with scheduler name "{profile}"')
