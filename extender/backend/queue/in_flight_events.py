"""The pods that are being tried just now, and what has happened in the cluster since each was popped.

A refusal is judged against the state of a while ago: when the pod comes back, the events in between are replayed.
kube-scheduler: pkg/scheduler/backend/queue/active_queue.go (inFlightPods, inFlightEvents)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from extender.framework.interface import ClusterEvent


@dataclass(frozen=True, slots=True)
class HappenedEvent:
    event: ClusterEvent
    old: object = None
    new: object = None


class InFlightEvents:
    """Not thread-safe: the queue's lock guards it. An event is kept until no pod popped before it is in flight."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}  # UID -> number of the first event after its pop; ascending in this order
        self._events: deque[HappenedEvent] = deque()
        self._first = 0  # number of the oldest kept event

    def __contains__(self, uid: object) -> bool:
        return uid in self._since

    def pods(self) -> Sequence[str]:
        """UIDs, in the order in which they were popped."""
        return tuple(self._since)

    def events(self) -> Sequence[HappenedEvent]:
        return tuple(self._events)

    def begin(self, uid: str) -> None:
        """The pod was popped."""
        self.done(uid)
        self._since[uid] = self._first + len(self._events)

    def record(self, event: ClusterEvent, old: object = None, new: object = None) -> bool:
        """False where no pod is in flight, so that the event concerns none."""
        if not self._since:
            return False
        self._events.append(HappenedEvent(event, old, new))
        return True

    def events_for(self, uid: str) -> Sequence[HappenedEvent] | None:
        """All since the pod was popped; None if it is not in flight."""
        since = self._since.get(uid)
        if since is None:
            return None
        return tuple(islice(self._events, since - self._first, None))

    def done(self, uid: str) -> None:
        """Harmless for a pod that is not in flight."""
        if self._since.pop(uid, None) is None:
            return
        oldest = next(iter(self._since.values()), self._first + len(self._events))
        while self._first < oldest:
            self._events.popleft()
            self._first += 1
