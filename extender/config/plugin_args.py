"""The arguments of plugins, as frozen values with kube-scheduler's defaults.

Read by `read_args`, checked by `validation`, handed to a plugin's `create`.
kube-scheduler: pkg/scheduler/apis/config/types_pluginargs.go
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE, POD_GROUP_LABEL


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    name: str
    weight: int = 1


DEFAULT_RESOURCES = (ResourceSpec("cpu"), ResourceSpec("memory"))


@dataclass(frozen=True, slots=True)
class UtilizationShapePoint:
    """utilization in percent, score in 0..10."""

    utilization: int
    score: int


class ScoringStrategyType(Enum):
    LEAST_ALLOCATED = "LeastAllocated"
    MOST_ALLOCATED = "MostAllocated"
    REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"


@dataclass(frozen=True, slots=True)
class ScoringStrategy:
    type: ScoringStrategyType = ScoringStrategyType.LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    shape: tuple[UtilizationShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeResourcesFitArgs:
    ignored_resources: frozenset[str] = frozenset()
    ignored_resource_groups: frozenset[str] = frozenset()
    scoring_strategy: ScoringStrategy = ScoringStrategy()


@dataclass(frozen=True, slots=True)
class NodeResourcesBalancedAllocationArgs:
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES


@dataclass(frozen=True, slots=True)
class InterPodAffinityArgs:
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class PodTopologySpreadDefaulting(Enum):
    SYSTEM = "System"
    LIST = "List"


@dataclass(frozen=True, slots=True)
class PodTopologySpreadArgs:
    default_constraints: tuple[corev1.TopologySpreadConstraint, ...] = ()
    defaulting_type: PodTopologySpreadDefaulting = PodTopologySpreadDefaulting.SYSTEM


@dataclass(frozen=True, slots=True)
class NodeAffinityArgs:
    added_affinity: corev1.NodeAffinity | None = None


@dataclass(frozen=True, slots=True)
class DefaultPreemptionArgs:
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


@dataclass(frozen=True, slots=True)
class VolumeBindingArgs:
    bind_timeout_seconds: int = 600
    shape: tuple[UtilizationShapePoint, ...] = ()


@dataclass(frozen=True, slots=True)
class DynamicResourcesArgs:
    """filter_timeout_seconds 0: no timeout."""

    filter_timeout_seconds: float = 10.0
    binding_timeout_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class GroupSource:
    """Keys of pods that make a gang without an object: its name and its minMember, each a label or an annotation.

    role_label: where a pod's role is, if the gang names no other label. index_label: where its index in the gang is.
    """

    name: str
    group_label: str = ""
    group_annotation: str = ""
    min_member_label: str = ""
    min_member_annotation: str = ""
    role_label: str = ""
    index_label: str = ""


@dataclass(frozen=True, slots=True)
class CoschedulingArgs:
    """Times in seconds; podGroupRejectPercentage in percent of minMember; schedulingGate is the one that is ours to take off.

    in_tree_pod_groups: groups of kube-scheduler's own API (scheduling.k8s.io) count too, by spec.schedulingGroup.
    group_sources: keys of pods that make gangs without an object, in order, after PodGroups.
    members_to_come_seconds: how long room is kept for members that a job makes in a later phase; 0: a gang waits for all its members.
    in_part_after_seconds: how long after its newest member came an incomplete gang is taken for one that comes in phases; 0: never.
    early_start: members are held while their gang is still being made, if all of it has room: for so long without a new member, for so
    long in all, and for so much of the room that there is for such members.
    """

    permit_waiting_time_seconds: int = 60
    denied_pg_expiration_time_seconds: int = 3
    pod_group_backoff_seconds: int = 0
    pod_group_reject_percentage: int = 10
    pod_group_labels: tuple[str, ...] = (POD_GROUP_LABEL,)
    scheduling_gate: str = GANG_GATE
    in_tree_pod_groups: bool = False
    group_sources: tuple[GroupSource, ...] = ()
    members_to_come_seconds: int = 600
    in_part_after_seconds: int = 0
    early_start: bool = True
    early_start_silence_seconds: int = 1
    early_start_max_seconds: int = 10
    early_start_percentage_of_room: int = 50


PluginArgs = (
    NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | InterPodAffinityArgs
    | PodTopologySpreadArgs
    | NodeAffinityArgs
    | DefaultPreemptionArgs
    | VolumeBindingArgs
    | DynamicResourcesArgs
    | CoschedulingArgs
)
