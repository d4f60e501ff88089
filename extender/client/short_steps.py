"""Long work of one thread in short steps, so that all else goes on in between.

A list of thousands of objects is decoded and handed on without any I/O. Under gevent no other greenlet would run meanwhile:
no verb and no probe would be answered.
kube-scheduler has no counterpart: its goroutines run on all cores.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import Any, TypeVar

T = TypeVar("T")

STEP_SECONDS = 0.002
SORTED_AT_ONCE = 5_000
# Not 0: gevent runs up to fifty callbacks, of which each sleep(0) is one, before it looks for I/O and timers again.
PAUSE_SECONDS = 1e-6


def pause() -> None:
    """Between two pieces of work: other threads have their turn, and under gevent whatever the event loop waits for. Never under a lock."""
    time.sleep(PAUSE_SECONDS)


class ShortSteps:
    """Belongs to one thread."""

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._until = clock() + STEP_SECONDS

    def pause_if_due(self) -> None:
        """After each object: lets others run once a step's time has been worked. Never under a lock."""
        if self._clock() >= self._until:
            self._sleep(PAUSE_SECONDS)
            self._until = self._clock() + STEP_SECONDS

    def sort(self, items: Sequence[T], key: Callable[[T], Any]) -> Iterator[T]:
        """As `sorted` does, in runs that are merged while the result is read: 150,000 objects at once would take longer than a step may."""
        runs = []
        for first in range(0, len(items), SORTED_AT_ONCE):
            runs.append(sorted(items[first : first + SORTED_AT_ONCE], key=key))
            self.pause_if_due()
        return merge(*runs, key=key)
