"""What was decided of a gang, told to its users: an Event, and the condition Scheduled of its PodGroup.

Only a verdict that differs from the last one is told. scheduler-plugins' own CRD has no status.conditions: there the API
server drops them, which its answer shows, and from then on verdicts are events only.
Kubernetes: scheduling.k8s.io/v1alpha2 has the like as PodGroupScheduled
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from cachetools import LRUCache

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup
from extender.client.errors import ApiError
from extender.client.interface import API, EventRecorder, pod_group_reference, pod_reference
from extender.client.status_patch import now, patch_pod_group_conditions
from extender.plugins.coscheduling.collaborators import Verdict
from extender.scheduler.background import WorkerPool

log = logging.getLogger(__name__)

CONDITION = "Scheduled"
REMEMBERED = 10_000


class GroupVerdicts:
    """Fulfils coscheduling's Verdicts. `decided` returns at once; the patches go out one after the other."""

    def __init__(self, api: API, recorder: EventRecorder, leading: Callable[[], bool]) -> None:
        self._api = api
        self._recorder = recorder
        self._leading = leading
        self._pool = WorkerPool("verdicts", 1)
        self._lock = threading.Lock()  # guards _last
        self._last: LRUCache[str, Verdict] = LRUCache(REMEMBERED)
        self.events_only = False

    def decided(self, pod_group: PodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None) -> None:
        if not self._leading():
            return
        if pod_group is None:
            self._tell_member(key, verdict, member)
            return
        with self._lock:
            last = self._last.get(pod_group.metadata.uid)
            if last == verdict:
                return
            if not verdict.event_only:
                self._last[pod_group.metadata.uid] = verdict
        if last is None and not verdict.event_only and _says(pod_group, verdict):
            return  # told before a restart
        reference: corev1.ObjectReference = pod_group_reference(pod_group)
        self._recorder.event(
            reference, "Normal" if verdict.scheduled else "Warning", verdict.reason, "Scheduling", verdict.message
        )
        if not (self.events_only or verdict.event_only):
            self._pool.submit(lambda: self._patch(pod_group, verdict))

    def _tell_member(self, key: str, verdict: Verdict, member: corev1.Pod | None) -> None:
        """Of a gang without an object, where nobody refuses the pods: our gate holds them."""
        if member is None:
            return
        with self._lock:
            if self._last.get(key) == verdict:
                return
            if not verdict.event_only:
                self._last[key] = verdict
        self._recorder.event(pod_reference(member), "Warning", verdict.reason, "Scheduling", verdict.message)

    def _patch(self, pod_group: PodGroup, verdict: Verdict) -> None:
        condition = Condition(
            type=CONDITION,
            status=_status(verdict),
            reason=verdict.why or verdict.reason,
            message=verdict.message,
            last_transition_time=now(),
        )
        others = [known for known in pod_group.status.conditions if known.type != CONDITION]
        try:
            answer = patch_pod_group_conditions(self._api, pod_group, [*others, condition])
        except ApiError as error:
            log.info("PodGroup condition not written group=%s error=%s", pod_group.key, error)
            return
        if not answer.status.conditions:
            log.warning("the PodGroup CRD has no status.conditions: verdicts are events only")
            self.events_only = True

    def flush(self) -> None:
        """Waits until what was decided by now is written, or given up."""
        self._pool.flush()

    def stop(self) -> None:
        self._pool.stop()


def _status(verdict: Verdict) -> str:
    return "True" if verdict.scheduled else "False"


def _says(pod_group: PodGroup, verdict: Verdict) -> bool:
    """Whether the group's condition tells it already."""
    told = (_status(verdict), verdict.why or verdict.reason, verdict.message)
    return any(
        known.type == CONDITION and (known.status, known.reason, known.message) == told
        for known in pod_group.status.conditions
    )
