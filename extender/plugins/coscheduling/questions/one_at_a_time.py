"""Questions that cost plans: no two of them compute at once, and none waits for long.

Those of users that may see one namespace only take a tenth of the time at most, all together, and one at a time for each namespace:
a tenant that asks again and again takes nothing of the planner's time that is worth taking.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

WAIT_SECONDS = 10.0  # for the question before
REST = 9.0  # times as long as a tenant's question took


class BusyError(Exception):
    """Another question is being answered, and takes its time."""


class OneAtATime:
    """Thread-safe. No other lock is held by its callers. clock: monotonic, in seconds."""

    def __init__(
        self,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._asking = threading.Lock()
        self._of_tenants = threading.Lock()  # before _asking; guards _rests_until
        self._known = threading.Lock()  # guards _namespaces; the innermost
        self._namespaces: set[str] = set()  # with a question that waits or is answered
        self._rests_until = 0.0
        self._wait_seconds, self._clock, self._sleep = wait_seconds, clock, sleep

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises BusyError."""
        if not self._asking.acquire(timeout=self._wait_seconds):
            raise BusyError("another question is being answered; ask again in a moment")
        try:
            yield
        finally:
            self._asking.release()

    @contextmanager
    def turn_of_tenant(self, namespace: str) -> Iterator[None]:
        """Around all that a tenant's question costs: `turn` comes within it. Raises BusyError."""
        with self._known:
            if namespace in self._namespaces:
                raise BusyError(f"another question of the namespace {namespace} is being answered; ask again after it")
            self._namespaces.add(namespace)
        try:
            with self._rested():
                yield
        finally:
            with self._known:
                self._namespaces.discard(namespace)

    @contextmanager
    def _rested(self) -> Iterator[None]:
        until = self._clock() + self._wait_seconds
        if not self._of_tenants.acquire(timeout=self._wait_seconds):
            raise BusyError("questions of other namespaces are being answered; ask again in a moment")
        try:
            rest = self._rests_until - self._clock()
            if self._rests_until > until:
                raise BusyError(f"questions of namespaces rest after a long one; ask again in {rest:.0f}s")
            if rest > 0:
                self._sleep(rest)
            began = self._clock()
            try:
                yield
            finally:
                now = self._clock()
                self._rests_until = now + REST * (now - began)
        finally:
            self._of_tenants.release()
