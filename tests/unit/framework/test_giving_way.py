"""A computation lets answers pass, and comes to its end all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.framework.giving_way import MOST_SECONDS, STEP_SECONDS, GivingWay


class Time:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept = 0.0
        self.then: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds
        self.then()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def way(time: Time) -> GivingWay:
    return GivingWay(time, time.sleep)


def test_where_no_call_is_answered_the_computation_goes_on(way: GivingWay, time: Time) -> None:
    way.look_up()
    assert time.slept == 0


def test_it_stops_until_the_answer_is_given(way: GivingWay, time: Time) -> None:
    with way.answering():
        time.then = lambda: setattr(way, "_answers", 0) if time.slept > 5 * STEP_SECONDS else None
        way.look_up()
        way._answers = 1
    assert 5 * STEP_SECONDS < time.slept < MOST_SECONDS


def test_it_stops_for_no_longer_than_it_has_worked(way: GivingWay, time: Time) -> None:
    with way.answering():
        way.look_up()
        assert time.slept == pytest.approx(MOST_SECONDS, abs=2 * STEP_SECONDS)
        for _ in range(100):
            time.now += 0.001
            way.look_up()
    assert time.slept == pytest.approx(MOST_SECONDS + 0.1, rel=0.25)


def test_no_computation_gives_way_to_an_answer_that_waits_for_it(way: GivingWay, time: Time) -> None:
    with way.answering():
        with way.waiting():
            way.look_up()
            assert time.slept == 0
        way.look_up()
    assert time.slept > 0
    with way.waiting():  # by a thread that answers no call
        way.look_up()
    assert way._answers == 0
