"""Which groups are to be looked at, and when."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.state.gang_queue import GangQueue


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> GangQueue:
    return GangQueue(clock)


def test_a_group_that_waits_for_a_time_only_is_looked_at_when_that_has_come(queue: GangQueue, clock: Clock) -> None:
    queue.later["a"] = 103.0
    assert (queue.flush(), queue.active) == (False, set())
    clock.now = 103.0
    assert (queue.flush(), queue.active, queue.later) == (True, {"a"}, {})
    assert not queue.flush()


def test_a_group_that_backs_off_may_not_be_planned_until_its_time_is_up_and_is_looked_at_then(
    queue: GangQueue, clock: Clock
) -> None:
    queue.back_off("a", 10.0)
    clock.now = 109.0
    assert (queue.backing_off("a"), queue.flush()) == (True, False)
    clock.now = 110.0
    assert (queue.flush(), queue.active, queue.backing_off("a"), queue.backed_off) == (True, {"a"}, False, {})


def test_of_a_group_that_is_gone_nothing_is_left(queue: GangQueue, clock: Clock) -> None:
    queue.back_off("a", 10.0)
    queue.active.add("a")
    queue.forget("a")
    clock.now = 200.0
    assert (queue.flush(), queue.active, queue.backing_off("a")) == (False, set(), False)
