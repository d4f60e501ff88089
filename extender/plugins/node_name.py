"""NodeName: a pod that names its node goes there or nowhere.

kube-scheduler: pkg/scheduler/framework/plugins/nodename/node_name.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from extender.api import corev1
from extender.framework.columnar import ALL_PASS, FilterColumns, NodeTable, Verdicts
from extender.framework.cycle_state import CycleState
from extender.framework.events import NODE, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, EnqueueExtensions, FilterPlugin
from extender.framework.node_info import NodeInfo
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names

REFUSED = unresolvable("node(s) didn't match the requested node name")


class NodeName(FilterPlugin, FilterColumns, EnqueueExtensions):
    name = names.NODE_NAME

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        return SUCCESS if not pod.spec.node_name or pod.spec.node_name == node.name else REFUSED

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        if not pod.spec.node_name:
            return ALL_PASS
        refused = np.ones(len(table), dtype=np.bool_)
        row = table.position(pod.spec.node_name)
        if row is not None:
            refused[row] = False
        return Verdicts.refused(refused, REFUSED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD))]
