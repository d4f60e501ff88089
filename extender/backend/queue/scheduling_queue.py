"""The pods that have no node yet, and whose turn it is: kube-scheduler's PriorityQueue.

Event handlers add, update, delete and move; scheduleOne pops, and hands back what could not be placed.
kube-scheduler: pkg/scheduler/backend/queue/scheduling_queue.go

          add             pop                    bound, or gone: done
    ---> activeQ --------------> in flight ------------------------->
           ^  ^                      | refused or failed: the events since its pop are replayed
           |  |  back-off over       v
           |  +------------ backoffQ (refused), errorBackoffQ (failed)
           |                         ^ an event that can help, back-off not over
           +------------- unschedulablePods (refused, or gated by PreEnqueue)
        an event that can help, back-off over
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from extender.api import corev1
from extender.backend.queue.active_queue import ActiveQueue
from extender.backend.queue.backoff import Backoff
from extender.backend.queue.backoff_queue import BackoffQueue
from extender.backend.queue.gates import Gates
from extender.backend.queue.in_flight_events import HappenedEvent
from extender.backend.queue.nominator import PodNominator, PodRef
from extender.backend.queue.pod_heap import Less
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.queueing_hints import QueueingHints, Strategy
from extender.backend.queue.unschedulable_pods import (
    DEFAULT_MAX_IN_UNSCHEDULABLE_PODS,
    FLUSH_INTERVAL,
    UnschedulablePods,
)
from extender.framework import events
from extender.framework.handle import Clock
from extender.framework.interface import ClusterEvent, PreEnqueuePlugin
from extender.framework.pod_info import PodInfo

PreCheck = Callable[[corev1.Pod], bool]


class QueueError(Exception):
    """A pod was handed back that is in the queue already."""


class Place(Enum):
    ACTIVE = "activeQ"
    BACKOFF = "backoffQ"
    UNSCHEDULABLE = "unschedulablePods"


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


class PriorityQueue:
    """Thread-safe. `_changed` guards all sub-queues; within it, as in kube-scheduler, PreEnqueue plugins, hints and the
    nominator are called, which are quick, do no I/O and do not call back. Lock order: queue, nominator, informer's store.
    """

    def __init__(
        self,
        less: Less,
        *,
        nominator: PodNominator | None = None,
        pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]] | None = None,
        hints: QueueingHints | None = None,
        backoff: Backoff | None = None,
        max_in_unschedulable: float = DEFAULT_MAX_IN_UNSCHEDULABLE_PODS,
        pop_from_backoff: bool = True,
        clock: Clock = time.monotonic,
    ) -> None:
        """`pre_enqueue` and `hints` by scheduler name; pop_from_backoff is the gate SchedulerPopFromBackoffQ."""
        self.nominator = PodNominator() if nominator is None else nominator
        self.nominator.set_lookup(self._find)
        self._gates = Gates(pre_enqueue or {})
        self._hints = QueueingHints({}) if hints is None else hints
        self._clock = clock
        self._changed = threading.Condition()
        self._backoff = BackoffQueue(backoff or Backoff(), less)
        self._pop_from_backoff = pop_from_backoff
        self._active = ActiveQueue(less, self._backoff.pop_early if pop_from_backoff else lambda: None)
        self._unschedulable = UnschedulablePods(max_in_unschedulable)
        self._flush_leftovers_at = _next_tick(clock())
        self._closed = False

    # What happens to pods that wait

    def add(self, pod: corev1.Pod) -> None:
        """A pod without a node was seen for the first time."""
        with self._changed:
            if self._to_active(self._new_entry(pod), nominate=True):
                self._changed.notify()

    def update(self, old: corev1.Pod | None, new: corev1.Pod) -> None:
        """A waiting pod takes its new object; one that was refused is tried again if the change can help."""
        happened = [
            HappenedEvent(event, old, new)
            for event in (events.pod_scheduling_properties_change(old, new) if old is not None else ())
        ]
        with self._changed:
            if self._active.in_flight(new.uid):
                for each in happened:
                    self._active.record(each)
                return
            for queue in (self._active, self._backoff):
                entry = queue.get(new.key)
                if entry is not None:
                    queue.put(entry.with_pod(new))
                    self.nominator.update(old or entry.pod, new)
                    return
            entry = self._unschedulable.get(new.key)
            if entry is None:
                if self._to_active(self._new_entry(new), nominate=True):
                    self._changed.notify()
                return
            self._unschedulable.put(entry.with_pod(new))
            self.nominator.update(old or entry.pod, new)
            self._update_refused(entry.with_pod(new), happened)

    def delete(self, pod: corev1.Pod) -> None:
        """A pod in flight stays so until `done`."""
        with self._changed:
            self.nominator.delete_nominated_pod_if_exists(pod)
            for queue in (self._active, self._backoff, self._unschedulable):
                if queue.remove(pod.key) is not None:
                    return

    def activate(self, pods: Iterable[corev1.Pod]) -> None:
        """Tries them next, back-off or not; for a pod in flight it counts as an event that can help."""
        with self._changed:
            for pod in pods:
                entry = self._unschedulable.get(pod.key) or self._backoff.get(pod.key)
                if entry is not None:
                    if self._to_active(entry, gates=pod.key not in self._backoff or not self._pop_from_backoff):
                        self._changed.notify()
                elif self._active.in_flight(pod.uid):
                    self._active.record(HappenedEvent(events.FORCE_ACTIVATE, None, pod))

    # What happens in the cluster

    def move_all_to_active_or_backoff_queue(
        self, event: ClusterEvent, old: object = None, new: object = None, pre_check: PreCheck | None = None
    ) -> None:
        """Wakes the refused pods for which a hint of a plugin that refused them says so; noted for pods in flight."""
        with self._changed:
            if not self._hints.of_interest(event):
                return
            waiting = [entry for entry in self._unschedulable if pre_check is None or pre_check(entry.pod)]
            self._move(waiting, HappenedEvent(event, old, new))

    def assigned_pod_added(self, pod: corev1.Pod) -> None:
        """kube-scheduler looks at pods with terms that meet this one only; here the hints alone decide."""
        self.move_all_to_active_or_backoff_queue(events.ASSIGNED_POD_ADD, None, pod)

    def assigned_pod_updated(self, old: corev1.Pod, new: corev1.Pod) -> None:
        for event in events.pod_scheduling_properties_change(old, new):
            self.move_all_to_active_or_backoff_queue(event, old, new)

    # One pod's attempt

    def pop(self, timeout: float | None = None) -> QueuedPod | None:
        """Waits for a pod; None when `timeout` has passed or the queue was closed. Does the flushes that are due meanwhile.

        The waiting is in real seconds: on virtual time use `pop_ready` and `next_wakeup`.
        """
        deadline = math.inf if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                self._flush()
                entry = self._active.pop()
                if entry is not None:
                    return entry
                now = self._clock()
                if now >= deadline:
                    return None
                wait = min(deadline, self._next_flush(leftovers=True)) - now
                self._changed.wait(None if wait == math.inf else max(wait, 0.001))
            return None

    def pop_ready(self) -> QueuedPod | None:
        """The next pod if there is one now. It is in flight until `done` or `add_unschedulable_if_not_present`."""
        with self._changed:
            self._flush()
            return self._active.pop()

    def done(self, uid: str) -> None:
        """The attempt can no longer end as a refusal: from WaitOnPermit on, or the pod is gone."""
        with self._changed:
            self._active.done(uid)

    def add_unschedulable_if_not_present(self, entry: QueuedPod) -> Place:
        """Takes a pod back after its attempt, with `rejected_by` filled in. Returns where it waits.

        Raises QueueError if it is in the queue already. In any case it is no longer in flight.
        """
        with self._changed:
            try:
                self._check_absent(entry)
                place = self._requeue(self._counted(entry), self._replayed(entry))
            finally:
                self._active.done(entry.uid)
            if place is not Place.UNSCHEDULABLE:
                self._changed.notify()
            return place

    # Time

    def flush(self) -> None:
        """What is due now: pods whose back-off is over, and every 30 s those that waited for over five minutes."""
        with self._changed:
            self._flush()

    def next_wakeup(self, *, leftovers: bool = False) -> float | None:
        """When a pod can be popped, if nothing happens: now, at the end of a back-off, or never (None).

        leftovers: also at the flush of pods that no event has helped.
        """
        with self._changed:
            now = self._clock()
            if len(self._active) or (self._pop_from_backoff and self._backoff.has_refused):
                return now
            at = self._next_flush(leftovers)
            return None if at == math.inf else max(at, now)

    def close(self) -> None:
        """Ends every `pop`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # Views

    def get(self, pod: corev1.Pod) -> tuple[QueuedPod, Place] | None:
        """The pod by `namespace/name`, and where it waits."""
        with self._changed:
            for place, queue in (
                (Place.ACTIVE, self._active),
                (Place.BACKOFF, self._backoff),
                (Place.UNSCHEDULABLE, self._unschedulable),
            ):
                entry = queue.get(pod.key)
                if entry is not None:
                    return entry, place
            return None

    def in_flight_pods(self) -> Sequence[QueuedPod]:
        with self._changed:
            return self._active.in_flight_pods()

    def pending_pods(self) -> PendingPods:
        with self._changed:
            pods = [entry.pod for queue in (self._active, self._backoff, self._unschedulable) for entry in queue]
            counts = len(self._active), len(self._backoff), len(self._unschedulable), self._unschedulable.gated
            return PendingPods(tuple(pods), *counts)

    def _find(self, ref: PodRef) -> corev1.Pod | None:
        key = f"{ref.namespace}/{ref.name}"
        with self._changed:
            entry = self._active.get(key) or self._unschedulable.get(key) or self._backoff.get(key)
        return None if entry is None else entry.pod

    # Below here the lock is held

    def _new_entry(self, pod: corev1.Pod) -> QueuedPod:
        return QueuedPod(PodInfo(pod), self._clock())

    def _to_active(self, entry: QueuedPod, *, gates: bool = True, nominate: bool = False) -> bool:
        """False if PreEnqueue holds it back. Go: moveToActiveQ."""
        if gates:
            entry = self._gates.check(entry)
        if entry.gated:
            if entry.key not in self._active and entry.key not in self._backoff:
                self._unschedulable.put(entry)
            return False
        if entry.initial_attempt_timestamp is None:
            entry = replace(entry, initial_attempt_timestamp=self._clock())
        self._unschedulable.remove(entry.key)
        self._backoff.remove(entry.key)
        self._active.put(entry)
        if nominate:
            self.nominator.add(entry.pod)
        return True

    def _to_backoff(self, entry: QueuedPod) -> bool:
        """False if PreEnqueue holds it back; it is asked here because the pod may be popped early. Go: moveToBackoffQ."""
        if self._pop_from_backoff:
            entry = self._gates.check(entry)
            if entry.gated:
                self._unschedulable.put(entry)
                return False
        self._unschedulable.remove(entry.key)
        self._backoff.put(entry)
        return True

    def _requeue(self, entry: QueuedPod, strategy: Strategy) -> Place:
        """Go: requeuePodWithQueueingStrategy."""
        if strategy is Strategy.SKIP:
            self._unschedulable.put(entry)
            return Place.UNSCHEDULABLE
        backing_off = self._backoff.backoff.backing_off(entry, self._clock())
        if strategy is Strategy.AFTER_BACKOFF and backing_off:
            return Place.BACKOFF if self._to_backoff(entry) else Place.UNSCHEDULABLE
        return Place.ACTIVE if self._to_active(entry) else Place.UNSCHEDULABLE

    def _update_refused(self, entry: QueuedPod, happened: Iterable[HappenedEvent]) -> None:
        for each in happened:
            if self._requeue(entry, self._hints.worth_requeuing(entry, each)) is not Place.UNSCHEDULABLE:
                self._changed.notify()
                return

    def _move(self, entries: Iterable[QueuedPod], happened: HappenedEvent) -> None:
        """Go: movePodsToActiveOrBackoffQueue."""
        woken = False
        for entry in entries:
            if entry.gated and not self._hints.opens_gate(entry, happened.event):
                continue
            strategy = self._hints.worth_requeuing(entry, happened)
            if strategy is not Strategy.SKIP:
                woken = self._requeue(entry, strategy) is not Place.UNSCHEDULABLE or woken
        self._active.record(happened)
        if woken:
            self._changed.notify()

    def _check_absent(self, entry: QueuedPod) -> None:
        for queue, name in (
            (self._unschedulable, "unschedulable"),
            (self._active, "active"),
            (self._backoff, "backoff"),
        ):
            if entry.key in queue:
                raise QueueError(f"Pod {entry.key} is already present in the {name} queue")

    def _counted(self, entry: QueuedPod) -> QueuedPod:
        """A refusal ends a row of errors."""
        now = self._clock()
        if entry.rejector_plugins:
            refused = entry.unschedulable_count + 1
            return replace(entry, timestamp=now, unschedulable_count=refused, consecutive_errors_count=0)
        return replace(entry, timestamp=now, consecutive_errors_count=entry.consecutive_errors_count + 1)

    def _replayed(self, entry: QueuedPod) -> Strategy:
        """What the events since its pop ask for. Go: determineSchedulingHintForInFlightPod."""
        if not entry.rejector_plugins:
            return Strategy.AFTER_BACKOFF
        since = self._active.events_since_pop(entry.uid)
        if since is None:
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

    def _flush(self) -> None:
        now = self._clock()
        for entry in self._backoff.pop_completed(now):
            if self._to_active(entry, gates=not self._pop_from_backoff):
                self._changed.notify()
        if now >= self._flush_leftovers_at:
            self._flush_leftovers_at = _next_tick(now)
            leftovers = self._unschedulable.leftovers(now)
            if leftovers:
                self._move(leftovers, HappenedEvent(events.UNSCHEDULABLE_TIMEOUT))

    def _next_flush(self, leftovers: bool) -> float:
        """Infinity for never."""
        at = self._backoff.next_completion()
        oldest = self._unschedulable.next_leftover() if leftovers else None
        return min(math.inf if at is None else at, math.inf if oldest is None else _next_tick(oldest))


def _next_tick(instant: float) -> float:
    """The next flush of leftovers after it."""
    return (math.floor(instant / FLUSH_INTERVAL) + 1) * FLUSH_INTERVAL
