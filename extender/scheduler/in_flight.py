"""Bind calls that are under way, by pod UID: the newest call of a pod wins.

A kube-scheduler that was restarted, or whose call timed out, binds the same pod again while the old call is still here.
The old one is told to end and is waited for, so that one pod is never assumed, reserved or bound twice at a time.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SUPERSEDED = "superseded by a newer bind call for the same pod"


class TooManyHeldBindsError(Exception):
    """The cap on held binds is reached."""


class DrainingError(Exception):
    """No call is taken in any more. Its text is the answer."""


class BindCall:
    """One call. `abort` ends its wait; a call that commits already is not ended by it.

    deadline: when it has to be answered, in seconds of the clock; infinite for none.
    """

    __slots__ = ("_aborts", "_lock", "aborted_at", "deadline", "ended", "reason")

    def __init__(self, deadline: float = math.inf) -> None:
        self.deadline = deadline
        self.reason = ""
        self.aborted_at = math.inf  # of time.monotonic(), when the reason came
        self.ended = threading.Event()
        self._lock = threading.Lock()  # guards reason and _aborts
        self._aborts: list[Callable[[str], None]] = []

    def abort(self, reason: str) -> None:
        """Keeps the first reason, and tells what the call waits for."""
        with self._lock:
            if not self.reason:
                self.reason, self.aborted_at = reason, time.monotonic()
            aborts = list(self._aborts)
        for callback in aborts:
            callback(self.reason)

    def on_abort(self, callback: Callable[[str], None]) -> None:
        """Calls back at an abort; at once if it was already."""
        with self._lock:
            self._aborts.append(callback)
            reason = self.reason
        if reason:
            callback(reason)


class InFlight:
    """All bind calls of the process. `limit` is the most that may be held at a time.

    deadline: when a call that comes now has to be answered.
    """

    def __init__(self, limit: int, deadline: Callable[[], float] = lambda: math.inf) -> None:
        self._limit = limit
        self._deadline = deadline
        self._lock = threading.Lock()  # guards _calls and _draining
        self._calls: dict[str, BindCall] = {}
        self._draining = ""

    def __len__(self) -> int:
        return len(self._calls)

    @contextmanager
    def enter(self, uid: str) -> Iterator[BindCall]:
        """The turn of one call, after an older one of the same pod has ended.

        Raises TooManyHeldBindsError or DrainingError.
        """
        call = BindCall(self._deadline())
        with self._lock:
            if self._draining:
                raise DrainingError(self._draining)
            older = self._calls.get(uid)
            if older is None and len(self._calls) >= self._limit:
                raise TooManyHeldBindsError(f"too many waiting binds ({self._limit})")
            self._calls[uid] = call
        try:
            if older is not None:
                older.abort(SUPERSEDED)
                older.ended.wait()
            yield call
        finally:
            call.ended.set()
            with self._lock:
                if self._calls.get(uid) is call:
                    del self._calls[uid]

    def abort_all(self, reason: str) -> None:
        with self._lock:
            calls = list(self._calls.values())
        for call in calls:
            call.abort(reason)

    def drain(self, reason: str) -> None:
        """Takes no more calls, and ends the waits of those that are here."""
        with self._lock:
            self._draining = reason
        self.abort_all(reason)
