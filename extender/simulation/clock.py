"""Time that passes only when the driver says so, and where everything beside the pods' cycles is put.

The driver moves it on when nothing else is to be done, so that a wait of a minute takes no time.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from extender.framework.runtime.plugin_calls import Recorder as MetricsRecorder
from extender.plugins.coscheduling.dependencies import Verdicts
from extender.simulation.journal import Journal
from extender.simulation.sleeper import Sleeper


class VirtualClock:
    """Seconds since the beginning. Calling it gives the time, as time.monotonic does."""

    def __init__(self) -> None:
        self.now = 0.0
        self._began = datetime.now(UTC).replace(microsecond=0)

    def __call__(self) -> float:
        return self.now

    def advance(self, to: float) -> None:
        """Never back."""
        self.now = max(self.now, to)

    def wall(self) -> float:
        """The time of day, in seconds since 1970."""
        return self._began.timestamp() + self.now

    def text(self) -> str:
        """The time of day, for objects that say when they were made: all that were made at one instant agree."""
        return (self._began + timedelta(seconds=self.now)).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class VirtualTime:
    """Fulfils InProcessDependencies. What is handed in waits for the driver: jobs in order, tasks each once."""

    clock: VirtualClock
    journal: Journal
    rng: random.Random
    jobs: deque[Callable[[], None]] = field(default_factory=deque)
    tasks: dict[str, Callable[[], None]] = field(default_factory=dict)
    record: MetricsRecorder | None = None

    @property
    def recorder(self) -> Journal:
        return self.journal

    @property
    def verdicts(self) -> Verdicts:
        return self.journal

    def spawn(self, job: Callable[[], None]) -> None:
        self.jobs.append(job)

    def sleep(self, seconds: float) -> None:
        """In a binding on a thread of its own; elsewhere time just passes."""
        sleeper = Sleeper.current()
        if sleeper is not None:
            sleeper.sleep(self.clock() + seconds)
        else:
            self.clock.advance(self.clock() + seconds)

    def submit(self, name: str, task: Callable[[], None]) -> None:
        self.tasks[name] = task
