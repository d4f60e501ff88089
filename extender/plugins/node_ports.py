"""NodePorts: a host port is had by one pod of a node.

kube-scheduler: pkg/scheduler/framework/plugins/nodeports/node_ports.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.framework.columnar import FilterColumns, NodeTable, Verdicts
from extender.framework.cycle_state import CycleState
from extender.framework.events import NODE, POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
)
from extender.framework.node_info import HostPortInfo, NodeInfo
from extender.framework.pod_info import host_ports
from extender.framework.status import SKIP, SUCCESS, Status, unschedulable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, deleted, placed

STATE = "PreFilterNodePorts"
REFUSED = unschedulable("node(s) didn't have free ports for the requested pod ports")


class NodePorts(PreFilterPlugin, FilterPlugin, FilterColumns, EnqueueExtensions):
    name = names.NODE_PORTS

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        ports = tuple(host_ports(pod))
        if not ports:
            return None, SKIP
        state.write(STATE, ports)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        ports: tuple[corev1.ContainerPort, ...] = state.read(STATE, tuple)
        for port in ports:
            if node.used_ports.conflicts(port.host_ip, port.protocol, port.host_port):
                return REFUSED
        return SUCCESS

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        ports: tuple[corev1.ContainerPort, ...] = state.read(STATE, tuple)

        def conflicts(used: tuple[str, str, int]) -> bool:
            there = HostPortInfo((used,))
            return any(there.conflicts(port.host_ip, port.protocol, port.host_port) for port in ports)

        return Verdicts.refused(table.ports_in_use(conflicts), REFUSED)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), self.after_pod_deleted),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD)),
        ]

    def after_pod_deleted(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A placed pod that had one of the ports."""
        gone = deleted(corev1.Pod, old)
        if not placed(gone):
            return QUEUE_SKIP
        freed = HostPortInfo()
        for port in host_ports(gone):
            freed.add(port.host_ip, port.protocol, port.host_port)
        wanted = host_ports(pod)
        return QUEUE if any(freed.conflicts(p.host_ip, p.protocol, p.host_port) for p in wanted) else QUEUE_SKIP
