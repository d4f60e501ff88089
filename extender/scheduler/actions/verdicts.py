"""What was decided of a gang, told to its users: an Event, and conditions of its PodGroup (group_conditions.py).

Only a verdict that differs from the last one is told. scheduler-plugins' own CRD has no status.conditions: there the API
server drops them, which its answer shows, and from then on verdicts on such PodGroups are events only.
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
from extender.client.errors import ApiError, is_transient
from extender.client.interface import (
    API,
    EventRecorder,
    OwnPodGroup,
    pod_group_reference,
    pod_reference,
    resource_of,
)
from extender.plugins.coscheduling.dependencies import WAITING, Verdict
from extender.retry import Retry
from extender.scheduler.actions.group_conditions import changes, says
from extender.scheduler.pod_groups.writer import PodGroupStatusWriter

log = logging.getLogger(__name__)

REMEMBERED = 10_000
Said = tuple[str, bool]
"""What a verdict is about: the PodGroup's UID, or the key of a gang without one; and Verdict.disrupted."""
RETRY = Retry(1.0, 60.0)
START_SECONDS = 5.0  # from a start to its condition, unless minMember are bound before: one patch says both
WAITING_SECONDS = 8.0  # likewise of a gang that waits for members: most gangs are complete, and start, before
MADE_SECONDS = 22.0  # longer, while its members are still being made: a controller makes some twenty a second


@dataclass(frozen=True, slots=True)
class _Unwritten:
    """A condition that is written later, or that could not be written. due: when it is, or is tried again, in seconds of the clock."""

    pod_group: OwnPodGroup
    verdict: Verdict
    failures: int
    due: float

    @property
    def is_start(self) -> bool:
        """That waits for what it starts."""
        return self.verdict.scheduled and not self.failures


