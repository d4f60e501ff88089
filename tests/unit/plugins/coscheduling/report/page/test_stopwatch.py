"""The time that work takes, without what lies between its pieces."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.report.page.stopwatch import Stopwatch
from tests.unit.plugins.coscheduling.conftest import FakeClock


def test_pieces_add_up_and_what_lies_between_them_counts_not() -> None:
    clock = FakeClock()
    watch = Stopwatch(clock)
    for seconds in (1.0, 2.0):
        with watch.running():
            clock.now += seconds
        clock.now += 10.0
    assert watch.seconds == 3.0


def test_a_piece_that_raises_counts_too() -> None:
    clock = FakeClock()
    watch = Stopwatch(clock)

    def fail() -> None:
        with watch.running():
            clock.now += 1.0
            raise ValueError("a fault")

    with pytest.raises(ValueError, match="a fault"):
        fail()
    assert watch.seconds == 1.0
