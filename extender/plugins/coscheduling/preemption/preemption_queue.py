"""Gangs that want others to go: whose turn it is, and how long one is left alone that was searched for in vain.

GangPreemption puts in who found no room, and takes out who is due. No counterpart in kube-scheduler, which preempts for a pod as
soon as that has found no node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from extender.plugins.coscheduling.state.group import Group
from extender.retry import Retry

RETRY = Retry(2.0, 60.0, factor=3.0)  # of a search for victims that found none


class PreemptionQueue:
    """Not locked: the manager's lock guards it. clock: monotonic seconds; delay_seconds: from the first refusal on."""

    def __init__(self, clock: Callable[[], float], delay_seconds: float) -> None:
        self._clock = clock
        self._delay_seconds = delay_seconds
        self._wanted: dict[str, str] = {}  # key -> scheduler
        self._tried: dict[str, tuple[int, float]] = {}  # key -> how often in vain, not before

    def add(self, group: Group, scheduler_name: str) -> None:
        self._wanted[group.key] = scheduler_name

    def pop(self, group: Group) -> str | None:
        """The scheduler of its members; None if nobody wants it any more."""
        return self._wanted.pop(group.key, None)

    def put_back(self, group: Group, scheduler_name: str) -> None:
        """Unless it was put in anew meanwhile."""
        self._wanted.setdefault(group.key, scheduler_name)

    def due(self, groups: Mapping[str, Group]) -> list[Group]:
        """In no order. groups: those that there are, by key."""
        now = self._clock()
        return [
            group for key in self._wanted if (group := groups.get(key)) is not None and self._not_before(group) <= now
        ]

    def _not_before(self, group: Group) -> float:
        since = group.stopped.since if group.stopped is not None else 0.0
        return max(self._tried.get(group.key, (0, 0.0))[1], since + self._delay_seconds)

    def in_vain(self, unit: Sequence[Group]) -> None:
        for group in unit:
            times = self._times(group)
            self._leave_alone(group, times + 1, RETRY.seconds(times + 1))

    def pause(self, unit: Sequence[Group], seconds: float) -> None:
        """Not at once, though nothing was in vain."""
        for group in unit:
            self._leave_alone(group, self._times(group), seconds)

    def barred(self, group: Group, seconds: float) -> None:
        """It may not search yet: in so many seconds it is as if it had never done so."""
        self._leave_alone(group, 0, seconds)

    def something_new(self) -> None:
        """The cluster is another one: nobody is left alone for what was in vain before."""
        self._tried.clear()

    def succeeded(self, group: Group) -> None:
        self._tried.pop(group.key, None)

    def prune(self, keys: AbstractSet[str]) -> None:
        """Forgets groups that are gone. keys: of those that there are."""
        for noted in (self._tried, self._wanted):
            for key in noted.keys() - keys:
                del noted[key]

    def _times(self, group: Group) -> int:
        return self._tried.get(group.key, (0, 0.0))[0]

    def _leave_alone(self, group: Group, times: int, seconds: float) -> None:
        self._tried[group.key] = times, self._clock() + seconds
