"""SchedulingGates: a pod with a gate does not enter the queue.

kube-scheduler: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.framework.events import UNSCHEDULABLE_POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, EnqueueExtensions, PreEnqueuePlugin
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names


class SchedulingGates(PreEnqueuePlugin, EnqueueExtensions):
    name = names.SCHEDULING_GATES

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def pre_enqueue(self, pod: corev1.Pod) -> Status:
        if not pod.spec.scheduling_gates:
            return SUCCESS
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]")

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED))
        ]
