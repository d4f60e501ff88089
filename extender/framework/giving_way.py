"""Long computations on native threads give way to answers, since CPython runs one thread at a time.

Without it a plan takes every second slice of the interpreter from the event loop, and each answer takes twice as long. The
server says while it works on an answer; the planner looks up from its work at every check of its deadline. It gives way for
no longer than it has worked, so that it comes to its end whatever the traffic.
kube-scheduler has no counterpart: its goroutines run on all cores.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STEP_SECONDS = 0.0002
MOST_SECONDS = 0.05  # at a time


class GivingWay:
    """`answering` and `waiting` are of the event loop; `look_up` of the thread that computes.

    Without a lock: a count that is read a moment too early or too late costs a step, no more.
    """

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.sleep = sleep  # must stop the native thread: under gevent the one that is not patched
        self._clock = clock
        self._answers = 0
        self._own = threading.local()  # of a greenlet, under gevent
        self._credit = 0.0  # seconds that were worked and may be given
        self._worked_from = 0.0

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Around an answer that a caller waits for."""
        self._answers += 1
        self._own.answering = True
        try:
            yield
        finally:
            self._own.answering = False
            self._answers -= 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Around what an answer itself waits for: no plan needs to give way to it meanwhile."""
        counts = getattr(self._own, "answering", False)
        self._answers -= counts
        try:
            yield
        finally:
            self._answers += counts

    def look_up(self) -> None:
        if not self._answers:
            return
        now = self._clock()
        self._credit = min(MOST_SECONDS, self._credit + now - self._worked_from)
        until = now + self._credit
        while self._answers and now < until:
            self.sleep(STEP_SECONDS)
            now = self._clock()
        self._credit = max(0.0, until - now)
        self._worked_from = now


GIVING_WAY = GivingWay()
"""Of the process, as the interpreter's lock is."""