class GroupVerdicts:
    """Fulfils coscheduling's Verdicts. `decided` returns at once; the patches go out one after the other. A start, and that members are
    waited for, are written some seconds later, and not at all where something newer was decided by then: each patch of a custom
    resource costs the API server as much as a pod's binding.

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
        self.writer = PodGroupStatusWriter(api)
        self._pool = self.writer.pool
        self._clock = clock
        self._lock = threading.Lock()  # guards the three below
        self._last: LRUCache[Said, Verdict] = LRUCache(REMEMBERED)
        self._unwritten: dict[Said, _Unwritten] = {}
        self._started: LRUCache[str, bool] = LRUCache(REMEMBERED)  # UIDs of PodGroups told that their gang starts

    def decided(
        self, pod_group: OwnPodGroup | None, key: str, verdict: Verdict, member: corev1.Pod | None = None
    ) -> None:
        if not self._leading():
            return
        if pod_group is None:
            self._tell_member(key, verdict, member)
            return
        said = _said(pod_group, verdict)
        with self._lock:
            last = self._last.get(said)
            if last == verdict:
                return
            if not verdict.event_only:
                self._last[said] = verdict
            if verdict.scheduled:  # from now on it may be preempted once more
                self._last.pop((pod_group.metadata.uid, True), None)
                self._unwritten.pop((pod_group.metadata.uid, True), None)
        if last is None and not verdict.event_only and says(pod_group, verdict):
            return  # told before a restart
        reference: corev1.ObjectReference = pod_group_reference(pod_group)
        self._recorder.event(
            reference, "Normal" if verdict.scheduled else "Warning", verdict.reason, "Scheduling", verdict.message
        )
        if not verdict.event_only:
            self._write_soon(pod_group, verdict)

    def forget(self, key: str) -> None:
        """key: of a gang without a PodGroup; or the UID of one of which the pods are gone, so that what was said holds no more. That
        of a PodGroup is kept by its UID, which another of that name does not have."""
        with self._lock:
            self._last.pop((key, False), None)

    def on_pod_group(self, old: OwnPodGroup | None, new: OwnPodGroup | None) -> None:
        """As the watch has it. Of one that has gone nothing is kept, and nothing more is written."""
        if old is None or (new is not None and new.metadata.uid == old.metadata.uid):
            return
        uid = old.metadata.uid
        with self._lock:
            for said in ((uid, False), (uid, True)):
                self._last.pop(said, None)
                self._unwritten.pop(said, None)
            self._started.pop(uid, None)
        self.writer.gone(uid)

    def tick(self) -> None:
        """About once a second: what could not be written is tried again."""
        leading, now = self._leading(), self._clock()
        with self._lock:
            if not leading:  # the new leader says what is true, and what we said last is not what is said
                self._unwritten.clear()
                self._last.clear()
                self._started.clear()
                self.writer.forget()
            unwritten = list(self._unwritten.items())
        for said, each in unwritten:
            if self._is_due(each, now):
                self._write_now(said)

    def _is_due(self, each: _Unwritten, now: float) -> bool:
        if each.is_start and self.writer.whole(each.pod_group):
            return True
        waits = each.verdict.reason == WAITING and not each.failures and self.writer.growing(each.pod_group)
        return each.due + (MADE_SECONDS if waits else 0.0) <= now

    def _tell_member(self, key: str, verdict: Verdict, member: corev1.Pod | None) -> None:
        """Of a gang without an object: the member is one that our gate holds, so that kube-scheduler says nothing of it. Where there
        is none, as at a start, nothing is told; what was told before is news again after it.
        """
        with self._lock:
            if self._last.get((key, False)) == verdict:
                return
            if not verdict.event_only:
                self._last.pop((key, False), None)
            if member is None:
                return
            if not verdict.event_only:
                self._last[key, False] = verdict
        self._recorder.event(pod_reference(member), "Warning", verdict.reason, "Scheduling", verdict.message)

    def _write_soon(self, pod_group: OwnPodGroup, verdict: Verdict) -> None:
        """What was decided of its start comes before that it is preempted."""
        said = _said(pod_group, verdict)
        if verdict.disrupted:
            self._write_now((pod_group.metadata.uid, False))
        seconds = START_SECONDS if verdict.scheduled else WAITING_SECONDS if verdict.reason == WAITING else 0.0
        due = self._clock() + seconds
        with self._lock:
            earlier = self._unwritten.get(said)
            if earlier is not None and not earlier.failures and not verdict.scheduled:
                due = min(due, earlier.due)
            self._unwritten[said] = _Unwritten(pod_group, verdict, 0, due)
        self.writer.awaited.add(pod_group.metadata.uid)
        if not seconds:
            self._write_now(said)

    def _write_now(self, said: Said) -> None:
        with self._lock:
            each = self._unwritten.pop(said, None)
        if each is not None:
            work = partial(self._write, each.pod_group, each.verdict, each.failures)
            self._pool.submit(work, each.pod_group.metadata.namespace)

    def _write(self, pod_group: OwnPodGroup, verdict: Verdict, failures: int = 0) -> None:
        """failures: so far. What was decided before something newer is not written after it, nor what waited until another leads."""
        if not self._leading():
            return
        said = _said(pod_group, verdict)
        with self._lock:
            if self._last.get(said, verdict) != verdict:
                return
            self._unwritten.pop(said, None)
        self.writer.awaited.discard(pod_group.metadata.uid)
        try:
            meta = pod_group.metadata
            if failures:  # the other conditions may have changed meanwhile
                pod_group = self._api.get(resource_of(pod_group), meta.name, meta.namespace)
            if pod_group.metadata.uid == meta.uid:
                self._patch(pod_group, verdict)
        except Exception as error:
            if not isinstance(error, ApiError):
                self._write_later(said, pod_group, verdict, failures)
                raise
            log.info("PodGroup condition not written group=%s error=%s", pod_group.key, error)
            if is_transient(error):
                self._write_later(said, pod_group, verdict, failures)

    def _write_later(self, said: Said, pod_group: OwnPodGroup, verdict: Verdict, failures: int) -> None:
        seconds = RETRY.seconds(failures + 1)
        with self._lock:
            self._unwritten[said] = _Unwritten(pod_group, verdict, failures + 1, self._clock() + seconds)

    def _patch(self, pod_group: OwnPodGroup, verdict: Verdict) -> None:
        uid, pod_group = pod_group.metadata.uid, self.writer.newest(pod_group)
        with self._lock:
            has_started = uid in self._started
        conditions = changes(pod_group, verdict, has_started=has_started)
        if not conditions:
            return
        self.writer.write(pod_group, conditions)
        if verdict.scheduled:
            with self._lock:
                self._started[uid] = True

    def flush(self) -> None:
        """Waits until what was decided by now is written, or given up."""
        with self._lock:
            unwritten = [said for said, each in self._unwritten.items() if not each.failures]
        for said in unwritten:
            self._write_now(said)
        self._pool.flush()

    def stop(self) -> None:
        self._pool.stop()


def _said(pod_group: OwnPodGroup, verdict: Verdict) -> Said:
    return pod_group.metadata.uid, verdict.disrupted
