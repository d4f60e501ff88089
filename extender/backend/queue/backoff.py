"""How long a pod that failed waits before it is tried again: 1 s, 2 s, 4 s, ... up to 10 s.

kube-scheduler: pkg/scheduler/backend/queue/backoff_queue.go (getBackoffTime, calculateBackoffDuration)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from extender.backend.queue.queued_pod import QueuedPod

DEFAULT_INITIAL_BACKOFF = 1.0
DEFAULT_MAX_BACKOFF = 10.0
ORDERING_WINDOW = 1.0
"""Ends of back-off are rounded down to this, so that pods of one window are ordered by QueueSort."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds. An error counts apart from refusals: it starts anew at one second."""

    initial: float = DEFAULT_INITIAL_BACKOFF
    maximum: float = DEFAULT_MAX_BACKOFF

    def duration(self, entry: QueuedPod) -> float:
        count = entry.consecutive_errors_count or entry.unschedulable_count
        if count == 0:
            return 0.0
        shift = min(count - 1, 62)
        return min(self.maximum, self.initial * (1 << shift))

    def expiry(self, entry: QueuedPod) -> float:
        """When its back-off ends; in the distant past for a pod that never failed."""
        duration = self.duration(entry)
        return -math.inf if duration == 0 else _window(entry.timestamp + duration)

    def backing_off(self, entry: QueuedPod, now: float) -> bool:
        """The window in which it ends counts still."""
        return self.expiry(entry) >= _window(now)

    def ready_at(self, entry: QueuedPod) -> float:
        """The first instant at which it is no longer backing off."""
        return self.expiry(entry) + ORDERING_WINDOW


def _window(instant: float) -> float:
    return math.floor(instant / ORDERING_WINDOW) * ORDERING_WINDOW
