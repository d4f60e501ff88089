"""Locks that are taken on native threads, by where: none may be, for under gevent a lock that both a native thread and the event loop
wait for is never got.

Used by tests/unit/scheduler/test_locking.py with Python's own locks, and by tests/e2e/asked_extender.py with gevent's.
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from extender import crash

DEEP = 4  # frames that tell where one was taken


class TakenLocks:
    """places: where a lock was taken, innermost first."""

    def __init__(self) -> None:
        self.places: dict[str, None] = {}

    def noted(self, acquire: Callable[..., Any]) -> Callable[..., Any]:
        """acquire, and each call of it on a native thread is noted."""

        def acquired(*arguments: Any, **named: Any) -> Any:
            if crash._on_native_thread.get():
                self.places[_where()] = None
            return acquire(*arguments, **named)

        return acquired


def _where() -> str:
    frames = [frame for frame, _ in traceback.walk_stack(sys._getframe(2)) if frame.f_code.co_filename != __file__]
    return ", in ".join(f"{each.f_code.co_filename}:{each.f_lineno} {each.f_code.co_name}" for each in frames[:DEEP])


class _Lock:
    def __init__(self, taken: TakenLocks) -> None:
        lock = threading._allocate_lock()  # type: ignore[attr-defined]
        self.acquire = taken.noted(lock.acquire)
        self.release, self.locked = lock.release, lock.locked

    def __enter__(self) -> Any:
        return self.acquire()

    def __exit__(self, *raised: object) -> None:
        self.release()


@contextmanager
def noted_locks() -> Iterator[TakenLocks]:
    """Those of Python's `threading` that are made meanwhile."""
    taken = TakenLocks()

    def reentrant() -> Any:
        lock: Any = threading._PyRLock()  # type: ignore[attr-defined]
        lock._block = _Lock(taken)
        return lock

    with patch.object(threading, "Lock", lambda: _Lock(taken)), patch.object(threading, "RLock", reentrant):
        yield taken


def of_the_event_loop() -> TakenLocks:
    """gevent's, from now on, once `threading` is patched."""
    from gevent.thread import LockType

    taken = TakenLocks()
    acquire = taken.noted(LockType.acquire)
    for name in ("acquire", "__enter__"):
        setattr(LockType, name, acquire)
    return taken
