"""How late the event loop is: what any call that comes in waits before it is looked at.

The worker measures it from its start to its end. No counterpart: kube-scheduler's goroutines have threads of their own.
"""

from __future__ import annotations

import time

import gevent

from extender import metrics

PERIOD_SECONDS = 0.02  # a longer one would miss most pieces of work that are worth a look; it costs 0.1 % of a core


class LoopLag:
    """A greenlet that sleeps for a period at a time, and tells the histogram by how much it woke too late."""

    def __init__(self) -> None:
        self._greenlet: gevent.Greenlet | None = None

    def start(self) -> None:
        self._greenlet = gevent.spawn(self._measure)

    def stop(self) -> None:
        """Harmless before start, and a second time."""
        if self._greenlet is not None:
            self._greenlet.kill()
            self._greenlet = None

    def _measure(self) -> None:
        while True:
            due = time.monotonic() + PERIOD_SECONDS
            gevent.sleep(PERIOD_SECONDS)
            metrics.event_loop_lag.observe(max(0.0, time.monotonic() - due))
