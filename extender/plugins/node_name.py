"""NodeName: a pod that names its node goes there or nowhere.

kube-scheduler: pkg/scheduler/framework/plugins/nodename/node_name.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.events import NODE, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, EnqueueExtensions, FilterPlugin
from extender.framework.node_info import NodeInfo
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names

REFUSED = unresolvable("node(s) didn't match the requested node name")


class NodeName(FilterPlugin, EnqueueExtensions):
    name = names.NODE_NAME

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        return SUCCESS if not pod.spec.node_name or pod.spec.node_name == node.name else REFUSED

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD))]
