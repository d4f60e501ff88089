"""Moves the members of a planned gang in our own queue, where a kube-scheduler before us would need a patch.

The plan itself leads each member to its node (PreFilter narrows to it), so no nomination is needed in-process. Only our
scheduling gate stands in the pod itself, and is taken off there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE
from extender.client.errors import ApiError
from extender.client.interface import API
from extender.client.status_patch import remove_scheduling_gate

log = logging.getLogger(__name__)


class QueueSteering:
    """Fulfils coscheduling's Steering in-process. activate: the queue's. spawn: runs a job beside the cycles."""

    def __init__(
        self,
        api: API,
        activate: Callable[[Iterable[corev1.Pod]], None],
        spawn: Callable[[Callable[[], None]], None],
    ) -> None:
        self._api = api
        self._activate = activate
        self._spawn = spawn

    def steer(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        pods = [pod for pod, _ in places]
        self.ungate(pods)
        self._activate([pod for pod in pods if not _gated(pod)])

    def release(self, pods: Sequence[corev1.Pod]) -> None:
        """There is no nomination to take back."""

    def wake(self, pods: Sequence[corev1.Pod]) -> None:
        self._activate([pod for pod in pods if not _gated(pod)])

    def ungate(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            if _gated(pod):
                self._spawn(lambda pod=pod: self._remove_gate(pod))  # type: ignore[misc]

    def _remove_gate(self, pod: corev1.Pod) -> None:
        try:
            remove_scheduling_gate(self._api, pod, GANG_GATE)
        except ApiError as error:
            log.info("gate not taken off pod=%s error=%s", pod.key, error)


def _gated(pod: corev1.Pod) -> bool:
    return any(gate.name == GANG_GATE for gate in pod.spec.scheduling_gates)
