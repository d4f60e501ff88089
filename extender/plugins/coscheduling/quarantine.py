"""Gangs that are set aside: at which an unexpected exception was raised, until their back-off is over.

PodGroupManager keeps it. What a loop does for one gang of many, and what a verb does for a member, it does by `for_gang`: the
exception ends there, that gang is set aside, and the loop goes on with the next. SetAside gives its room back and tells its owner.
kube-scheduler has no counterpart: a panic ends the process.

    at work --fault--> set aside (1 s, then 2, up to 300 s) --time is up--> at work, and looked at again
    set aside --what it asks for changes--> at work
    FORGIVEN_SECONDS at work without a fault: the next one counts as the first
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from extender.crash import crashed
from extender.retry import Retry

BACK_OFF = Retry(1.0, 300.0)
FORGIVEN_SECONDS = 600.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Fault:
    """times: faults in a row. since, until: of the back-off, in seconds of the clock."""

    times: int
    since: float
    until: float


class Quarantine:
    """By the keys of groups. lock: the manager's, which guards it; it is taken here.

    clock: monotonic seconds. on_set_aside: told, under the lock, of each gang that is set aside.
    """

    def __init__(self, lock: AbstractContextManager[object], clock: Callable[[], float]) -> None:
        self._lock = lock
        self._clock = clock
        self._faults: dict[str, _Fault] = {}
        self.on_set_aside: Callable[[str], None] = lambda key: None

    def __contains__(self, key: object) -> bool:
        with self._lock:
            fault = self._faults.get(key) if isinstance(key, str) else None
        return fault is not None and self._clock() < fault.until

    def __iter__(self) -> Iterator[str]:
        """The keys of those that are set aside now."""
        with self._lock:
            return iter([key for key in self._faults if key in self])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def since(self, key: str) -> float | None:
        """When it was set aside; None for a gang that is not."""
        with self._lock:
            return self._faults[key].since if key in self else None

    def until(self, key: str) -> float:
        """When the gang that is set aside is looked at again."""
        with self._lock:
            return self._faults[key].until

    def for_gang(self, key: str, where: str, step: Callable[[], T], otherwise: T) -> T:
        """What the step returns; `otherwise` if it raises, and at once while the gang is set aside.

        key: empty for a pod of no gang: then the exception is only counted. where: a name out of few, for the metric.
        """
        with self._lock:
            aside = key in self._faults and key in self
        if aside:
            return otherwise
        try:
            return step()
        except Exception:
            crashed(where, f"group={key}" if key else "")
            self.set_aside(key)
            return otherwise

    @contextmanager
    def blame(self, key: Callable[[], str]) -> Iterator[None]:
        """Sets the gang aside if the block raises, and raises the exception again: for steps that gangs in quarantine need as well, with
        callers that retry.

        key: called only after an exception.
        """
        try:
            yield
        except Exception:
            self.set_aside(key())
            raise

    def set_aside(self, key: str) -> None:
        """Faults of a gang that is set aside already are of the same cause, and prolong nothing."""
        if not key:
            return
        with self._lock:
            if key in self:
                return
            now = self._clock()
            before = self._faults.get(key)
            times = before.times if before is not None and now < before.until + FORGIVEN_SECONDS else 0
            self._faults[key] = _Fault(times + 1, now, now + BACK_OFF.seconds(times + 1))
            self.on_set_aside(key)

    def try_now(self, key: str) -> None:
        """What the gang asks for has changed: it is at work again. The next fault is one more in a row all the same."""
        with self._lock:
            if key in self:
                self._faults[key] = replace(self._faults[key], until=self._clock())

    def forget(self, key: str) -> None:
        """The group is gone."""
        with self._lock:
            self._faults.pop(key, None)

    def prune(self, known: Collection[str]) -> None:
        """Forgets faults that are forgiven, and those of groups that are gone. known: the keys of those that are there."""
        now = self._clock()
        with self._lock:
            for key, fault in list(self._faults.items()):
                if fault.until <= now and (key not in known or fault.until + FORGIVEN_SECONDS <= now):
                    del self._faults[key]
