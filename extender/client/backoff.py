"""How long a reflector waits after a list or a watch failed: client-go's numbers.

kube-scheduler: k8s.io/client-go/tools/cache/reflector.go (ReflectorBackoff)
"""

from __future__ import annotations

import random
from collections.abc import Callable

from extender.retry import Retry

RETRY = Retry(0.8, 30.0)
RESET_SECONDS = 120.0


class Backoff:
    """0.8 s doubling to 30 s, up to twice that by jitter; starts over after two quiet minutes. Belongs to one thread."""

    def __init__(self, clock: Callable[[], float], rng: random.Random | None = None) -> None:
        self._clock = clock
        self._rng = rng or random.Random()
        self._failures = 0
        self._last = clock()

    def next(self, retry_after: float | None = None, longest: float | None = None) -> float:
        """Seconds to wait now; never less than the server's own Retry-After. longest: in place of 30 s."""
        now = self._clock()
        if now - self._last > RESET_SECONDS:
            self._failures = 0
        self._last = now
        self._failures += 1
        seconds = min(RETRY.seconds(self._failures), longest or RETRY.longest_seconds) * (1 + self._rng.random())
        return max(seconds, retry_after or 0.0)
