"""Work that no verb waits for: planning after events, patches that wake pods, the clock's tick.

One thread for tasks, each asked for by name and run once however often it was asked for before it began; a small pool
for patches. Ends with the scheduler.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable

log = logging.getLogger(__name__)

TICK_SECONDS = 1.0


class Background:
    """Named tasks on one thread. `every_tick` runs about once a second."""

    def __init__(self, every_tick: Callable[[], None] | None = None) -> None:
        self._every_tick = every_tick
        self._changed = threading.Condition()  # guards _tasks and _stopping
        self._tasks: dict[str, Callable[[], None]] = {}
        self._stopping = False
        self._thread: threading.Thread | None = None

    def submit(self, name: str, task: Callable[[], None]) -> None:
        """A task of that name which has not begun yet is replaced."""
        with self._changed:
            self._tasks[name] = task
            self._changed.notify()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="background", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        tick_at = time.monotonic() + TICK_SECONDS
        while True:
            with self._changed:
                if not self._tasks and not self._stopping:
                    self._changed.wait(max(0.0, tick_at - time.monotonic()))
                if self._stopping:
                    return
                tasks, self._tasks = list(self._tasks.values()), {}
            for task in tasks:
                _guarded(task)
            if time.monotonic() >= tick_at:
                tick_at = time.monotonic() + TICK_SECONDS
                if self._every_tick is not None:
                    _guarded(self._every_tick)
            time.sleep(0)  # a task that asks for itself again and again starves nobody


class WorkerPool:
    """Runs callables on up to `size` threads, in the order of submission. Threads start with the first work and end when idle."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._changed = threading.Condition()  # guards everything below
        self._work: deque[Callable[[], None]] = deque()
        self._threads: set[threading.Thread] = set()
        self._idle = 0  # threads that wait, or have been told to go on and have not
        self._stopping = False

    def submit(self, work: Callable[[], None]) -> None:
        with self._changed:
            if self._stopping:
                return
            self._work.append(work)
            if self._idle < len(self._work) and len(self._threads) < self._size:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._threads.add(thread)
                thread.start()
            self._changed.notify()

    def flush(self) -> None:
        """Waits until all that was submitted by now has run."""
        done = threading.Event()
        self.submit(done.set)
        done.wait()

    def stop(self) -> None:
        """Drops what has not begun, and waits for what has."""
        with self._changed:
            self._stopping = True
            self._work.clear()
            self._changed.notify_all()
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._work and not self._stopping:
                    self._idle += 1
                    self._changed.wait(10)
                    self._idle -= 1
                if not self._work:
                    self._threads.discard(threading.current_thread())
                    return
                work = self._work.popleft()
            _guarded(work)


def _guarded(work: Callable[[], None]) -> None:
    try:
        work()
    except Exception:
        log.exception("background task failed")
