"""Moves the members of a planned gang in our own queue, where a kube-scheduler before us would need a patch.

The plan itself leads each member to its node (PreFilter narrows to it), so no nomination is needed in-process. Only our
scheduling gate stands in the pod itself, and is taken off there; and a preemptor's nomination that is good for nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE
from extender.client.errors import ApiError
from extender.client.interface import API
from extender.client.status_patch import patch_pod_status, remove_scheduling_gate

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
        self._lock = threading.Lock()  # guards what follows
        self._freeing: set[str] = set()  # UIDs of pods to ungate

    def nominate(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        pods = [pod for pod, _ in places]
        self.ungate(pods)
        self._activate([pod for pod in pods if not _gated(pod)])

    def clear_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        """There is no nomination of ours to take back; a gate that has not come off stays."""
        with self._lock:
            self._freeing.difference_update(pod.uid for pod in pods)

    def clear_foreign_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in pods:
            self._patch(
                pod, "nomination not taken back", partial(patch_pod_status, self._api, pod, nominated_node_name="")
            )

    def activate_by_nomination(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        self.activate([pod for pod, _ in places])

    def activate(self, pods: Sequence[corev1.Pod]) -> None:
        self._activate([pod for pod in pods if not _gated(pod)])

    def ungate(self, pods: Sequence[corev1.Pod]) -> None:
        for pod in filter(_gated, pods):
            with self._lock:
                self._freeing.add(pod.uid)
            self._patch(pod, "gate not taken off", partial(self._free, pod))

    def _free(self, pod: corev1.Pod) -> None:
        """Not where the pod was released since, or another job has done it."""
        with self._lock:
            if pod.uid not in self._freeing:
                return
            self._freeing.discard(pod.uid)
        remove_scheduling_gate(self._api, pod, GANG_GATE)

    def _patch(self, pod: corev1.Pod, failure: str, patch: Callable[[], object]) -> None:
        def run() -> None:
            try:
                patch()
            except ApiError as error:
                log.info("%s pod=%s error=%s", failure, pod.key, error)

        self._spawn(run)


def _gated(pod: corev1.Pod) -> bool:
    return any(gate.name == GANG_GATE for gate in pod.spec.scheduling_gates)
