"""What was decided of a gang, told to its users: an Event, and the condition Scheduled of its PodGroup.

Only a verdict that differs from the last one is told. scheduler-plugins' own CRD has no status.conditions: there the API
server drops them, which its answer shows, and from then on verdicts are events only.
Kubernetes: scheduling.k8s.io/v1alpha2 has the like as PodGroupScheduled
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cachetools import LRUCache

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup
from extender.client.errors import ApiError, is_transient
from extender.client.interface import API, POD_GROUPS, EventRecorder, pod_group_reference, pod_reference
from extender.client.status_patch import now, patch_pod_group_conditions
from extender.plugins.coscheduling.dependencies import CONDITION, Verdict
from extender.retry import Retry
from extender.scheduler.background import WorkerPool

log = logging.getLogger(__name__)

REMEMBERED = 10_000
RETRY = Retry(1.0, 60.0)


@dataclass(frozen=True, slots=True)
class _Unwritten:
    """A condition that could not be written. due: when it is tried again, in seconds of the clock."""

    pod_group: PodGroup
    verdict: Verdict
    failures: int
    due: float


class GroupVerdicts:
    """Fulfils coscheduling's Verdicts. `decided` returns at once; the patches go out one after the other.

    One that fails is made again after 1 s, then 2, up to 60, unless something newer was decided: of a gang that runs no user
    would say it a second time.
    """

    def __init__(
        self,
        api: API,
        recorder: EventRecorder,
        leading: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._recorder = recorder
        self._leading = leading
        self._pool = WorkerPool("verdicts", 1)
        self._clock = clock
        self._lock = threading.Lock()  # guards the two below
        self._last: LRUCache[str, Verdict] = LRUCache(REMEMBERED)
        self._unwritten: dict[str, _Unwritten] = {}  # by the PodGroup's UID
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
            self._pool.submit(lambda: self._write(pod_group, verdict), pod_group.metadata.namespace)

    def forget(self, key: str) -> None:
        """That of a PodGroup is kept by its UID, which another of that name does not have."""
        with self._lock:
            self._last.pop(key, None)

    def tick(self) -> None:
        """About once a second: what could not be written is tried again."""
        leading, now = self._leading(), self._clock()
        with self._lock:
            if not leading:  # the new leader says what is true, and what we said last is not what is said
                self._unwritten.clear()
                self._last.clear()
            due = [uid for uid, each in self._unwritten.items() if each.due <= now]
            again = [self._unwritten.pop(uid) for uid in due]
        for each in again:
            work = partial(self._write, each.pod_group, each.verdict, each.failures)
            self._pool.submit(work, each.pod_group.metadata.namespace)

    def _tell_member(self, key: str, verdict: Verdict, member: corev1.Pod | None) -> None:
        """Of a gang without an object: the member is one that our gate holds, so that kube-scheduler says nothing of it. Where there
        is none, as at a start, nothing is told; what was told before is news again after it.
        """
        with self._lock:
            if self._last.get(key) == verdict:
                return
            if not verdict.event_only:
                self._last.pop(key, None)
            if member is None:
                return
            if not verdict.event_only:
                self._last[key] = verdict
        self._recorder.event(pod_reference(member), "Warning", verdict.reason, "Scheduling", verdict.message)

    def _write(self, pod_group: PodGroup, verdict: Verdict, failures: int = 0) -> None:
        """failures: so far. What was decided before something newer is not written after it."""
        uid = pod_group.metadata.uid
        with self._lock:
            if self._last.get(uid, verdict) != verdict:
                return
            self._unwritten.pop(uid, None)
        try:
            if failures:  # the other conditions may have changed meanwhile
                pod_group = self._api.get(POD_GROUPS, pod_group.metadata.name, pod_group.metadata.namespace)
            if pod_group.metadata.uid == uid:
                self._patch(pod_group, verdict)
        except Exception as error:
            if not isinstance(error, ApiError):
                self._write_later(uid, pod_group, verdict, failures)
                raise
            log.info("PodGroup condition not written group=%s error=%s", pod_group.key, error)
            if is_transient(error):
                self._write_later(uid, pod_group, verdict, failures)

    def _write_later(self, uid: str, pod_group: PodGroup, verdict: Verdict, failures: int) -> None:
        seconds = RETRY.seconds(failures + 1)
        with self._lock:
            self._unwritten[uid] = _Unwritten(pod_group, verdict, failures + 1, self._clock() + seconds)

    def _patch(self, pod_group: PodGroup, verdict: Verdict) -> None:
        condition = Condition(
            type=CONDITION,
            status=_status(verdict),
            reason=verdict.why or verdict.reason,
            message=verdict.message,
            last_transition_time=now(),
        )
        others = [known for known in pod_group.status.conditions if known.type != CONDITION]
        answer = patch_pod_group_conditions(self._api, pod_group, [*others, condition])
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
