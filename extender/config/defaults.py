"""The profiles that are ready: what runs where nothing is configured.

kube-scheduler: pkg/scheduler/apis/config/v1/default_plugins.go
"""

from __future__ import annotations

from extender.config.types import KubeSchedulerProfile, PluginRef, Plugins, PluginSet

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
)
"""What the planner judges hypothetical states by: the in-tree filters that do not depend on volumes or claims."""


def whole_profile(scheduler_name: str = "default-scheduler") -> KubeSchedulerProfile:
    """Every in-tree plugin: simulate, evaluate, and the in-process loop."""
    return KubeSchedulerProfile(scheduler_name, Plugins(MULTI_POINT))


def behind_profile(scheduler_name: str) -> KubeSchedulerProfile:
    return KubeSchedulerProfile(scheduler_name, Plugins(BEHIND))


def planning_profile() -> KubeSchedulerProfile:
    refs = tuple(PluginRef(name) for name in ("PrioritySort", "DefaultBinder"))
    filters = tuple(PluginRef(name) for name in PLANNING_FILTERS)
    points = {
        "filter": PluginSet(enabled=filters),
        "pre_filter": PluginSet(enabled=tuple(ref for ref in filters if ref.name not in _WITHOUT_PRE_FILTER)),
    }
    return KubeSchedulerProfile("planning", Plugins(PluginSet(enabled=refs), points))


_WITHOUT_PRE_FILTER = frozenset({"NodeUnschedulable", "NodeName", "TaintToleration"})
