"""The CPU that the page's own work has taken, without the time in which others had their turn: it rests in proportion.

No counterpart upstream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Stopwatch:
    """seconds: measured so far. Belongs to one thread.

    clock: of that thread's CPU, which under gevent is all threads': between `running` and its end none of the others has a turn.
    """

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        began = self._clock()
        try:
            yield
        finally:
            self.seconds += self._clock() - began
