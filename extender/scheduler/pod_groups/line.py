"""The gangs that wait, as their PodGroups show it: place in line, what is missing, and what would make them fit.

That last is an analysis of the planner's. Each look asks about the gangs that come next, and about some of the others in turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from extender.plugins.coscheduling.report.gang_status import GangStatus, GangSummary
from extender.scheduler.pod_groups.status import InLine

ALWAYS_ASKED = 3  # gangs, the first in line
IN_TURN = 10  # of the others, a look at most
IN_TURN_SECONDS = 2.0  # after which no other one is begun
MOST_SAID = 256  # characters


class Report(Protocol):
    """Of Coscheduling."""

    def summaries(self) -> list[GangSummary]: ...

    def status(self, key: str) -> GangStatus | None: ...


def would_fit(report: Report, key: str) -> str:
    """The least relaxation with which the gang would fit, in words; empty where there is none."""
    status = report.status(key)
    return status.relaxations[0].text[:MOST_SAID] if status is not None and status.relaxations else ""


class LineReader:
    """What was found of a gang in its turn stands until its next one. One caller at a time. report: there by the
    first read. clock: in seconds."""

    def __init__(self, report: Callable[[], Report], clock: Callable[[], float] = time.monotonic) -> None:
        self._report, self._clock = report, clock
        self._would_fit: dict[str, str] = {}  # by key, the one that was asked about longest ago first

    def read(self) -> Mapping[str, InLine]:
        """By key, of the gangs that wait."""
        waiting = [gang for gang in self._report().summaries() if gang.place]
        keys = dict.fromkeys(gang.key for gang in waiting)  # in their order
        self._would_fit = {key: text for key, text in self._would_fit.items() if key in keys}
        first = [gang.key for gang in waiting if gang.place <= ALWAYS_ASKED]
        for key in first:
            self._ask(key)
        self._ask_in_turn([key for key in keys if key not in first])
        return {gang.key: InLine(gang.place, gang.missing, self._would_fit.get(gang.key, "")) for gang in waiting}

    def _ask_in_turn(self, keys: Sequence[str]) -> None:
        """Those that were never asked about come first, in their order, and then the others, the longest ago first."""
        asked_before = {key: turn for turn, key in enumerate(self._would_fit)}
        until = self._clock() + IN_TURN_SECONDS
        for key in sorted(keys, key=lambda key: asked_before.get(key, -1))[:IN_TURN]:
            if self._clock() >= until:
                return
            self._ask(key)

    def _ask(self, key: str) -> None:
        self._would_fit.pop(key, None)
        self._would_fit[key] = would_fit(self._report(), key)
