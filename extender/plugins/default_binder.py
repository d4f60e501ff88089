"""DefaultBinder: the Binding POST.

kube-scheduler: pkg/scheduler/framework/plugins/defaultbinder/default_binder.go
"""

from __future__ import annotations

from typing import Self

from extender.api import corev1
from extender.client.binding import RETRY_SECONDS, bind_pod
from extender.framework.binding_annotations import binding_annotations
from extender.framework.binding_deadline import binding_ends_by
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import BindPlugin
from extender.framework.status import SUCCESS, Status, error
from extender.plugins import names


class DefaultBinder(BindPlugin):
    name = names.DEFAULT_BINDER

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls(handle)

    def bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        handle = self._handle
        outcome = bind_pod(
            handle.api,
            pod,
            node_name,
            annotations=binding_annotations(state),
            clock=handle.clock,
            retry_seconds=min(RETRY_SECONDS, binding_ends_by(state) - handle.clock()),
        )
        return SUCCESS if outcome.bound else error(outcome.reason)
