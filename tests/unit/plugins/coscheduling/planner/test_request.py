"""Deadlines of plans, and what a verdict says is missing."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.planner.request import Deadline, NoPlacement, OutOfTimeError, Request


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_deadline_counts_from_its_beginning_and_ends_the_plan_when_all_of_it_is_gone() -> None:
    clock = Clock()
    deadline = Deadline.of(Request((), 0, budget_seconds=2.0, clock=clock))
    clock.now += 1.5
    assert (deadline.spent(0.5), deadline.spent(1.0)) == (True, False)
    deadline.check()
    clock.now += 1.0
    with pytest.raises(OutOfTimeError):
        deadline.check()


@pytest.mark.parametrize(
    ("placed", "needed", "short"),
    [
        pytest.param(1, 3, 2, id="two are missing"),
        pytest.param(3, 3, 0, id="none is: time ran out"),
        pytest.param(4, 3, 0, id="more were placed than needed"),
    ],
)
def test_how_many_members_are_short(placed: int, needed: int, short: int) -> None:
    assert NoPlacement("no room", placed, needed).short == short
