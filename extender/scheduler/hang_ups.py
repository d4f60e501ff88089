"""After what time kube-scheduler gives up a bind call, as its hang-ups show it: the httpTimeout of its entry.

A timeout ends each call after the same time, whenever that began; a kube-scheduler that ends hangs up on all calls at once.
kube-scheduler: pkg/scheduler/extender.go (HTTPExtender, whose http.Client has the timeout)
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass

ALIKE = 3
"""Hang-ups that a timeout is told from."""
REMEMBERED = 32


@dataclass(frozen=True, slots=True)
class _HangUp:
    """held: for how long the call was. at: when it ended. Both in seconds."""

    held: float
    at: float

    @property
    def tolerance(self) -> float:
        return max(0.05, 0.05 * self.held)


class HangUps:
    """Of the bind calls of one kube-scheduler."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards _seen; the innermost
        self._seen: deque[_HangUp] = deque(maxlen=REMEMBERED)

    def ended(self, held: float, at: float, *, hung_up: bool) -> None:
        """A call has ended after so many seconds, at `at` of the clock. One that was held for longer than others denies that these
        have timed out."""
        with self._lock:
            if hung_up:
                self._seen.append(_HangUp(held, at))
            elif self._seen:
                still = [each for each in self._seen if each.held + each.tolerance >= held]
                self._seen = deque(still, REMEMBERED)

    def timeout(self, since: float) -> float | None:
        """Seconds; None where the hang-ups since then show none."""
        with self._lock:
            seen = [each for each in self._seen if each.at >= since]
        if not seen:
            return None
        last = seen[-1]
        alike = [each for each in seen if abs(each.held - last.held) <= last.tolerance]
        spread = max(each.at for each in alike) - min(each.at for each in alike)
        return last.held if len(alike) >= ALIKE and spread > 2 * last.tolerance else None
