"""The gangs that wait, as their PodGroups show it: place in line, what is missing, and, of the first in line, what would make them fit.

That last is an analysis of the planner's, so that only the gangs that come next are asked about.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from extender.plugins.coscheduling.report.gang_status import GangStatus, GangSummary
from extender.scheduler.pod_groups.status import InLine

ASKED_ABOUT = 3  # gangs, the first in line
MOST_SAID = 256  # characters


class Report(Protocol):
    """Of Coscheduling."""

    def summaries(self) -> list[GangSummary]: ...

    def status(self, key: str) -> GangStatus | None: ...


def line_of(report: Report) -> Mapping[str, InLine]:
    """By key, of the gangs that wait."""
    found = {}
    for gang in report.summaries():
        if gang.place:
            would_fit = _would_fit(report, gang.key) if gang.place <= ASKED_ABOUT else ""
            found[gang.key] = InLine(gang.place, gang.missing, would_fit)
    return found


def _would_fit(report: Report, key: str) -> str:
    """The least relaxation, in words; empty where there is none."""
    status = report.status(key)
    if status is None or not status.relaxations:
        return ""
    return status.relaxations[0].text[:MOST_SAID]
