"""What can happen in the cluster that may make a refused pod schedulable.

Plugins register such events; event handlers name what happened in the same words; the queue brings the two together.
kube-scheduler: k8s.io/kube-scheduler/framework/types.go (ActionType), pkg/scheduler/framework/events.go
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntFlag

from extender.api import corev1
from extender.framework.interface import ClusterEvent
from extender.framework.pod_requests import pod_requests


class ActionType(IntFlag):
    ADD = 1
    DELETE = 1 << 1
    UPDATE_NODE_ALLOCATABLE = 1 << 2
    UPDATE_NODE_LABEL = 1 << 3
    UPDATE_NODE_TAINT = 1 << 4
    UPDATE_NODE_CONDITION = 1 << 5
    UPDATE_NODE_ANNOTATION = 1 << 6
    UPDATE_POD_LABEL = 1 << 7
    UPDATE_POD_SCALE_DOWN = 1 << 8
    UPDATE_POD_TOLERATION = 1 << 9
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 1 << 10
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 1 << 11
    UPDATE_POD_OTHER = 1 << 12
    UPDATE_NODE_DECLARED_FEATURE = 1 << 13
    ALL = (1 << 14) - 1
    UPDATE = ALL & ~(ADD | DELETE)


POD = "Pod"  # any pod
ASSIGNED_POD = "AssignedPod"  # one with a node
UNSCHEDULABLE_POD = "UnschedulablePod"  # one without
NODE = "Node"
PERSISTENT_VOLUME = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
STORAGE_CLASS = "storage.k8s.io/StorageClass"
CSI_NODE = "storage.k8s.io/CSINode"
CSI_DRIVER = "storage.k8s.io/CSIDriver"
CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
POD_GROUP = "podgroups.v1alpha1.scheduling.x-k8s.io"
WILDCARD = "*"

ALL_RESOURCES = (
    POD,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
    RESOURCE_CLAIM,
    POD_GROUP,
)
"""What a plugin that registers nothing is woken by. Go: unrollWildCardResource."""

ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, ActionType.ADD, "AssignedPodAdd")
ASSIGNED_POD_UPDATE = ClusterEvent(ASSIGNED_POD, ActionType.UPDATE, "AssignedPodUpdate")
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, ActionType.DELETE, "AssignedPodDelete")
UNSCHEDULED_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, ActionType.ADD, "UnschedulablePodAdd")
UNSCHEDULED_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE, "UnschedulablePodUpdate")
UNSCHEDULED_POD_DELETE = ClusterEvent(UNSCHEDULABLE_POD, ActionType.DELETE, "UnschedulablePodDelete")
NODE_ADD = ClusterEvent(NODE, ActionType.ADD, "NodeAdd")
NODE_DELETE = ClusterEvent(NODE, ActionType.DELETE, "NodeDelete")
UNSCHEDULABLE_TIMEOUT = ClusterEvent(WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(WILDCARD, ActionType.ALL, "ForceActivate")

SCHEDULE_ATTEMPT_FAILURE = "ScheduleAttemptFailure"
BACKOFF_COMPLETE = "BackoffComplete"
POP_FROM_BACKOFF = "PopFromBackoffQ"


def is_wildcard(event: ClusterEvent) -> bool:
    return event.resource == WILDCARD and event.action == ActionType.ALL


def matches(registered: ClusterEvent, incoming: ClusterEvent) -> bool:
    """Whether a plugin that registered the first is to hear of the second. Go: MatchClusterEvents."""
    if is_wildcard(registered):
        return True
    same = registered.resource in (WILDCARD, incoming.resource) or (
        registered.resource == POD and incoming.resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)
    )
    return same and bool(registered.action & incoming.action) and incoming.action <= registered.action


def pod_scheduling_properties_change(old: corev1.Pod, new: corev1.Pod) -> Sequence[ClusterEvent]:
    """One event for each thing that changed and may matter; UPDATE_POD_OTHER where none did.

    Generated resource claims are not modelled, so their change is not seen. Go: PodSchedulingPropertiesChange.
    """
    resource = ASSIGNED_POD if new.node_name else UNSCHEDULABLE_POD
    events = []
    if old.labels != new.labels:
        events.append(ClusterEvent(resource, ActionType.UPDATE_POD_LABEL, "PodUpdateLabel"))
    if scaled_down(old, new):
        events.append(ClusterEvent(resource, ActionType.UPDATE_POD_SCALE_DOWN, "PodUpdateScaleDown"))
    if old.gated and not new.gated:
        gates = ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        events.append(ClusterEvent(resource, gates, "PodUpdateSchedulingGatesEliminated"))
    if len(old.spec.tolerations) != len(new.spec.tolerations):  # they can only be added
        events.append(ClusterEvent(resource, ActionType.UPDATE_POD_TOLERATION, "PodUpdateToleration"))
    return events or [ClusterEvent(resource, ActionType.UPDATE_POD_OTHER, "PodUpdateOther")]


def scaled_down(old: corev1.Pod, new: corev1.Pod) -> bool:
    """Whether it asks for less of anything than before, as after a resize in place."""
    if old.spec is new.spec and old.status is new.status:
        return False
    now = pod_requests(new, use_status=True)
    before = pod_requests(old, use_status=True)
    return any(name not in now or amount > now[name] for name, amount in before.items())


def node_scheduling_properties_change(old: corev1.Node, new: corev1.Node) -> Sequence[ClusterEvent]:
    """One event for each thing that changed and may matter; none for a heartbeat. Go: NodeSchedulingPropertiesChange."""
    events = []
    if (old.spec.unschedulable and not new.spec.unschedulable) or old.spec.taints != new.spec.taints:
        events.append(ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT, "NodeTaintChange"))
    if old.status.allocatable != new.status.allocatable:
        events.append(ClusterEvent(NODE, ActionType.UPDATE_NODE_ALLOCATABLE, "NodeAllocatableChange"))
    if old.labels != new.labels:
        events.append(ClusterEvent(NODE, ActionType.UPDATE_NODE_LABEL, "NodeLabelChange"))
    if _statuses(old) != _statuses(new):
        events.append(ClusterEvent(NODE, ActionType.UPDATE_NODE_CONDITION, "NodeConditionChange"))
    if old.metadata.annotations != new.metadata.annotations:
        events.append(ClusterEvent(NODE, ActionType.UPDATE_NODE_ANNOTATION, "NodeAnnotationChange"))
    if old.status.declared_features != new.status.declared_features:
        features = ActionType.UPDATE_NODE_DECLARED_FEATURE
        events.append(ClusterEvent(NODE, features, "NodeDeclaredFeatureChange"))
    return events


def _statuses(node: corev1.Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
