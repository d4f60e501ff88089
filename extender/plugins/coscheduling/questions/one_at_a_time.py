"""Questions of operators that cost plans: no two of them compute at once, and none waits for long."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAIT_SECONDS = 10.0  # for the question before


class BusyError(Exception):
    """Another question is being answered, and takes its time."""


class OneAtATime:
    """Thread-safe. No other lock is held by its callers."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._asking = threading.Lock()
        self._wait_seconds = wait_seconds

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Raises BusyError."""
        if not self._asking.acquire(timeout=self._wait_seconds):
            raise BusyError("another question is being answered; ask again in a moment")
        try:
            yield
        finally:
            self._asking.release()
