"""Keeps the status of PodGroups: what their pods show, and the gangs' place in line. Counts alone are written at most once in 5 s; another
phase is written as another condition is, once it has lasted for a second.

Only the leader writes. Where another controller writes the phase of a PodGroup, it and its counters are left to that one. A group of
which no pod has named a scheduler of ours is not ours to write, but for one thing: a fraction of it runs.
scheduler-plugins: pkg/controllers/podgroup_controller.go
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.api.schedulingv1alpha1 import PodGroup
from extender.client.ended_pods import ListPace
from extender.client.errors import ApiError, is_transient
from extender.client.interface import EventRecorder, OwnPodGroup, pod_group_reference
from extender.client.short_steps import ShortSteps
from extender.client.transport import USER_AGENT
from extender.framework.listers import Lister
from extender.scheduler.background import WorkerPool
from extender.scheduler.pod_groups.records import NONE_ENDED, Counts, Ended, Records
from extender.scheduler.pod_groups.status import (
    FOREIGN_SCHEDULER,
    ITS,
    NOT_IN_LINE,
    OURS,
    InLine,
    conditions_of,
    fields,
    foreign_said,
    status_of,
    strangers_said,
)
from extender.scheduler.pod_groups.writer import Fields, PodGroupStatusWriter

log = logging.getLogger(__name__)

BETWEEN_SECONDS = 5.0  # two writes of one status in which no condition changes
FIRST_SECONDS = 2.0  # from a group's first event to its first write
GROWING_SECONDS = 8.0  # after a member came: more of them may still be on their way
MADE_SECONDS = 20.0  # added to QUIET_SECONDS at most, while members come
QUIET_SECONDS = 10.0  # likewise, and between two writes, of one of which nothing has a node: most gangs start within it
AGAIN_SECONDS = 60.0  # after a write that was refused
LINE_SECONDS = 30.0  # between two looks at the line
SLOW_AT_ONCE = 5  # statuses, a tick, that are written because the line has changed
SURE_SECONDS = 30.0  # since we began to lead: until then a binding may be that of the replica that led before
FRACTION_SECONDS = 30.0  # after which a fraction that another scheduler has started is no gang on its way
MANAGERS_NAMED = 10  # other controllers that write phases
MOST_SAID = 63  # characters of the name of one
COUNTED = ("scheduled", "running", "succeeded", "failed")
SLOW = frozenset(("position", "missing", "wouldFit"))

EndedPods = Callable[[str, Callable[[Iterable[corev1.Pod]], None]], None]
Line = Callable[[], Mapping[str, InLine]]


class PodGroupController:
    """groups: the PodGroups of the CRD, by key. ended_pods: lists the pods of a namespace that have ended, in the background, and hands
    them over. line: the gangs that wait.
    unsaid: told the UID of a PodGroup of which the last verdict holds no more. clock: monotonic, in seconds.
    new_steps: for each tick."""

    def __init__(
        self,
        writer: PodGroupStatusWriter,
        groups: Lister[PodGroup],
        records: Records,
        key_of: Callable[[corev1.Pod], str],
        line: Line,
        ended_pods: EndedPods,
        recorder: EventRecorder,
        unsaid: Callable[[str], None],
        leading: Callable[[], bool],
        clock: Callable[[], float],
        new_steps: Callable[[], ShortSteps] = ShortSteps,
    ) -> None:
        self._writer, self._groups, self._records = writer, groups, records
        self._key_of, self._line_now, self._ended_pods = key_of, line, ended_pods
        self._recorder, self._unsaid = recorder, unsaid
        self._leading, self._clock, self._new_steps = leading, clock, new_steps
        self._readers = WorkerPool("pod-groups", 1)
        self._lock = threading.Lock()  # guards all below
        self._dirty: dict[str, bool] = {}  # keys -> whether the line alone has changed
        self._due: dict[str, float] = {}  # keys -> when its status may be written next
        self._quiet_until: dict[str, float] = {}  # keys -> when it is written though nothing of it has a node
        self._came: dict[str, float] = {}  # keys -> when the last member that is new came
        self._refused: dict[str, float] = {}  # keys -> until when nothing is tried again
        self._pace = ListPace()
        # keys -> the conditions, and the phase, that were to change at the last look
        self._wanted: dict[str, frozenset[tuple[str, str]]] = {}
        self._strange_since: dict[str, float] = {}
        self._writing: set[str] = set()
        self._foreign: dict[str, str] = {}  # keys -> what other schedulers do with the group, in words
        self._line: Mapping[str, InLine] = {}
        self._moved: dict[str, None] = {}  # keys of which the line says something else now, the longest first
        self._line_at = 0.0
        self._led_since: float | None = None
        self.other_managers: frozenset[str] = frozenset()
        writer.shown, writer.whole, writer.growing = self.shown, self.whole, self.growing

    def leads_for_long(self) -> bool:
        """Whether each binding that is seen now was made while we led."""
        since = self._led_since
        return since is not None and self._clock() - since >= SURE_SECONDS

    def foreign(self) -> int:
        """How many groups have pods that another scheduler has bound, or is to."""
        return len(self._foreign)

    def foreign_text(self, key: str) -> str:
        """What other schedulers do with the group, in words; empty where that is nothing. Takes no lock."""
        return self._foreign.get(key, "")

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        changed = self._records.on_pod(old, new)
        with self._lock:
            for key in changed:
                self._dirty[key] = False
                if old is None:
                    self._came[key] = self._clock()

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        """Our own counts, which come back by the watch, are no news."""
        if new is None:
            if old is not None:
                self._forget(old.key)
            return
        if old is not None and _asks_and_says(old) == _asks_and_says(new):
            return
        with self._lock:
            self._dirty[new.key] = False

    def whole(self, pod_group: OwnPodGroup) -> bool:
        return (
            isinstance(pod_group, PodGroup) and self._records.counts(pod_group.key).bound >= pod_group.spec.min_member
        )

    def growing(self, pod_group: OwnPodGroup) -> bool:
        """Whether members of it are still being made, as far as that shows."""
        with self._lock:
            came = self._came.get(f"{pod_group.metadata.namespace}/{pod_group.metadata.name}", -math.inf)
        return self._clock() - came < GROWING_SECONDS

    def shown(self, pod_group: PodGroup) -> Fields:
        """What its status is to say besides conditions."""
        with self._lock:
            in_line = self._line.get(pod_group.key, NOT_IN_LINE)
        counts = self._records.counts(pod_group.key)
        if not _is_ours(pod_group, counts):
            return {}
        others = pod_group.phase_managers - {USER_AGENT}
        self._note_managers(pod_group.key, others)
        status = status_of(pod_group, counts, in_line, datetime.now(UTC).replace(microsecond=0))
        return fields(status, OURS if others else (*ITS, *OURS))

    def _note_managers(self, key: str, others: Iterable[str]) -> None:
        """A user that may write a status gives itself any name, and as many as it likes."""
        new = {name[:MOST_SAID] for name in others} - self.other_managers
        named = sorted(new)[: max(0, MANAGERS_NAMED - len(self.other_managers))]
        if named:
            self.other_managers |= frozenset(named)
            log.warning("phases of PodGroups are left to another controller group=%s manager=%s", key, ", ".join(named))

    def tick(self) -> None:
        """About once a second. While nothing changes it costs nothing. Other threads have their turn between two gangs, and what they
        change meanwhile is seen where it is looked at, or by the next tick."""
        now = self._clock()
        if not self._leading():
            with self._lock:
                self._led_since = None
                self._dirty.clear()
                self._foreign.clear()
                self._strange_since.clear()
                self._came = {key: at for key, at in self._came.items() if now - at < GROWING_SECONDS}
            return
        if self._led_since is None:
            self._begin(now)
        if now >= self._line_at:
            self._line_at = now + LINE_SECONDS
            self._readers.submit(self._look_at_line)
        steps = self._new_steps()
        self._ask(self._take_moved(), now, steps)
        with self._lock:
            keys = [key for key in self._dirty if key not in self._writing]
        for key in keys:
            self._look(key, now)
            steps.pause_if_due()

    def flush(self) -> None:
        """Waits until what was begun by now is written, or given up."""
        self._readers.flush()
        self._writer.pool.flush()

    def stop(self) -> None:
        self._readers.stop()

    def _begin(self, now: float) -> None:
        """We lead from now on: what another replica has written is in the objects."""
        groups = list(self._groups.list())
        for each in groups:
            status = each.status
            if status.bound and (status.scheduled or status.succeeded or status.failed):
                self._records.ask(each.key)
        with self._lock:
            self._led_since = now
            self._due.clear()
            self._quiet_until.clear()
            self._dirty |= dict.fromkeys((each.key for each in groups), False)

    def _forget(self, key: str) -> None:
        self._records.forget(key)
        with self._lock:
            self._drop(key)
            self._foreign.pop(key, None)
            # The next look finds what other schedulers do with members that stay, and drops what a write may still note of it.
            self._dirty[key] = False

    def _drop(self, key: str) -> None:
        """Of a group without a PodGroup nothing else is to be known than what other schedulers do with it. Lock held."""
        for known in (
            self._dirty,
            self._due,
            self._quiet_until,
            self._came,
            self._refused,
            self._wanted,
            self._strange_since,
            self._moved,
        ):
            known.pop(key, None)

    def _look_at_line(self) -> None:
        """On a thread of its own: an analysis takes seconds."""
        line = self._line_now()
        with self._lock:
            before, self._line = self._line, line
            changed = [key for key in (*line, *(before.keys() - line.keys())) if before.get(key) != line.get(key)]
            self._moved |= dict.fromkeys(changed)

    def _take_moved(self) -> Collection[str]:
        """Looks at some of the groups that have another place in line now. Returns those of which more pods may have ended."""
        with self._lock:
            for key in list(self._moved)[:SLOW_AT_ONCE]:
                del self._moved[key]
                self._dirty.setdefault(key, True)
            return tuple(self._dirty)

    def _ask(self, keys: Collection[str], now: float, steps: ShortSteps) -> None:
        """Which pods have ended, each namespace with one list, in which all of them come. Where gangs end all the time some wait for it."""
        self._pace.forget(now)
        asked: dict[str, dict[str, int]] = {}
        for key in keys:
            steps.pause_if_due()
            namespace = key.partition("/")[0]
            if not self._pace.permits(namespace, now):
                continue
            counts = self._records.counts(key)
            if not counts.sure and self._groups.get(key) is not None:
                asked.setdefault(namespace, {})[key] = counts.leavings
        for namespace, of in asked.items():
            self._pace.note(namespace, now)
            self._ended_pods(namespace, partial(self._have_ended, of))

    def _have_ended(self, leavings: Mapping[str, int], pods: Iterable[corev1.Pod]) -> None:
        """leavings: by the keys of the gangs that it was asked for."""
        found = dict.fromkeys(leavings, NONE_ENDED)
        for pod in pods:
            key = self._key_of(pod) if pod.node_name else ""
            if key in found:
                before, succeeded = found[key], pod.status.phase == "Succeeded"
                found[key] = Ended(before.succeeded + succeeded, before.failed + (not succeeded))
        for key, ended in found.items():
            self._records.have_ended(key, ended, leavings[key])
        with self._lock:
            self._dirty |= dict.fromkeys(leavings, False)

    def _look(self, key: str, now: float) -> None:
        """Writes it, if that is due; leaves it to be looked at again, if it will be."""
        pod_group = self._groups.get(key)
        if pod_group is None or pod_group.unreadable:
            counts = self._records.counts(key)
            with self._lock:
                self._note_foreign(key, strangers_said(counts, 0) if counts.ours else "")
                self._drop(key)
            return
        known = self._writer.newest(pod_group)
        counts = self._records.counts(key)
        if not counts.sure:
            return  # what has ended looks as if it had gone
        conditions = self._conditions(known, counts, now) if isinstance(known, PodGroup) else []
        foreign = self._foreign_now(pod_group, counts, now)
        shown, written = self.shown(pod_group), self._writer.written(pod_group)
        growing = self.growing(pod_group)
        if written is None:
            written = fields(pod_group.status, shown)
        quiet = _is_quiet(shown) and _is_quiet(written)
        kinds = frozenset((each.type, each.status) for each in conditions)
        with self._lock:
            if foreign is not None:
                self._note_foreign(key, foreign)
            awaited = pod_group.metadata.uid in self._writer.awaited
            if not (quiet or awaited) and shown.get("phase") != written.get("phase"):
                kinds |= {("phase", str(shown.get("phase")))}
            slow = self._dirty.get(key, False)
            differs = shown != written if slow else _fast(shown) != _fast(written)
            settled = kinds == self._wanted.get(key, frozenset())  # what passes within a second is not said
            self._wanted[key] = kinds
            due = now >= self._due.setdefault(key, now + FIRST_SECONDS) and not awaited
            quiet_until = self._quiet_until.setdefault(key, now + QUIET_SECONDS)
            if now < quiet_until + (MADE_SECONDS if growing else 0.0):
                due = due and not quiet
            refused = now < self._refused.get(key, 0.0)
            if (kinds and settled and not refused) or (differs and due):
                self._due[key] = now + BETWEEN_SECONDS
                self._quiet_until[key] = now + QUIET_SECONDS
                self._writing.add(key)
                write = True
            else:
                write = False
                if not kinds and not differs and key not in self._strange_since:
                    self._dirty.pop(key, None)
        if write:
            self._writer.pool.submit(partial(self._write, pod_group, bool(conditions)), pod_group.metadata.namespace)

    def _conditions(self, pod_group: PodGroup, counts: Counts, now: float) -> list[Condition]:
        """Of a group that is not ours only that a fraction of it runs, once that has lasted."""
        if _is_ours(pod_group, counts):
            return conditions_of(pod_group, counts)
        text = self._foreign_now(pod_group, counts, now)
        if text is None:
            return []
        if not text:
            return conditions_of(pod_group, Counts()) if _says_foreign(pod_group) else []
        return [each for each in conditions_of(pod_group, counts) if each.reason == FOREIGN_SCHEDULER]

    def _foreign_now(self, pod_group: PodGroup, counts: Counts, now: float) -> str | None:
        """What other schedulers do with it, in words; empty where that is nothing; None while it may pass, as a gang on its way does."""
        if _is_ours(pod_group, counts):
            return foreign_said(pod_group, counts)
        others = pod_group.phase_managers - {USER_AGENT}
        text = "" if others else strangers_said(counts, pod_group.spec.min_member)
        if not text:
            self._strange_since.pop(pod_group.key, None)
            return ""
        since = self._strange_since.setdefault(pod_group.key, now)
        return text if now - since >= FRACTION_SECONDS or _says_foreign(pod_group) else None

    def _note_foreign(self, key: str, text: str) -> None:
        """Lock held."""
        if text:
            self._foreign[key] = text
        else:
            self._foreign.pop(key, None)

    def _write(self, pod_group: PodGroup, conditions_change: bool) -> None:
        """On the writer's thread. What waited until another leads is that one's to write."""
        key = pod_group.key
        try:
            if not self._leading():
                return
            known = self._writer.newest(pod_group)
            found: list[Condition] = []
            if conditions_change and isinstance(known, PodGroup):
                found = self._conditions(known, self._records.counts(key), self._clock())
            self._writer.write(known, found)
            self._tell(pod_group, found)
        except ApiError as error:
            log.info("PodGroup status not written group=%s error=%s", key, error)
            with self._lock:
                again = BETWEEN_SECONDS if is_transient(error) else AGAIN_SECONDS
                self._due[key] = self._refused[key] = self._clock() + again
        finally:
            with self._lock:
                self._writing.discard(key)

    def _tell(self, pod_group: PodGroup, conditions: Iterable[Condition]) -> None:
        for each in conditions:
            if each.type == pod_group.scheduled:
                self._unsaid(pod_group.metadata.uid)
            if each.reason == FOREIGN_SCHEDULER:
                reference = pod_group_reference(pod_group)
                self._recorder.event(reference, "Warning", FOREIGN_SCHEDULER, "Scheduling", each.message)


def _says_foreign(pod_group: PodGroup) -> bool:
    return any(each.reason == FOREIGN_SCHEDULER and each.status == "True" for each in pod_group.status.conditions)


def _is_ours(pod_group: PodGroup, counts: Counts) -> bool:
    return counts.ours or bool(pod_group.status.bound)


def _asks_and_says(pod_group: PodGroup) -> object:
    return pod_group.spec, pod_group.status.conditions, pod_group.phase_managers


def _is_quiet(found: Fields) -> bool:
    """Whether none of its pods has, or had, a node."""
    return not any(found.get(name) for name in COUNTED)


def _fast(found: Fields) -> Fields:
    """What is written as soon as it may be."""
    return {name: value for name, value in found.items() if name not in SLOW}
