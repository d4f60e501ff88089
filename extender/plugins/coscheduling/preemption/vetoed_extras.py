"""Extra members that were allowed no victims because their gang had not started: once it has they are tried again.

kube-scheduler's own filters have refused them and parked them, and nothing that happens to their gang wakes such a pod.
The guard notes them, Preemption tells what becomes of them; of those before a restart their conditions tell. No counterpart
upstream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from extender.api import corev1
from extender.plugins.coscheduling.collaborators import Steering
from extender.plugins.coscheduling.pod_conditions import no_candidate_was_left
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.units import may_preempt

log = logging.getLogger(__name__)

MAX_NOTED = 10_000


class VetoedExtras:
    """The manager's lock guards what is noted; steering is asked outside it."""

    def __init__(self, manager: PodGroupManager, steering: Steering, any_node: Callable[[], str]) -> None:
        """any_node: the name of one, or empty where there is none."""
        self._manager = manager
        self._steering = steering
        self._any_node = any_node
        self._noted: dict[str, tuple[corev1.Pod, str]] = {}  # UID -> the pod, and a node where it might have preempted

    def note(self, pod: corev1.Pod, node_name: str) -> None:
        with self._manager.lock:
            if len(self._noted) < MAX_NOTED:
                self._noted[pod.uid] = pod, node_name

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        if old is None and new is not None and not new.node_name and no_candidate_was_left(new):
            if self._manager.find(new) is not None:
                self.note(new, new.status.nominated_node_name)
            return
        if pod is None or pod.uid not in self._noted or (new is not None and not new.node_name and not new.deleting):
            return
        with self._manager.lock:
            self._noted.pop(pod.uid, None)

    def tick(self) -> None:
        """About once a second."""
        if not self._noted:
            return
        manager = self._manager
        with manager.lock:
            places = [place for place in self._noted.values() if may_preempt(manager, place[0])]
            for pod, _ in places:
                del self._noted[pod.uid]
        places = [(pod, node_name or self._any_node()) for pod, node_name in places]
        if places:
            log.info("extra members may preempt now pods=%s", " ".join(pod.key for pod, _ in places))
            self._steering.rouse(places)
