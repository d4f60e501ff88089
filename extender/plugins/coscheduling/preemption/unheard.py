"""Pods whose call of our preempt verb met nobody, as while we restart: they are tried again once we are there.

kube-scheduler has parked them for its own filters' reasons and says so in the condition; it would try them again when a pod
goes or a node changes, or after five minutes. No counterpart upstream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from extender.api import corev1
from extender.plugins.coscheduling.collaborators import Collaborators
from extender.plugins.coscheduling.state.pod_conditions import preempt_call_failed
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.units import may_preempt
from extender.retry import Retry

log = logging.getLogger(__name__)

MAX_NOTED = 10_000
RETRY = Retry(10.0, 300.0)  # where that was in vain


@dataclass(slots=True)
class _Unheard:
    pod: corev1.Pod
    due: float
    times: int = 0


class UnheardPreemptors:
    """The manager's lock guards what is noted; steering is asked outside it."""

    def __init__(self, manager: PodGroupManager, collaborators: Collaborators, any_node: Callable[[], str]) -> None:
        """any_node: the name of one, or empty where there is none."""
        self._manager = manager
        self._with = collaborators
        self._any_node = any_node
        self._noted: dict[str, _Unheard] = {}

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        if new is not None and not new.node_name and not new.deleting and preempt_call_failed(new):
            if self._with.ours(new):
                self._note(new)
        else:
            with self._manager.lock:
                self._noted.pop(pod.uid, None)

    def _note(self, pod: corev1.Pod) -> None:
        with self._manager.lock:
            known = self._noted.get(pod.uid)
            if known is not None:
                known.pod = pod
            elif len(self._noted) < MAX_NOTED:
                self._noted[pod.uid] = _Unheard(pod, self._manager.clock())

    def tick(self) -> None:
        """About once a second; nobody is tried again before we lead."""
        with self._manager.lock:
            noted = bool(self._noted)
        if not noted or not self._with.may_plan():
            return
        node_name, now = self._any_node(), self._manager.clock()
        with self._manager.lock:
            due = [each for each in self._noted.values() if each.due <= now and may_preempt(self._manager, each.pod)]
            for each in due:
                each.due = now + RETRY.seconds(each.times + 1)
                each.times += 1
        if due and node_name:
            log.info(
                "pods whose preempt call had failed are tried again pods=%s", " ".join(each.pod.key for each in due)
            )
            self._with.steering.rouse([(each.pod, each.pod.status.nominated_node_name or node_name) for each in due])
