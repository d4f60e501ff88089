"""What a plugin gets at its birth: the snapshot, the listers, the waiting pods, the API.

kube-scheduler: k8s.io/kube-scheduler/framework/interface.go (Handle)
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from extender.api import corev1
from extender.client.interface import API, EventRecorder
from extender.framework.cycle_state import CycleState
from extender.framework.interface import WaitingPod
from extender.framework.listers import Lister, NodeInfoLister, Nominator
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.interface import PreemptionExtender
from extender.framework.status import Status

Clock = Callable[[], float]
"""Monotonic seconds."""


class PodInPreBind(Protocol):
    """A pod whose PreBind runs. Go: framework.PodInPreBind."""

    @property
    def cancelled(self) -> threading.Event:
        """For a plugin that waits: set as soon as there is nothing to wait for."""
        ...

    def cancel_pod(self, message: str) -> bool:
        """False if PreBind has ended."""
        ...


class Handle(Protocol):
    """Implemented by the runtime's Framework; plugins keep it and call it, never the runtime itself."""

    @property
    def profile_name(self) -> str: ...

    @property
    def api(self) -> API: ...

    @property
    def events(self) -> EventRecorder: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def nominator(self) -> Nominator: ...

    @property
    def extenders(self) -> Sequence[PreemptionExtender]: ...

    @property
    def rng(self) -> random.Random:
        """For choices among equals; seeded where a run is to be repeated."""
        ...

    def spawn(self, job: Callable[[], None]) -> None:
        """Runs it beside the scheduling cycles; on virtual time, at once."""
        ...

    def sleep(self, seconds: float) -> None:
        """Lets time pass for a plugin that waits in PreBind; on virtual time the cluster moves on meanwhile."""
        ...

    def snapshot(self) -> NodeInfoLister:
        """The snapshot of the running cycle; outside one, the newest."""
        ...

    def lister(self, type_: type[object]) -> Lister[object]:
        """The informer's objects of one struct type (corev1.Service, PodDisruptionBudget, ...). Empty where none is watched."""
        ...

    def iterate_over_waiting_pods(self, callback: Callable[[WaitingPod], None]) -> None: ...

    def get_waiting_pod(self, uid: str) -> WaitingPod | None: ...

    def reject_waiting_pod(self, uid: str) -> bool: ...

    def get_pod_in_pre_bind(self, uid: str) -> PodInPreBind | None: ...

    def activate(self, pods: Iterable[corev1.Pod]) -> None:
        """Moves pods that wait as unschedulable into the active queue; behind kube-scheduler, wakes them by a patch."""
        ...

    def run_filter_plugins_with_nominated_pods(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status: ...

    def run_pre_filter_extension_add_pod(
        self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo
    ) -> Status: ...

    def run_pre_filter_extension_remove_pod(
        self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo
    ) -> Status: ...

    def run_pre_filter_plugins(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[object, Status, frozenset[str]]: ...
