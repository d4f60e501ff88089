"""Turns of questions: one computes, tenants' take a tenth of the time, and no namespace waits twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from extender.plugins.coscheduling.questions.one_at_a_time import BusyError, OneAtATime


class Clock:
    """slept: what was slept, in seconds; it moves the time on."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def turns(clock: Clock) -> OneAtATime:
    return OneAtATime(wait_seconds=10.0, clock=clock, sleep=clock.sleep)


@contextmanager
def meanwhile(turns: OneAtATime, namespace: str) -> Iterator[None]:
    """A question of that namespace is being answered on another thread."""
    entered, leave = threading.Event(), threading.Event()

    def ask() -> None:
        with turns.turn_of_tenant(namespace):
            entered.set()
            leave.wait(5)

    other = threading.Thread(target=ask)
    other.start()
    assert entered.wait(5)
    try:
        yield
    finally:
        leave.set()
        other.join(5)


def test_tenants_questions_take_a_tenth_of_the_time(turns: OneAtATime, clock: Clock) -> None:
    for namespace in ("team-a", "team-b", "team-a"):
        with turns.turn_of_tenant(namespace), turns.turn():
            clock.now += 0.5
    assert clock.slept == [4.5, 4.5]


def test_what_has_rested_by_itself_waits_for_nothing(turns: OneAtATime, clock: Clock) -> None:
    with turns.turn_of_tenant("team-a"):
        clock.now += 0.5
    clock.now += 60
    with turns.turn_of_tenant("team-a"):
        pass
    assert clock.slept == []


def test_after_a_long_one_a_tenant_is_told_when_to_ask(turns: OneAtATime, clock: Clock) -> None:
    with turns.turn_of_tenant("team-a"):
        clock.now += 5
    with pytest.raises(BusyError, match="ask again in 45s"), turns.turn_of_tenant("team-b"):
        pass
    with turns.turn():
        pass
    assert clock.slept == []


def test_one_that_fails_rests_too_and_lets_the_next_ask(turns: OneAtATime, clock: Clock) -> None:
    def fail() -> None:
        with turns.turn_of_tenant("team-a"):
            clock.now += 0.5
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    with turns.turn_of_tenant("team-a"):
        pass
    assert clock.slept == [4.5]


def test_a_namespace_has_one_question_at_a_time(turns: OneAtATime) -> None:
    with (
        meanwhile(turns, "team-a"),
        pytest.raises(BusyError, match="another question of the namespace team-a"),
        turns.turn_of_tenant("team-a"),
    ):
        pass


def test_an_operator_waits_for_no_tenant_that_rests(turns: OneAtATime) -> None:
    with meanwhile(turns, "team-a"), turns.turn():
        pass


def test_a_tenant_waits_for_another_only_so_long(clock: Clock) -> None:
    turns = OneAtATime(wait_seconds=0.01, clock=clock, sleep=clock.sleep)
    with (
        meanwhile(turns, "team-a"),
        pytest.raises(BusyError, match="questions of other namespaces"),
        turns.turn_of_tenant("team-b"),
    ):
        pass
