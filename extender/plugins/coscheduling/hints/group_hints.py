"""When a pod that Coscheduling refused is worth another try: its group changed, or room may have come free.

Used where the mirror's own queue runs; behind kube-scheduler steering patches do the waking.
scheduler-plugins: pkg/coscheduling/coscheduling.go (EventsToRegister)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_READY, PodGroup
from extender.framework.events import (
    ASSIGNED_POD,
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    POD_GROUP,
    STORAGE_CLASS,
    UNSCHEDULABLE_POD,
    VOLUME_ATTACHMENT,
    ActionType,
)
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, QueueingHint
from extender.plugins.coscheduling.spec.group_annotations import asks_for
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.hints import QUEUE, QUEUE_SKIP, pair

ROOM_FREED = ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN
NODE_CHANGES = (
    ActionType.ADD
    | ActionType.UPDATE_NODE_ALLOCATABLE
    | ActionType.UPDATE_NODE_LABEL
    | ActionType.UPDATE_NODE_TAINT
    | ActionType.UPDATE_NODE_CONDITION
)
VOLUMES = (
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    VOLUME_ATTACHMENT,
)


@dataclass(frozen=True, slots=True)
class GroupHints:
    """A pod of no group is refused only for places that are promised to others: what changes those is worth a try too."""

    labels: GroupLabels

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Every one of the first two is: a plan looks at all nodes."""
        return [
            ClusterEventWithHint(ClusterEvent(ASSIGNED_POD, ROOM_FREED)),
            ClusterEventWithHint(ClusterEvent(NODE, NODE_CHANGES)),
            ClusterEventWithHint(ClusterEvent(ASSIGNED_POD, ActionType.ADD), self.after_sibling),
            ClusterEventWithHint(ClusterEvent(UNSCHEDULABLE_POD, ActionType.ALL), self.after_sibling),
            ClusterEventWithHint(ClusterEvent(POD_GROUP, ActionType.ALL), self.after_pod_group),
            *(ClusterEventWithHint(ClusterEvent(kind, ActionType.ALL), self.after_volume) for kind in VOLUMES),
        ]

    def after_volume(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A plan places members that bring volumes where these can be had."""
        return QUEUE if pod.spec.volumes and self.labels.group_of(pod) is not None else QUEUE_SKIP

    def after_sibling(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """One more member; a member that may be given a place now; the pod itself, told so or of another group."""
        before, after = pair(corev1.Pod, old, new)
        if after is None:  # a waiting pod that goes gives its promised place back
            return QUEUE if before is not None and self.labels.group_of(before) is not None else QUEUE_SKIP
        if after.uid == pod.uid:
            return QUEUE if before is None or _told(before) != _told(after) else QUEUE_SKIP
        group, other = self.labels.group_of(pod), self.labels.group_of(after)
        if group is None or other is None or group.key != other.key:
            return QUEUE_SKIP
        return QUEUE if before is None or _standing(before) != _standing(after) else QUEUE_SKIP

    def after_pod_group(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        before, after = pair(PodGroup, old, new)
        if before is not None and after is not None and asks_for(before) == asks_for(after):
            return QUEUE_SKIP  # our own conditions
        group, changed = self.labels.group_of(pod), after or before
        if group is None:
            return QUEUE  # its plan may be void
        return QUEUE if changed is not None and changed.key == group.key else QUEUE_SKIP


def _standing(pod: corev1.Pod) -> object:
    """What of a sibling counts for the group."""
    return pod.labels, pod.spec.scheduling_gates, pod.spec.node_name


def _told(pod: corev1.Pod) -> object:
    """What of the refused pod itself counts: its standing, and what steering writes."""
    ready = [condition for condition in pod.status.conditions if condition.type == GANG_READY]
    return _standing(pod), pod.status.nominated_node_name, ready
