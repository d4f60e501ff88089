"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint.

kube-scheduler: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.api.corev1.toleration import NO_SCHEDULE, TAINT_NODE_UNSCHEDULABLE
from extender.framework.columnar import ALL_PASS, FilterColumns, NodeTable, Verdicts
from extender.framework.cycle_state import CycleState
from extender.framework.events import NODE, POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    QueueingHint,
)
from extender.framework.node_info import NodeInfo
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified

CORDON = corev1.Taint(key=TAINT_NODE_UNSCHEDULABLE, effect=NO_SCHEDULE)
REFUSED = unresolvable("node(s) were unschedulable")


def tolerates_cordon(pod: corev1.Pod) -> bool:
    return any(toleration.tolerates(CORDON) for toleration in pod.spec.tolerations)


class NodeUnschedulable(FilterPlugin, FilterColumns, EnqueueExtensions):
    name = names.NODE_UNSCHEDULABLE

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        if not node.unschedulable or tolerates_cordon(pod):
            return SUCCESS
        return REFUSED

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        if tolerates_cordon(pod):
            return ALL_PASS
        return Verdicts.refused(table.unschedulable(), REFUSED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(
                ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self.after_node_change
            ),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), self.after_toleration_change),
        ]

    def after_node_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A node that takes pods, and is new or did not before."""
        before, after = modified(corev1.Node, old, new)
        opened = not after.spec.unschedulable and (before is None or before.spec.unschedulable)
        return QUEUE if opened else QUEUE_SKIP

    def after_toleration_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """The pod itself tolerates the cordon now; before it did not, or it would not have been refused."""
        _, after = modified(corev1.Pod, old, new)
        tolerates = after.uid == pod.uid and tolerates_cordon(after)
        return QUEUE if tolerates else QUEUE_SKIP
