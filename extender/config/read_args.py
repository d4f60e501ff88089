"""`pluginConfig[].args` of each plugin that has arguments: read, defaulted and checked as kube-scheduler does.

kube-scheduler: pkg/scheduler/apis/config/v1/defaults.go, pkg/scheduler/apis/config/validation/validation_pluginargs.go
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from extender.api import corev1
from extender.config.durations import go_duration
from extender.config.group_sources import read_group_sources
from extender.config.plugin_args import (
    DEFAULT_RESOURCES,
    CoschedulingArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    PodTopologySpreadDefaulting,
    ResourceSpec,
    ScoringStrategy,
    ScoringStrategyType,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from extender.config.read_objects import read_node_affinity, read_topology_spread_constraint
from extender.config.section import MAX_INT64, Section
from extender.config.validation import qualified_name, utilization_shape


def _default_preemption(args: Section) -> DefaultPreemptionArgs:
    percentage = args.integer("minCandidateNodesPercentage", 10, low=0, high=100)
    absolute = args.integer("minCandidateNodesAbsolute", 100, why="not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        args.invalid("minCandidateNodesPercentage", 0, "cannot be zero at the same time as minCandidateNodesAbsolute")
        args.invalid("minCandidateNodesAbsolute", 0, "cannot be zero at the same time as minCandidateNodesPercentage")
    return DefaultPreemptionArgs(percentage, absolute)


def _inter_pod_affinity(args: Section) -> InterPodAffinityArgs:
    return InterPodAffinityArgs(
        args.integer("hardPodAffinityWeight", 1, low=0, high=100), args.flag("ignorePreferredTermsOfExistingPods")
    )


def _resources(args: Section) -> tuple[ResourceSpec, ...]:
    found = []
    for entry in args.sections("resources"):
        name = entry.text("name")
        why = f"resource weight of {name} not in valid range (0, 100]"
        found.append(ResourceSpec(name, entry.integer("weight", 1, high=100, why=why) or 1))
        entry.finish()
    return tuple(found) or DEFAULT_RESOURCES


def _shape(args: Section, key: str) -> tuple[UtilizationShapePoint, ...]:
    found = []
    for entry in args.sections(key):
        low = -MAX_INT64  # the range is the shape's own check
        found.append(
            UtilizationShapePoint(entry.integer("utilization", 0, low=low), entry.integer("score", 0, low=low))
        )
        entry.finish()
    return tuple(found)


def _scoring_strategy(strategy: Section) -> ScoringStrategy:
    options = [option.value for option in ScoringStrategyType]
    type_ = strategy.choice("type", options, "")
    resources = _resources(strategy)
    shape: tuple[UtilizationShapePoint, ...] = ()
    if type_ != ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO.value:
        if strategy.plain("requestedToCapacityRatio") is not None:
            strategy.wrong(
                "requestedToCapacityRatio", "Forbidden: must be nil when type is not RequestedToCapacityRatio"
            )
    elif "requestedToCapacityRatio" not in strategy:
        strategy.required("requestedToCapacityRatio", "must be specified when type is RequestedToCapacityRatio")
    else:
        ratio = strategy.section("requestedToCapacityRatio")
        shape = _shape(ratio, "shape")
        for below, text in utilization_shape(shape):
            ratio.wrong(f"shape{below}", text)
        ratio.finish()
    strategy.finish()
    return ScoringStrategy(ScoringStrategyType(type_ or options[0]), resources, shape)


def _node_resources_fit(args: Section) -> NodeResourcesFitArgs:
    ignored = args.texts("ignoredResources")
    groups = args.texts("ignoredResourceGroups")
    for index, name in enumerate(ignored):
        if wrong := qualified_name(name):
            args.invalid(f"ignoredResources[{index}]", name, wrong)
    for index, group in enumerate(groups):
        if "/" in group:
            args.invalid(f"ignoredResourceGroups[{index}]", group, "resource group name can't contain '/'")
        if wrong := qualified_name(group):
            args.invalid(f"ignoredResourceGroups[{index}]", group, wrong)
    strategy = _scoring_strategy(args.section("scoringStrategy")) if "scoringStrategy" in args else ScoringStrategy()
    return NodeResourcesFitArgs(frozenset(ignored), frozenset(groups), strategy)


def _balanced_allocation(args: Section) -> NodeResourcesBalancedAllocationArgs:
    resources = _resources(args)
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        if resource.name in seen:
            args.wrong(f"resources[{index}].name", f'Duplicate value: "{resource.name}"')
        seen.add(resource.name)
        if resource.weight != 1:
            args.invalid(f"resources[{index}].weight", resource.weight, "must be 1")
    return NodeResourcesBalancedAllocationArgs(resources)


def _pod_topology_spread(args: Section) -> PodTopologySpreadArgs:
    options = [option.value for option in PodTopologySpreadDefaulting]
    mistakes = len(args.mistakes)
    type_ = args.choice("defaultingType", options, PodTopologySpreadDefaulting.SYSTEM.value)
    known = len(args.mistakes) == mistakes
    constraints: list[corev1.TopologySpreadConstraint] = []
    for index, entry in enumerate(args.sections("defaultConstraints")):
        constraint = read_topology_spread_constraint(entry)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in [(other.topology_key, other.when_unsatisfiable) for other in constraints]:
            args.wrong(f"defaultConstraints[{index}]", f'Duplicate value: "{{{pair[0]}, {pair[1]}}}"')
        constraints.append(constraint)
    if constraints and known and type_ == PodTopologySpreadDefaulting.SYSTEM.value:
        args.invalid("defaultingType", type_, "when .defaultConstraints are not empty")
    return PodTopologySpreadArgs(tuple(constraints), PodTopologySpreadDefaulting(type_))


def _node_affinity(args: Section) -> NodeAffinityArgs:
    return NodeAffinityArgs(read_node_affinity(args.section("addedAffinity")) if "addedAffinity" in args else None)


def _volume_binding(args: Section) -> VolumeBindingArgs:
    if args.plain("shape") is not None:
        why = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        args.invalid("shape", args.plain("shape"), why)
    why = "invalid BindTimeoutSeconds, should not be a negative value"
    return VolumeBindingArgs(args.integer("bindTimeoutSeconds", 600, high=MAX_INT64, why=why))


def _dynamic_resources(args: Section) -> DynamicResourcesArgs:
    filter_timeout = args.duration("filterTimeout", 10.0)
    binding_timeout = args.duration("bindingTimeout", 600.0)
    if filter_timeout < 0:
        args.invalid("filterTimeout", go_duration(filter_timeout), "must be zero or positive")
    if binding_timeout < 1:
        args.invalid("bindingTimeout", go_duration(binding_timeout), "must be at least 1 second")
    return DynamicResourcesArgs(filter_timeout, binding_timeout)


def _coscheduling(args: Section) -> CoschedulingArgs:
    default = CoschedulingArgs()
    labels = args.texts("podGroupLabels") if "podGroupLabels" in args else default.pod_group_labels
    if not labels:
        args.required("podGroupLabels", "at least one label")
    for index, label in enumerate(labels):
        if wrong := qualified_name(label):
            args.invalid(f"podGroupLabels[{index}]", label, wrong)
    gate = args.text("schedulingGate", default.scheduling_gate)
    if wrong := qualified_name(gate):
        args.invalid("schedulingGate", gate, wrong)
    return CoschedulingArgs(
        args.integer("permitWaitingTimeSeconds", default.permit_waiting_time_seconds, high=900),
        args.integer("deniedPGExpirationTimeSeconds", default.denied_pg_expiration_time_seconds, low=1, high=3600),
        args.integer("podGroupBackoffSeconds", default.pod_group_backoff_seconds, high=3600),
        args.integer("podGroupRejectPercentage", default.pod_group_reject_percentage, high=100),
        labels,
        gate,
        args.flag("inTreePodGroups", default.in_tree_pod_groups),
        read_group_sources(args, labels),
        args.integer("membersToComeSeconds", default.members_to_come_seconds, high=86400),
        args.integer("inPartAfterSeconds", default.in_part_after_seconds, high=86400),
        args.flag("earlyStart", default.early_start),
        args.integer("earlyStartSilenceSeconds", default.early_start_silence_seconds, low=1, high=60),
        args.integer("earlyStartMaxSeconds", default.early_start_max_seconds, low=1, high=300),
        args.integer("earlyStartPercentageOfRoom", default.early_start_percentage_of_room, low=1, high=100),
    )


ARGS: Mapping[str, Callable[[Section], PluginArgs]] = {
    "Coscheduling": _coscheduling,
    "DefaultPreemption": _default_preemption,
    "DynamicResources": _dynamic_resources,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _node_resources_fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
}
"""Plugin -> what reads its arguments."""


def read_args(name: str, args: Section, api_version: str) -> PluginArgs | Mapping[str, Any]:
    """A plugin that we do not know the arguments of gets them as they stand.

    apiVersion and kind may be left out; where they stand they must be those of the plugin.
    """
    reader = ARGS.get(name)
    if reader is None:
        return {key: args.plain(key) for key in list(args)}
    for key, wanted in (("apiVersion", api_version), ("kind", f"{name}Args")):
        found = args.text(key, wanted)
        if found != wanted:
            args.invalid(key, found, f"args for plugin {name} are of {wanted}")
    value = reader(args)
    args.finish()
    return value
