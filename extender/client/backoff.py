"""How long to wait after a failure: client-go's numbers for lists and watches, and doubling for whoever has his own.

kube-scheduler: k8s.io/client-go/tools/cache/reflector.go (ReflectorBackoff)
"""

from __future__ import annotations

import random
from collections.abc import Callable

INITIAL_SECONDS = 0.8
MAX_SECONDS = 30.0
FACTOR = 2.0
RESET_SECONDS = 120.0
MOST_DOUBLINGS = 16  # past every limit, and no number overflows


def doubled(first: float, times: int, longest: float) -> float:
    """Seconds: the first wait, doubled so many times, and never more than the longest."""
    return min(first * 2.0 ** min(times, MOST_DOUBLINGS), longest)


class Backoff:
    """0.8 s doubling to 30 s, up to twice that by jitter; starts over after two quiet minutes. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float], rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._base = INITIAL_SECONDS
        self._last = clock()

    def next(self, retry_after: float | None = None, longest: float | None = None) -> float:
        """Seconds to wait now; never less than the server's own Retry-After. longest: in place of 30 s."""
        now = self._clock()
        if now - self._last > RESET_SECONDS:
            self._base = INITIAL_SECONDS
        self._last = now
        seconds = min(self._base, longest or MAX_SECONDS) * (1 + self._rng.random())
        self._base = min(MAX_SECONDS, self._base * FACTOR)
        return max(seconds, retry_after or 0.0)
