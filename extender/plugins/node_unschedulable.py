"""NodeUnschedulable: a cordoned node takes only pods that tolerate the cordon's taint.

kube-scheduler: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.api.corev1.toleration import NO_SCHEDULE, TAINT_NODE_UNSCHEDULABLE
from extender.framework.cycle_state import CycleState
from extender.framework.events import NODE, UNSCHEDULABLE_POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, EnqueueExtensions, FilterPlugin
from extender.framework.node_info import NodeInfo
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names

CORDON = corev1.Taint(key=TAINT_NODE_UNSCHEDULABLE, effect=NO_SCHEDULE)
REFUSED = unresolvable("node(s) were unschedulable")


class NodeUnschedulable(FilterPlugin, EnqueueExtensions):
    name = names.NODE_UNSCHEDULABLE

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        if not node.unschedulable or any(t.tolerates(CORDON) for t in pod.spec.tolerations):
            return SUCCESS
        return REFUSED

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT)),
            ClusterEventWithHint(ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE_POD_TOLERATION)),
        ]
