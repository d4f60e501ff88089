"""Work that no verb waits for: planning after events, patches that wake pods, the clock's tick.

One thread for tasks, each asked for by name and run once however often it was asked for before it began; a small pool
for patches. No thread here ends but by `stop`, whatever it is given to run. Ends with the scheduler.
kube-scheduler: k8s.io/apimachinery/pkg/util/wait (Until, BackoffUntil)
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from extender.client.fair_queue import FairQueue
from extender.client.short_steps import ShortSteps, pause
from extender.crash import guarded
from extender.retry import Retry

TICK_SECONDS = 1.0
RETRY = Retry(1.0, 60.0)
STUCK_SECONDS = 180.0  # where tasks make calls of the API server, one after the other
# Where they make none: plans have budgets of a second or two. Longer than a container is frozen while its node is busy.
STUCK_PLANNING_SECONDS = 60.0

Task = Callable[[], None]

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class _Pending:
    task: Task
    due: float


@dataclass(frozen=True, slots=True)
class _Failure:
    """at: when it last failed. times: how often in a row."""

    at: float
    times: int


class Background:
    """Named tasks on one thread. ticks: run about once a second, one after the other, by name.

    A task that raises is tried again by itself: after 1 s, then 2, up to 60, until it succeeds. A newer one of its name takes
    its place and runs sooner, but not within the second, since a task that asks for itself and fails would never rest.
    stuck_seconds: longer than any of its tasks takes that is not stuck.
    """

    def __init__(
        self,
        ticks: Mapping[str, Task] | None = None,
        *,
        name: str = "background",
        stuck_seconds: float = STUCK_SECONDS,
    ) -> None:
        self._name = name
        self._stuck_seconds = stuck_seconds
        self._ticks = dict(ticks or {})
        self._changed = threading.Condition()  # guards _tasks, _failures, _stopping and _turned
        self._tasks: dict[str, _Pending] = {}
        self._failures: dict[str, _Failure] = {}
        self._stopping = False
        self._turned = time.monotonic()  # when something was last begun, or awaited
        self._tick_at = 0.0  # the thread's own
        self._thread: threading.Thread | None = None

    def submit(self, name: str, task: Task) -> None:
        """A task of that name which has not begun yet is replaced."""
        with self._changed:
            failure = self._failures.get(name)
            due = failure.at + RETRY.first_seconds if failure is not None else 0.0
            self._tasks[name] = _Pending(task, due)
            self._changed.notify()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._turned = time.monotonic()
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    @property
    def trouble(self) -> str:
        """Why nothing is planned any more and only a new process will help, for liveness; empty while all is well."""
        thread = self._thread
        if thread is None or self._stopping:
            return ""
        if not thread.is_alive():
            return f"the {self._name} thread has ended"
        seconds = time.monotonic() - self._turned
        return f"a {self._name} task has been running for {seconds:.0f}s" if seconds > self._stuck_seconds else ""

    def _run(self) -> None:
        self._tick_at = time.monotonic() + TICK_SECONDS
        while not self._stopping:
            if not guarded(self._name, self._turn):
                guarded(self._name, lambda: time.sleep(RETRY.first_seconds))

    def _turn(self) -> None:
        for name in self._await_due():
            self._run_task(name)
        if time.monotonic() >= self._tick_at:
            self._tick_at = time.monotonic() + TICK_SECONDS
            for name, tick in self._ticks.items():
                self._turned = time.monotonic()
                guarded(f"{name}-tick", tick)
        pause()  # a task that asks for itself again and again starves no other

    def _await_due(self) -> list[str]:
        """The names of what is to run now; none where it is time for the tick, or to stop."""
        with self._changed:
            due = self._due()
            if not due and not self._stopping:
                first = min((pending.due for pending in self._tasks.values()), default=self._tick_at)
                self._changed.wait(max(0.0, min(first, self._tick_at) - time.monotonic()))
                due = self._due()
            self._turned = time.monotonic()
            return due if not self._stopping else []

    def _due(self) -> list[str]:
        now = time.monotonic()
        return [name for name, pending in self._tasks.items() if pending.due <= now]

    def _run_task(self, name: str) -> None:
        with self._changed:
            self._turned = time.monotonic()
            task = self._tasks.pop(name).task
        succeeded = guarded(name, task)
        with self._changed:
            if succeeded:
                self._failures.pop(name, None)
            else:
                self._try_again(name, task)

    def _try_again(self, name: str, task: Task) -> None:
        """Lock held."""
        before = self._failures.get(name)
        times = before.times + 1 if before is not None else 1
        now = time.monotonic()
        self._failures[name] = _Failure(now, times)
        newer = self._tasks.get(name)
        if newer is not None:  # asked for while it ran
            self._tasks[name] = _Pending(newer.task, now + RETRY.first_seconds)
        else:
            self._tasks[name] = _Pending(task, now + RETRY.seconds(times))


class WorkerPool:
    """Runs callables on up to `size` threads: shares in turn, within one in the order of submission. Threads start with the first
    work and end when idle."""

    def __init__(self, name: str, size: int) -> None:
        self._name = name
        self._size = size
        self._changed = threading.Condition()  # guards everything below
        self._work: FairQueue[Callable[[], None]] = FairQueue()
        self._threads: set[threading.Thread] = set()
        self._idle = 0  # threads that wait, or have been told to go on and have not
        self._stopping = False

    def submit(self, work: Callable[[], None], share: str = "") -> None:
        """share: what it is done for, such as a namespace; one with much work keeps no other waiting."""
        with self._changed:
            if self._stopping:
                return
            self._work.put(share, work)
            if self._idle < len(self._work) and len(self._threads) < self._size:
                # where no thread can be had those that are there do it, or the next
                guarded(self._name, self._start_one)
            self._changed.notify()

    def _start_one(self) -> None:
        """Lock held."""
        thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except BaseException:
            self._threads.discard(thread)
            raise

    def share_out(self, things: Sequence[T], act: Callable[[T], R]) -> list[R]:
        """What `act` says of each, begun in their order. The caller's thread does its part beside the pool's, and all of it where no other
        can be had. Raises what `act` does, once none is at work; the rest is not begun then."""
        done: dict[int, R] = {}
        errors: list[BaseException] = []
        left = deque(enumerate(things))
        at_work = 0
        changed = threading.Condition()

        def work() -> None:
            nonlocal at_work
            while True:
                with changed:
                    if not left or errors:
                        return
                    number, thing = left.popleft()
                    at_work += 1
                try:
                    done[number] = act(thing)
                except BaseException as error:
                    errors.append(error)
                finally:
                    with changed:
                        at_work -= 1
                        changed.notify_all()

        for _ in range(min(self._size, len(things) - 1)):
            self.submit(work)
        work()
        with changed:
            changed.wait_for(lambda: not at_work)
        if errors:
            raise errors[0]
        return [done[number] for number in range(len(things))]

    def flush(self) -> None:
        """Waits until all that was submitted by now has run."""
        with self._changed:
            ends = {share: threading.Event() for share in ("", *self._work.shares())}
        for share, end in ends.items():
            self.submit(end.set, share)
        for end in ends.values():
            end.wait()

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
        steps = ShortSteps()
        try:
            while (work := self._next()) is not None:
                guarded(self._name, work)
                steps.pause_if_due()  # work that waits for nothing gives way to nothing by itself
        finally:
            with self._changed:
                self._threads.discard(threading.current_thread())

    def _next(self) -> Callable[[], None] | None:
        """None for a thread that is needed no longer."""
        with self._changed:
            if not self._work and not self._stopping:
                self._idle += 1
                try:
                    self._changed.wait(10)
                finally:
                    self._idle -= 1
            if self._work:
                return self._work.take()
            self._threads.discard(threading.current_thread())
            return None
