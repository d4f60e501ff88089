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
        """A call has ended, or its caller has hung up, after so many seconds: at `at` of the clock. A caller that waited for longer than
        others denies that these have timed out."""
        with self._lock:
            if hung_up:
                self._seen.append(_HangUp(held, at))
            elif self._seen:
                still = [each for each in self._seen if each.held + each.tolerance >= held]
                self._seen = deque(still, REMEMBERED)

    def timeout(self, since: float) -> float | None:
        """Seconds, the last that hang-ups since then agree on; None where they agree on none. One that a busy process noticed late hides
        nothing."""
        with self._lock:
            seen = [each for each in self._seen if each.at >= since]
        return next((each.held for each in reversed(seen) if _is_shown(each, seen)), None)


def _is_shown(one: _HangUp, seen: list[_HangUp]) -> bool:
    """Whether enough of them were after the same time, and not all at once."""
    ended_at = [each.at for each in seen if abs(each.held - one.held) <= one.tolerance]
    return len(ended_at) >= ALIKE and max(ended_at) - min(ended_at) > 2 * one.tolerance
