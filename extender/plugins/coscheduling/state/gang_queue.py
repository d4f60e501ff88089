"""The gangs that wait, each in one place: active, backing off, or unschedulable.

PodGroupManager keeps it; PlanningRounds takes gangs out of `active` and plans them, in the manager's order; WakeUps moves gangs that
an event can help, and the plugin's tick those that are due.
kube-scheduler: pkg/scheduler/backend/queue (scheduling_queue.go, active_queue.go, backoff_queue.go), for pods

    (none) --a member is refused, or gated--> unschedulable --an event that can help, its own events, a time--> active
    active --begin_planning--> unschedulable: what its plan found, or (none) where no member waits
    any --its holds were rejected--> backing off --a time--> active
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush

from extender import metrics
from extender.plugins.coscheduling.waits_for import ANYTHING, OWN_EVENTS, WaitIndex, WaitsFor


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """waits_for: what an event has to change. retry_at: when the gang is planned again though nothing happens, in seconds of the clock."""

    waits_for: WaitsFor = ANYTHING
    retry_at: float = math.inf

    @property
    def known(self) -> bool:
        """Whether a plan has found it, so that it outlasts a moment in which no member waits."""
        return self.retry_at < math.inf or self.waits_for not in (ANYTHING, OWN_EVENTS)


class GangQueue:
    """Keys of groups. Not locked: the manager's lock guards it. clock: monotonic seconds.

    A gang that is being planned is unschedulable meanwhile, and waits for anything: what happens to it makes it active again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.waiting: set[str] = set()  # gangs of which a member is refused or gated: each of them is in one place
        self.active: set[str] = set()
        self.backing_off: dict[str, float] = {}  # -> until when it is not planned, whatever happens
        self.unschedulable: dict[str, Unschedulable] = {}
        self.index = WaitIndex()  # of those that are unschedulable
        self.moves = 0  # grows whenever a gang becomes active
        self._active_since: dict[str, float] = {}  # of those that are active; others may be in it, and count no more
        self._times: list[tuple[float, str]] = []  # a heap; an entry counts if the gang still waits for that time

    def follow(self, key: str, waits: bool) -> None:
        """waits: whether a member of the gang is refused or gated from now on."""
        if waits:
            self.waiting.add(key)
            if not (key in self.active or key in self.backing_off or key in self.unschedulable):
                self._put(key, Unschedulable())
            return
        self.waiting.discard(key)
        if key in self.unschedulable and not self.unschedulable[key].known:
            self._take(key)

    def move_to_active(self, keys: Iterable[str]) -> None:
        """Something has happened to these. A gang that backs off stays where it is."""
        for key in keys:
            if key in self.active or self.backs_off(key):
                continue
            self._take(key)
            self.backing_off.pop(key, None)
            self.active.add(key)
            self._active_since[key] = self._clock()
            self.moves += 1

    def move_all_to_active(self, but: Collection[str] = ()) -> None:
        """Room has come free that any gang may use which waits for more than its own events. but: gangs that stay."""
        for key in [key for key, found in self.unschedulable.items() if found.waits_for is not OWN_EVENTS]:
            if key in but:
                continue
            if key in self.waiting:
                self.move_to_active((key,))
            else:
                self.forget_why(key)

    def begin_planning(self, key: str) -> None:
        """kube-scheduler: Pop"""
        self.active.discard(key)
        if (since := self._active_since.pop(key, None)) is not None:
            metrics.planning_queue_duration.observe(self._clock() - since)
        if key in self.waiting:
            self.add_unschedulable(key)

    def add_unschedulable(self, key: str, waits_for: WaitsFor = ANYTHING, retry_at: float = math.inf) -> None:
        """It was planned, or could not be. A gang of which no member waits is kept if there is something to be kept."""
        if key in self.backing_off:
            return
        self.active.discard(key)
        found = Unschedulable(waits_for, retry_at)
        if found.known or key in self.waiting:
            self._put(key, found)
        else:
            self._take(key)

    def settle(self, key: str, waits_for: WaitsFor) -> None:
        """The gang has its places; what happened to it while it was planned still counts."""
        if key not in self.active:
            self.add_unschedulable(key, waits_for)

    def forget_why(self, key: str) -> None:
        """What a plan has found of the gang is true no longer."""
        known = self.unschedulable.get(key)
        if known is not None and known.waits_for is not ANYTHING:
            self.add_unschedulable(key, retry_at=known.retry_at)

    def retry_at(self, key: str, at: float) -> None:
        """The gang is planned again at that time, or at the later one that was set before; once it has been, if that is now."""
        if key in self.active or key in self.backing_off:
            return
        known = self.unschedulable.get(key, Unschedulable())
        at = at if math.isinf(known.retry_at) else max(at, known.retry_at)
        self.add_unschedulable(key, known.waits_for, at)

    def back_off(self, key: str, seconds: float) -> None:
        self._take(key)
        self.active.discard(key)
        self.backing_off[key] = self._clock() + seconds
        heappush(self._times, (self.backing_off[key], key))

    def backs_off(self, key: str) -> bool:
        return self.backing_off.get(key, -math.inf) > self._clock()

    def flush(self) -> bool:
        """Moves gangs that are due to active. Returns whether any gang is active. kube-scheduler: flushBackoffQCompleted,
        flushUnschedulablePodsLeftover
        """
        now = self._clock()
        while self._times and self._times[0][0] <= now:
            at, key = heappop(self._times)
            if at == self._time_of(key):
                self.move_to_active((key,))
        return bool(self.active)

    def forget(self, key: str) -> None:
        """The group is gone."""
        self._take(key)
        self._active_since.pop(key, None)
        self.waiting.discard(key)
        self.active.discard(key)
        self.backing_off.pop(key, None)

    def _time_of(self, key: str) -> float | None:
        if (until := self.backing_off.get(key)) is not None:
            return until
        known = self.unschedulable.get(key)
        return known.retry_at if known is not None else None

    def _put(self, key: str, found: Unschedulable) -> None:
        self._take(key)
        self.unschedulable[key] = found
        self.index.add(key, found.waits_for)
        if found.retry_at < math.inf:
            heappush(self._times, (found.retry_at, key))

    def _take(self, key: str) -> None:
        if (found := self.unschedulable.pop(key, None)) is not None:
            self.index.remove(key, found.waits_for)
