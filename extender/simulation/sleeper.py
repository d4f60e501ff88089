"""A binding that may have to wait in PreBind (for a volume, say): on a thread of its own, of which one at a time runs.

The driver hands control over with `go_on` and gets it back when the binding sleeps or has ended, so that a run with
threads comes out as one without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Abandoned(BaseException):
    """The run is over; the binding is not wanted any more."""


class Sleeper:
    """new -> running <-> asleep -> ended. `until`: virtual seconds, when it wants to go on."""

    _local = threading.local()

    def __init__(self, work: Callable[[], None]) -> None:
        self.until = 0.0
        self._work = work
        self._mine = threading.Semaphore(0)
        self._driver = threading.Semaphore(0)
        self._ended = False
        self._abandoned = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="binding", daemon=True)

    @classmethod
    def current(cls) -> Sleeper | None:
        """The sleeper of the calling thread."""
        return getattr(cls._local, "sleeper", None)

    def go_on(self) -> bool:
        """Until it sleeps or ends; True if it has ended. Raises what the work raised."""
        if self._thread.ident is None:
            self._thread.start()
        self._mine.release()
        self._driver.acquire()
        if self._ended:
            self._thread.join()
        if self._failure is not None:
            raise self._failure
        return self._ended

    def sleep(self, until: float) -> None:
        """Called by the work."""
        self.until = until
        self._driver.release()
        self._mine.acquire()
        if self._abandoned:
            raise Abandoned

    def abandon(self) -> None:
        self._abandoned = True
        self.go_on()

    def _run(self) -> None:
        self._mine.acquire()
        type(self)._local.sleeper = self
        try:
            self._work()
        except Abandoned:
            pass
        except Exception as failure:
            self._failure = failure
        finally:
            self._ended = True
            self._driver.release()
