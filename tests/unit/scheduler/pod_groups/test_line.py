"""What would make gangs fit that wait: told of the first in line at each look, and of every other one in its turn."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from extender.plugins.coscheduling.report.gang_status import GangStatus, GangSummary, Relaxation
from extender.scheduler.pod_groups.line import ALWAYS_ASKED, IN_TURN, IN_TURN_SECONDS, LineReader


def summary(number: int) -> GangSummary:
    since = datetime(2026, 1, 1, tzinfo=UTC)
    return GangSummary(
        namespace="default", name=f"g{number}", phase="Denied", since=since, reason="", message="", min_member=3,
        members={}, place=number,
    )  # fmt: skip


class Report:
    """So many gangs wait. An analysis takes `seconds`."""

    def __init__(self, gangs: int, seconds: float = 0.0) -> None:
        self.gangs, self.seconds, self.now = gangs, seconds, 0.0
        self.asked: list[str] = []

    def summaries(self) -> list[GangSummary]:
        return [summary(number) for number in range(1, self.gangs + 1)]

    def status(self, key: str) -> GangStatus | None:
        self.asked.append(key)
        self.now += self.seconds
        number = int(key.removeprefix("default/g"))
        relaxations = (Relaxation("MinMember", f"less, says {number}"),)
        return GangStatus(gang=summary(number), priority=0, in_line=self.gangs, told="", relaxations=relaxations)


def test_each_look_asks_about_the_first_and_about_the_next_of_the_others() -> None:
    report = Report(ALWAYS_ASKED + 2 * IN_TURN)
    reader = LineReader(lambda: report, lambda: report.now)
    found = reader.read()
    assert found["default/g4"].would_fit == "less, says 4"
    assert found[f"default/g{report.gangs}"].would_fit == ""
    found = reader.read()
    assert all(each.would_fit for each in found.values())
    report.asked.clear()
    reader.read()
    others = [f"default/g{ALWAYS_ASKED + 1 + number}" for number in range(IN_TURN)]
    assert report.asked == [*(f"default/g{number}" for number in range(1, ALWAYS_ASKED + 1)), *others]


def test_where_an_analysis_takes_long_fewer_are_asked_about() -> None:
    report = Report(20, seconds=IN_TURN_SECONDS)
    reader = LineReader(lambda: report, lambda: report.now)
    reader.read()
    assert len(report.asked) == ALWAYS_ASKED + 1
    reader.read()
    assert report.asked[-1] == "default/g5"


def test_a_gang_that_waits_no_longer_is_forgotten() -> None:
    report = Report(5)
    reader = LineReader(lambda: report, lambda: report.now)
    reader.read()
    report.gangs = 4
    assert set(reader.read()) == {f"default/g{number}" for number in range(1, 5)}


class Key(str):
    """Counts how often one is looked up, or put into a set."""

    __slots__ = ()
    asked = 0

    def __hash__(self) -> int:
        Key.asked += 1
        return super().__hash__()


def test_a_look_at_a_long_line_takes_each_gang_a_few_times_and_not_once_for_each_other() -> None:
    gangs: Any = [SimpleNamespace(key=Key(f"default/g{number}"), place=number, missing={}) for number in range(1, 301)]
    report = Report(0)
    report.summaries = lambda: gangs  # type: ignore[method-assign]
    reader = LineReader(lambda: report, lambda: report.now)
    for _ in range(len(gangs) // IN_TURN):  # until each has been asked about
        reader.read()
    Key.asked = 0
    reader.read()
    assert 0 < Key.asked < 10 * len(gangs)
