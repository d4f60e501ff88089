"""Groups that were refused, and why: for a while they are not planned again, and every member hears the same text.

The manager keeps them under its lock. An event that can help voids them. Without one the same plan would come to the same
end, so each time that it does the note holds twice as long: parked pods that all kinds of events wake cost a look into a
dictionary, not a plan every few seconds. kube-scheduler has no counterpart; it tries each pod again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from extender.retry import Retry

LONGEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class _Denial:
    cause: str
    until: float
    times: int


class Denials:
    """Group -> cause. Not locked: the owner's lock guards it. A denial is forgotten with the group's other notes."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._retry = Retry(seconds, max(seconds, LONGEST_SECONDS))
        self._clock = clock
        self._notes: dict[str, _Denial] = {}

    def __len__(self) -> int:
        return len(self._notes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._notes)

    def __contains__(self, key: object) -> bool:
        note = self._notes.get(key) if isinstance(key, str) else None
        return note is not None and self._clock() < note.until

    def get(self, key: str) -> str | None:
        """None once its time is over."""
        note = self._notes.get(key)
        return note.cause if note is not None and self._clock() < note.until else None

    def until(self, key: str) -> float:
        """When its time is over; long ago for a group that is not noted."""
        note = self._notes.get(key)
        return note.until if note is not None else 0.0

    def __setitem__(self, key: str, cause: str) -> None:
        """For deniedPGExpirationTimeSeconds."""
        self._note(key, cause, 1)

    def again(self, key: str, cause: str) -> None:
        """By a plan: twice as long as the last time, if that came to the same and nothing has happened since."""
        before = self._notes.get(key)
        self._note(key, cause, before.times + 1 if before is not None and before.cause == cause else 1)

    def _note(self, key: str, cause: str, times: int) -> None:
        self._notes[key] = _Denial(cause, self._clock() + self._retry.seconds(times), times)

    def pop(self, key: str, default: None = None) -> str | None:
        note = self._notes.pop(key, None)
        return note.cause if note is not None else default

    def clear(self, but: Collection[str] = ()) -> None:
        self._notes = {key: note for key, note in self._notes.items() if key in but}
