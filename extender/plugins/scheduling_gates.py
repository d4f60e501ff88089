"""SchedulingGates: a pod with a gate does not enter the queue.

kube-scheduler: pkg/scheduler/framework/plugins/schedulinggates/scheduling_gates.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.framework.events import POD, ActionType
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    PreEnqueuePlugin,
    QueueingHint,
)
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified


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
        event = ClusterEvent(POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return [ClusterEventWithHint(event, self.after_gates_eliminated)]

    def after_gates_eliminated(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """Its own gates."""
        _, after = modified(corev1.Pod, old, new)
        return QUEUE if after.uid == pod.uid else QUEUE_SKIP
