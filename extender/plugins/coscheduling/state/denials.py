"""Groups that were refused, and why: for a while they are not planned again, and every member hears the same text.

The manager keeps them under its lock. An event that can help voids them. Without one the same plan would come to the same
end, so each time that it does the note holds twice as long: parked pods that all kinds of events wake cost a look into a
dictionary, not a plan every few seconds. kube-scheduler has no counterpart; it tries each pod again.
scheduler-plugins: pkg/coscheduling/core/core.go (lastDeniedPG), a cache whose entries all live as long
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from cachetools import TLRUCache

from extender.retry import Retry

LONGEST_SECONDS = 60.0
MAX_NOTES = 100_000  # a note that is pushed out is only made again


@dataclass(frozen=True, slots=True)
class _End:
    """What the last plans for a group came to. times: how many of them in a row. until: when the denial is over, or was."""

    cause: str
    times: int
    until: float


class Denials:
    """Group -> cause, for as long as that stands. Not locked: the owner's lock guards it. clock: monotonic seconds.

    How often plans came to the same end is kept beside it, for it outlives the denial; it is forgotten with the group's other notes.
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._retry = Retry(seconds, max(seconds, LONGEST_SECONDS))
        self._clock = clock
        self._ends: dict[str, _End] = {}
        self._causes = self._new_cache()

    def _new_cache(self) -> TLRUCache[str, str]:
        return TLRUCache(MAX_NOTES, self._time_to_use, timer=self._clock)

    def _time_to_use(self, key: str, cause: str, now: float) -> float:
        return self._ends[key].until

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[str]:
        """The keys of all denials, expired ones included."""
        return iter(self._ends)

    def __contains__(self, key: object) -> bool:
        return key in self._causes

    def get(self, key: str) -> str | None:
        """None once its time is over."""
        return self._causes.get(key)

    def until(self, key: str) -> float:
        """When its time is over; long ago for a group that is not noted."""
        end = self._ends.get(key)
        return end.until if end is not None else 0.0

    def __setitem__(self, key: str, cause: str) -> None:
        """For deniedPGExpirationTimeSeconds."""
        self._note(key, cause, 1)

    def again(self, key: str, cause: str) -> None:
        """By a plan: twice as long as the last time, if that came to the same and nothing has happened since."""
        before = self._ends.get(key)
        self._note(key, cause, before.times + 1 if before is not None and before.cause == cause else 1)

    def _note(self, key: str, cause: str, times: int) -> None:
        self._ends[key] = _End(cause, times, self._clock() + self._retry.seconds(times))
        self._causes[key] = cause

    def pop(self, key: str, default: None = None) -> str | None:
        self._ends.pop(key, None)
        return self._causes.pop(key, default)

    def clear(self, but: Collection[str] = ()) -> None:
        """All but these. It costs as much as there are of these: it is asked with each pod that ends."""
        self._ends = {key: self._ends[key] for key in but if key in self._ends}
        self._causes = self._new_cache()
        for key, end in self._ends.items():
            self._causes[key] = end.cause
