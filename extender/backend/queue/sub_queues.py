"""The active and the back-off queue, the unschedulable pods, and every move between them.

`PriorityQueue` puts a lock around it.
kube-scheduler: pkg/scheduler/backend/queue/scheduling_queue.go (moveToActiveQ, requeuePodWithQueueingStrategy, ...)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from extender import metrics
from extender.api import corev1
from extender.backend.queue.active_queue import ActiveQueue
from extender.backend.queue.backoff import Backoff
from extender.backend.queue.backoff_queue import BackoffQueue
from extender.backend.queue.gates import Gates
from extender.backend.queue.in_flight_events import HappenedEvent
from extender.backend.queue.pod_heap import Less
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.queueing_hints import QueueingHints, Strategy
from extender.backend.queue.unschedulable_pods import FLUSH_INTERVAL, UnschedulablePods
from extender.framework import events
from extender.framework.handle import Clock
from extender.framework.interface import ClusterEvent


class QueueError(Exception):
    """A pod was handed back that is in the queue already."""


class Place(Enum):
    ACTIVE = "activeQ"
    BACKOFF = "backoffQ"
    UNSCHEDULABLE = "unschedulablePods"


_QUEUE_WORDS = {Place.ACTIVE: "active", Place.BACKOFF: "backoff", Place.UNSCHEDULABLE: "unschedulable"}


@dataclass(frozen=True, slots=True)
class PendingPods:
    """Go: PendingPods; `gated` are those of `unschedulable` that PreEnqueue holds back."""

    pods: tuple[corev1.Pod, ...]
    active: int
    backoff: int
    unschedulable: int
    gated: int

    @property
    def summary(self) -> str:
        return f"activeQ:{self.active}; backoffQ:{self.backoff}; unschedulablePods:{self.unschedulable}"


class SubQueues:
    """Not thread-safe: the queue's lock guards it. Methods that say so return whether a pod can be popped now that could not."""

    def __init__(
        self,
        less: Less,
        gates: Gates,
        hints: QueueingHints,
        backoff: Backoff,
        max_in_unschedulable: float,
        pop_from_backoff: bool,
        clock: Clock,
    ) -> None:
        self._gates = gates
        self._hints = hints
        self._clock = clock
        self._pop_from_backoff = pop_from_backoff
        self.backoff = BackoffQueue(backoff, less)
        self.active = ActiveQueue(less, self._pop_early if pop_from_backoff else lambda: None)
        self.unschedulable = UnschedulablePods(max_in_unschedulable)
        self._flush_leftovers_at = _next_tick(clock())

    @property
    def _all(self) -> tuple[tuple[Place, ActiveQueue | BackoffQueue | UnschedulablePods], ...]:
        return (Place.ACTIVE, self.active), (Place.BACKOFF, self.backoff), (Place.UNSCHEDULABLE, self.unschedulable)

    def find(self, key: str) -> tuple[QueuedPod, Place] | None:
        for place, queue in self._all:
            entry = queue.get(key)
            if entry is not None:
                return entry, place
        return None

    def remove(self, key: str) -> None:
        for _, queue in self._all:
            queue.remove(key)

    def replace_waiting(self, entry: QueuedPod, place: Place) -> None:
        dict(self._all)[place].put(entry)

    def waiting(self) -> Sequence[tuple[QueuedPod, Place]]:
        return [(entry, place) for place, queue in self._all for entry in queue]

    def pending(self) -> PendingPods:
        pods = tuple(entry.pod for _, queue in self._all for entry in queue)
        unschedulable = self.unschedulable
        return PendingPods(pods, len(self.active), len(self.backoff), len(unschedulable), unschedulable.gated)

    def _pop_early(self) -> QueuedPod | None:
        entry = self.backoff.pop_early()
        if entry is not None:
            _count(Place.ACTIVE, events.POP_FROM_BACKOFF)
        return entry

    def _park(self, entry: QueuedPod, why: str) -> None:
        if entry.key not in self.unschedulable:
            _count(Place.UNSCHEDULABLE, why)
        self.unschedulable.put(entry)

    def to_active(self, entry: QueuedPod, why: str, *, gates: bool = True) -> bool:
        """False if PreEnqueue holds it back. why: the event's label, for metrics. Go: moveToActiveQ."""
        if gates:
            entry = self._gates.check(entry)
        if entry.gated:
            if entry.key not in self.active and entry.key not in self.backoff:
                self._park(entry, why)
            return False
        if entry.initial_attempt_timestamp is None:
            entry = replace(entry, initial_attempt_timestamp=self._clock())
        self.unschedulable.remove(entry.key)
        self.backoff.remove(entry.key)
        self.active.put(entry)
        _count(Place.ACTIVE, why)
        return True

    def _to_backoff(self, entry: QueuedPod, why: str) -> bool:
        """False if PreEnqueue holds it back; it is asked here because the pod may be popped early. Go: moveToBackoffQ."""
        if self._pop_from_backoff:
            entry = self._gates.check(entry)
            if entry.gated:
                self._park(entry, why)
                return False
        self.unschedulable.remove(entry.key)
        self.backoff.put(entry)
        _count(Place.BACKOFF, why)
        return True

    def activate(self, key: str) -> bool:
        """Go: activate. A pod from the back-off queue passed PreEnqueue when it came there."""
        entry = self.backoff.get(key)
        if entry is not None:
            return self.to_active(entry, events.FORCE_ACTIVATE.label, gates=not self._pop_from_backoff)
        entry = self.unschedulable.get(key)
        return entry is not None and self.to_active(entry, events.FORCE_ACTIVATE.label)

    def requeue(self, entry: QueuedPod, strategy: Strategy, why: str) -> Place:
        """Go: requeuePodWithQueueingStrategy."""
        if strategy is Strategy.SKIP:
            self._park(entry, why)
            return Place.UNSCHEDULABLE
        backing_off = self.backoff.backoff.backing_off(entry, self._clock())
        if strategy is Strategy.AFTER_BACKOFF and backing_off:
            return Place.BACKOFF if self._to_backoff(entry, why) else Place.UNSCHEDULABLE
        return Place.ACTIVE if self.to_active(entry, why) else Place.UNSCHEDULABLE

    def requeue_updated(self, entry: QueuedPod, happened: Iterable[HappenedEvent]) -> bool:
        """A refused pod has changed itself: the first change that can help counts. True if it was woken."""
        return any(
            self.requeue(entry, self._hints.worth_requeuing(entry, each), each.event.label) is not Place.UNSCHEDULABLE
            for each in happened
        )

    def of_interest(self, event: ClusterEvent) -> bool:
        return self._hints.of_interest(event)

    def move(self, entries: Iterable[QueuedPod], happened: HappenedEvent) -> bool:
        """True if any was woken. Go: movePodsToActiveOrBackoffQueue."""
        woken = False
        for entry in entries:
            if entry.gated and not self._hints.opens_gate(entry, happened.event):
                continue
            strategy = self._hints.worth_requeuing(entry, happened)
            if strategy is not Strategy.SKIP:
                woken = self.requeue(entry, strategy, happened.event.label) is not Place.UNSCHEDULABLE or woken
        self.active.record(happened)
        return woken

    def take_back(self, entry: QueuedPod) -> Place:
        """After an attempt. A refusal ends a row of errors."""
        known = self.find(entry.key)
        if known is not None:
            raise QueueError(f"Pod {entry.key} is already present in the {_QUEUE_WORDS[known[1]]} queue")
        now = self._clock()
        if entry.rejector_plugins:
            refused = entry.unschedulable_count + 1
            entry = replace(entry, timestamp=now, unschedulable_count=refused, consecutive_errors_count=0)
        else:
            entry = replace(entry, timestamp=now, consecutive_errors_count=entry.consecutive_errors_count + 1)
        return self.requeue(entry, self._replayed(entry), events.SCHEDULE_ATTEMPT_FAILURE)

    def _replayed(self, entry: QueuedPod) -> Strategy:
        """What the events since its pop ask for. Go: determineSchedulingHintForInFlightPod."""
        since = self.active.events_since_pop(entry.uid)
        if since is None or not entry.rejector_plugins:
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for happened in since:
            wanted = self._hints.worth_requeuing(entry, happened)
            if wanted is Strategy.IMMEDIATELY:
                return wanted
            if wanted is Strategy.AFTER_BACKOFF:
                strategy = wanted
                if not entry.pending_plugins:
                    break
        return strategy

    def flush(self) -> bool:
        """What is due by now. True if any pod was woken."""
        now = self._clock()
        woken = False
        for entry in self.backoff.pop_completed(now):
            woken = self.to_active(entry, events.BACKOFF_COMPLETE, gates=not self._pop_from_backoff) or woken
        if now >= self._flush_leftovers_at:
            self._flush_leftovers_at = _next_tick(now)
            leftovers = self.unschedulable.leftovers(now)
            if leftovers:
                woken = self.move(leftovers, HappenedEvent(events.UNSCHEDULABLE_TIMEOUT)) or woken
        return woken

    def next_flush(self, leftovers: bool) -> float:
        """Infinity for never."""
        at = self.backoff.next_completion()
        oldest = self.unschedulable.next_leftover() if leftovers else None
        return min(math.inf if at is None else at, math.inf if oldest is None else _next_tick(oldest))

    @property
    def ready(self) -> bool:
        """Whether a pod can be popped now."""
        return len(self.active) > 0 or (self._pop_from_backoff and self.backoff.has_refused)


def _count(place: Place, why: str) -> None:
    metrics.queue_incoming_pods.labels(_QUEUE_WORDS[place], why).inc()


def _next_tick(instant: float) -> float:
    """The next flush of leftovers after it."""
    return (math.floor(instant / FLUSH_INTERVAL) + 1) * FLUSH_INTERVAL
