"""Pods that are ready to be tried, in QueueSort's order, and the pods that are being tried.

kube-scheduler: pkg/scheduler/backend/queue/active_queue.go
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from extender.backend.queue.in_flight_events import HappenedEvent, InFlightEvents
from extender.backend.queue.pod_heap import Less, PodHeap
from extender.backend.queue.queued_pod import QueuedPod


class ActiveQueue:
    """Not thread-safe: the queue's lock guards it.

    pop_elsewhere: asked for a pod when this queue is empty; the back-off queue's early pods, or nothing.
    """

    def __init__(self, less: Less, pop_elsewhere: Callable[[], QueuedPod | None]) -> None:
        self._ready = PodHeap(less)
        self._pop_elsewhere = pop_elsewhere
        self._in_flight = InFlightEvents()
        self._popped: dict[str, QueuedPod] = {}
        self.scheduling_cycle = 0

    def __len__(self) -> int:
        return len(self._ready)

    def __contains__(self, key: object) -> bool:
        return key in self._ready

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(self._ready)

    def put(self, entry: QueuedPod) -> None:
        self._ready.put(entry)

    def get(self, key: str) -> QueuedPod | None:
        return self._ready.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        return self._ready.remove(key)

    def pop(self) -> QueuedPod | None:
        """The pod is in flight from now on, at its next attempt, and no plugin has refused it yet."""
        entry = self._ready.pop() or self._pop_elsewhere()
        if entry is None:
            return None
        entry = replace(
            entry,
            attempts=entry.attempts + 1,
            unschedulable_plugins=frozenset(),
            pending_plugins=frozenset(),
            gating_plugin="",
        )
        self.scheduling_cycle += 1
        self._in_flight.begin(entry.uid)
        self._popped[entry.uid] = entry
        return entry

    def done(self, uid: str) -> None:
        self._in_flight.done(uid)
        self._popped.pop(uid, None)

    def in_flight(self, uid: str) -> bool:
        return uid in self._in_flight

    def in_flight_pods(self) -> Sequence[QueuedPod]:
        return tuple(self._popped.values())

    def in_flight_events(self) -> Sequence[HappenedEvent]:
        return self._in_flight.events()

    def record(self, happened: HappenedEvent) -> None:
        self._in_flight.record(happened.event, happened.old, happened.new)

    def events_since_pop(self, uid: str) -> Sequence[HappenedEvent] | None:
        return self._in_flight.events_for(uid)
