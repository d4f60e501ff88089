"""The profiles that are ready, what a file's plugins are merged into, and the default arguments.

kube-scheduler: pkg/scheduler/apis/config/v1/default_plugins.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from extender.config.plugin_args import (
    CoschedulingArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)
from extender.config.types import (
    EXTENSION_POINTS,
    ExtenderConfig,
    ExtenderConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    Plugins,
    PluginSet,
)

MULTI_POINT = PluginSet(
    enabled=(
        PluginRef("SchedulingGates"),
        PluginRef("PrioritySort"),
        PluginRef("NodeUnschedulable"),
        PluginRef("NodeName"),
        PluginRef("TaintToleration", 3),
        PluginRef("NodeAffinity", 2),
        PluginRef("NodePorts"),
        PluginRef("NodeResourcesFit", 1),
        PluginRef("VolumeRestrictions"),
        PluginRef("NodeVolumeLimits"),
        PluginRef("VolumeBinding"),
        PluginRef("VolumeZone"),
        PluginRef("PodTopologySpread", 2),
        PluginRef("InterPodAffinity", 2),
        PluginRef("DynamicResources", 2),
        PluginRef("DefaultPreemption"),
        PluginRef("NodeResourcesBalancedAllocation", 1),
        PluginRef("ImageLocality", 1),
        PluginRef("DefaultBinder"),
        PluginRef("NodeDeclaredFeatures"),
    )
)
"""kube-scheduler 1.36's own, in its order and with its weights."""

BEHIND = PluginSet(enabled=(PluginRef("PrioritySort"), PluginRef("Coscheduling"), PluginRef("DefaultBinder")))
"""Behind kube-scheduler, whose in-tree filters have already run for the pod."""

PLANNING_FILTERS = (
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeDeclaredFeatures",
)
"""What the planner judges hypothetical states by: the in-tree filters that do not depend on volumes or claims."""

VOLUME_FILTERS = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
"""What it judges members with volumes by besides, where volumes are known."""


_DEFAULT_ARGS: dict[str, PluginArgs] = {
    "Coscheduling": CoschedulingArgs(),
    "DefaultPreemption": DefaultPreemptionArgs(),
    "DynamicResources": DynamicResourcesArgs(),
    "InterPodAffinity": InterPodAffinityArgs(),
    "NodeAffinity": NodeAffinityArgs(),
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs(),
    "NodeResourcesFit": NodeResourcesFitArgs(),
    "PodTopologySpread": PodTopologySpreadArgs(),
    "VolumeBinding": VolumeBindingArgs(),
}


def default_args(plugin: str) -> PluginArgs | None:
    """None for a plugin without arguments."""
    return _DEFAULT_ARGS.get(plugin)


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """What a file says on top of the defaults, list by list. Go: mergePlugins."""
    points = {point: merge_plugin_set(default.at(point), custom.at(point)) for point in EXTENSION_POINTS}
    return Plugins(
        merge_plugin_set(default.multi_point, custom.multi_point),
        {point: merged for point, merged in points.items() if merged != PluginSet()},
    )


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """A default that the file disables goes, one that it enables anew keeps its place; the others come after.

    Disabled "*" drops all defaults. Plugins that the file enables twice stay so, for the runtime to refuse.
    """
    disabled = (*custom.disabled, *default.disabled)
    gone = {ref.name for ref in disabled}
    last = {ref.name: index for index, ref in enumerate(custom.enabled)}
    enabled: list[PluginRef] = []
    replaced: set[int] = set()
    for ref in default.enabled if "*" not in gone else ():
        if ref.name in gone:
            continue
        if ref.name in last:
            replaced.add(last[ref.name])
            ref = custom.enabled[last[ref.name]]
        enabled.append(ref)
    enabled += [ref for index, ref in enumerate(custom.enabled) if index not in replaced]
    return PluginSet(tuple(enabled), tuple(PluginRef(ref.name) for ref in disabled))


def ignored_by_scheduler(
    profiles: Sequence[KubeSchedulerProfile], extenders: Sequence[ExtenderConfig]
) -> tuple[KubeSchedulerProfile, ...]:
    """Resources that an extender takes upon itself are not NodeResourcesFit's in any profile. Go: buildExtenders."""
    ignored = frozenset().union(*(extender.ignored_by_scheduler for extender in extenders))
    if not ignored:
        return tuple(profiles)
    changed = []
    for profile in profiles:
        args = profile.plugin_config.get("NodeResourcesFit")
        if isinstance(args, NodeResourcesFitArgs):
            config = {**profile.plugin_config, "NodeResourcesFit": replace(args, ignored_resources=ignored)}
            profile = replace(profile, plugin_config=config)
        changed.append(profile)
    return tuple(changed)


def whole_profile(
    scheduler_name: str = "default-scheduler", *, coscheduling: CoschedulingArgs | None = None
) -> KubeSchedulerProfile:
    """Every in-tree plugin: simulate, evaluate, demo, and the in-process loop. coscheduling: with gangs, after all others."""
    if coscheduling is None:
        return KubeSchedulerProfile(scheduler_name, Plugins(MULTI_POINT))
    multi_point = PluginSet((*MULTI_POINT.enabled, PluginRef("Coscheduling")))
    return KubeSchedulerProfile(scheduler_name, Plugins(multi_point), {"Coscheduling": coscheduling})


def behind_profile(scheduler_name: str) -> KubeSchedulerProfile:
    return KubeSchedulerProfile(scheduler_name, Plugins(BEHIND))


def served_profiles(configuration: ExtenderConfiguration) -> Sequence[KubeSchedulerProfile]:
    """Where the file has none: one for each scheduler that is served."""
    names = configuration.scheduler_names or (KubeSchedulerProfile().scheduler_name,)
    return configuration.profiles or tuple(map(behind_profile, names))


def planning_profile(*, volumes: bool = False) -> KubeSchedulerProfile:
    """volumes: for members that have some."""
    refs = tuple(PluginRef(name) for name in ("PrioritySort", "DefaultBinder"))
    filters = tuple(PluginRef(name) for name in (*PLANNING_FILTERS, *(VOLUME_FILTERS if volumes else ())))
    points = {
        "filter": PluginSet(enabled=filters),
        "pre_filter": PluginSet(enabled=tuple(ref for ref in filters if ref.name not in _WITHOUT_PRE_FILTER)),
    }
    return KubeSchedulerProfile("planning", Plugins(PluginSet(enabled=refs), points))


_WITHOUT_PRE_FILTER = frozenset({"NodeUnschedulable", "NodeName", "TaintToleration"})
