"""Moves pods that kube-scheduler has parked, by patches of their status.

A nomination is tried first and alone, counts against pods of equal or lower priority, and its patch wakes the pod in
some 10 ms; the condition GangReady tells the user. The creation of a sibling wakes nobody, hence all this.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_READY
from extender.client.errors import ApiError
from extender.client.interface import API
from extender.client.status_patch import patch_pod_status
from extender.scheduler.background import WorkerPool

log = logging.getLogger(__name__)

PATCHES_AT_A_TIME = 16


class StatusSteering:
    """Fulfils coscheduling's Steering behind a kube-scheduler."""

    def __init__(self, api: API, leading: Callable[[], bool]) -> None:
        self._api = api
        self._leading = leading
        self._pool = WorkerPool("steering", PATCHES_AT_A_TIME)

    def steer(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        for pod, node_name in places:
            self._submit(pod, node_name, "True", "GangPlanned", f"planned for node {node_name}")

    def release(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            self._submit(pod, "", "False", "PlanDropped", "the gang has to be planned again")

    def wake(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            self._submit(pod, None, "Unknown", "GangChanged", "the gang has changed")

    def stop(self) -> None:
        self._pool.stop()

    def _submit(self, pod: corev1.Pod, node_name: str | None, status: str, reason: str, message: str) -> None:
        if self._leading():
            self._pool.submit(lambda: self._patch(pod, node_name, status, reason, message))

    def _patch(self, pod: corev1.Pod, node_name: str | None, status: str, reason: str, message: str) -> None:
        try:
            patch_pod_status(
                self._api,
                pod,
                condition=corev1.PodCondition(type=GANG_READY, status=status, reason=reason, message=message),
                nominated_node_name=node_name,
            )
        except ApiError as error:
            log.info("pod not steered pod=%s node=%s error=%s", pod.key, node_name, error)
