"""Each gang that waits is in one place, and comes to be planned by what happens or by time."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from extender.framework.pod_info import PodInfo
from extender.metrics import REGISTRY
from extender.plugins.coscheduling.state.gang_queue import GangQueue, Unschedulable
from extender.plugins.coscheduling.waits_for import ANYTHING, OWN_EVENTS, WaitsFor, kinds_of
from tests.objects import PodBuilder, make_pod
from tests.unit.plugins.coscheduling.bookkeeping import wrong_in_index


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(clock: Clock) -> GangQueue:
    queue = GangQueue(clock)
    for key in "abc":
        queue.follow(key, True)
    return queue


def waits_for(*pods: PodBuilder, **more: object) -> WaitsFor:
    return WaitsFor(kinds_of([PodInfo(each.obj()) for each in pods]), **more)  # type: ignore[arg-type]


def places(queue: GangQueue, key: str) -> list[str]:
    return [name for name in ("active", "backing_off", "unschedulable") if key in getattr(queue, name)]


def test_a_gang_that_begins_to_wait_waits_for_anything(queue: GangQueue) -> None:
    assert queue.unschedulable["a"] == Unschedulable(ANYTHING, math.inf)
    assert queue.index.anything == set("abc")


def test_a_gang_of_which_no_member_waits_any_more_is_in_no_place(queue: GangQueue) -> None:
    queue.follow("a", False)
    assert (places(queue, "a"), queue.waiting) == ([], {"b", "c"})


def test_what_a_plan_has_found_outlasts_a_moment_in_which_no_member_waits(queue: GangQueue) -> None:
    """Its only refused member is asked about, and refused once more."""
    lack = waits_for(make_pod().name("p"))
    queue.add_unschedulable("a", lack)
    queue.follow("a", False)
    queue.follow("a", True)
    assert queue.unschedulable["a"].waits_for is lack


def test_a_gang_that_waits_for_a_time_only_is_looked_at_when_that_has_come(queue: GangQueue, clock: Clock) -> None:
    queue.add_unschedulable("a", retry_at=103.0)
    assert (queue.flush(), queue.active) == (False, set())
    clock.now = 103.0
    assert (queue.flush(), queue.active, places(queue, "a")) == (True, {"a"}, ["active"])
    queue.begin_planning("a")
    assert not queue.flush()


def test_a_time_that_holds_no_longer_moves_no_gang(queue: GangQueue, clock: Clock) -> None:
    queue.add_unschedulable("a", retry_at=103.0)
    queue.add_unschedulable("a", retry_at=110.0)
    clock.now = 103.0
    assert not queue.flush()
    clock.now = 110.0
    assert queue.flush()


def test_of_two_times_the_later_counts(queue: GangQueue, clock: Clock) -> None:
    lack = waits_for(make_pod().name("p"))
    queue.add_unschedulable("a", lack, 105.0)
    queue.retry_at("a", 103.0)
    assert queue.unschedulable["a"] == Unschedulable(lack, 105.0)
    queue.retry_at("a", 107.0)
    assert queue.unschedulable["a"] == Unschedulable(lack, 107.0)


def test_a_time_for_a_gang_of_which_no_member_waits_yet(queue: GangQueue, clock: Clock) -> None:
    queue.retry_at("d", 103.0)
    clock.now = 103.0
    assert (queue.flush(), queue.active) == (True, {"d"})


def test_a_gang_that_backs_off_may_not_be_planned_until_its_time_is_up_and_is_looked_at_then(
    queue: GangQueue, clock: Clock
) -> None:
    queue.back_off("a", 10.0)
    clock.now = 109.0
    queue.move_to_active(["a"])
    queue.add_unschedulable("a", OWN_EVENTS)
    queue.retry_at("a", 109.5)
    assert (queue.backs_off("a"), queue.flush(), places(queue, "a")) == (True, False, ["backing_off"])
    clock.now = 110.0
    assert (queue.flush(), queue.active, queue.backs_off("a"), queue.backing_off) == (True, {"a"}, False, {})


def test_a_gang_that_is_planned_now_waits_for_anything_meanwhile(queue: GangQueue) -> None:
    queue.add_unschedulable("a", OWN_EVENTS)
    queue.move_to_active(["a"])
    queue.begin_planning("a")
    assert queue.unschedulable["a"].waits_for is ANYTHING


def test_what_happens_to_a_gang_while_it_is_planned_counts_after_it_has_places(queue: GangQueue) -> None:
    for key in "ab":
        queue.move_to_active([key])
        queue.begin_planning(key)
    queue.move_to_active("a")
    for key in "ab":
        queue.settle(key, OWN_EVENTS)
    assert (places(queue, "a"), queue.unschedulable["b"].waits_for) == (["active"], OWN_EVENTS)


def test_room_that_comes_free_is_not_for_gangs_that_wait_for_their_own_events(queue: GangQueue) -> None:
    queue.add_unschedulable("a", OWN_EVENTS)
    queue.add_unschedulable("b", waits_for(make_pod().name("p")))
    queue.move_all_to_active(but=["c"])
    assert (queue.active, sorted(queue.unschedulable)) == ({"b"}, ["a", "c"])


def test_gangs_that_stay_where_they_are_keep_no_other_from_becoming_active(queue: GangQueue) -> None:
    queue.move_to_active("a")
    queue.back_off("b", 10.0)
    queue.move_to_active("abc")
    assert (queue.active, places(queue, "b"), queue.moves) == ({"a", "c"}, ["backing_off"], 2)
    for key in "def":
        queue.follow(key, True)
    queue.move_all_to_active(but=["d"])
    assert queue.active == set("acef")


def test_what_was_found_is_forgotten_and_its_time_is_not(queue: GangQueue) -> None:
    queue.add_unschedulable("a", OWN_EVENTS, 103.0)
    queue.forget_why("a")
    assert queue.unschedulable["a"] == Unschedulable(ANYTHING, 103.0)


def test_of_a_group_that_is_gone_nothing_is_left(queue: GangQueue, clock: Clock) -> None:
    queue.back_off("a", 10.0)
    queue.move_to_active(["b"])
    queue.add_unschedulable("c", retry_at=103.0)
    for key in "abc":
        queue.forget(key)
    clock.now = 200.0
    assert (queue.flush(), queue.active, queue.backing_off, queue.unschedulable) == (False, set(), {}, {})
    assert (queue.waiting, queue.index.keys()) == (set(), set())


POD = make_pod().name("p")
KINDS = (
    waits_for(POD.req(cpu=1)),
    waits_for(POD.req(cpu=2)),
    waits_for(POD.req(cpu=1), POD.req({"gpu": 1}).node_selector({"zone": "a"}), priority=5),
    waits_for(POD.host_port(80).label("a", "b"), level_keys=frozenset({"rack"})),
    waits_for(POD.req(cpu=1), POD.req(cpu=1).label("a", "b")),
    WaitsFor((), room_anywhere=True),
    ANYTHING,
    OWN_EVENTS,
)


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_each_gang_that_waits_is_in_one_place(seed: int, clock: Clock) -> None:
    rng, queue = random.Random(seed), GangQueue(clock)
    steps: tuple[Callable[[str], object], ...] = (
        lambda key: queue.follow(key, rng.random() < 0.7),
        lambda key: queue.move_to_active([key]),
        queue.begin_planning,
        lambda key: queue.add_unschedulable(key, rng.choice(KINDS), rng.choice((math.inf, clock.now + 3))),
        lambda key: queue.settle(key, OWN_EVENTS),
        queue.forget_why,
        lambda key: queue.retry_at(key, clock.now + 2),
        lambda key: queue.back_off(key, 2.0),
        lambda key: queue.move_all_to_active([key]),
        lambda key: queue.flush(),
        queue.forget,
    )
    for _ in range(200):
        clock.now += rng.random()
        rng.choice(steps)(rng.choice("abcdef"))
        for key in "abcdef":
            assert len(places(queue, key)) <= 1
            assert key not in queue.waiting or places(queue, key)
        waiting = {key: found.waits_for for key, found in queue.unschedulable.items()}
        assert not list(wrong_in_index(queue.index, waiting))


def test_how_long_a_gang_was_in_the_queue_is_measured_once(queue: GangQueue, clock: Clock) -> None:
    """From the first event since it was last planned; a gang that is planned without an event was not in the queue."""

    def measured() -> tuple[float | None, float | None]:
        name = "gang_extender_planning_queue_duration_seconds"
        return REGISTRY.get_sample_value(f"{name}_count"), REGISTRY.get_sample_value(f"{name}_sum")

    count, seconds = measured()
    assert count is not None
    assert seconds is not None
    queue.move_to_active("a")
    clock.now += 2
    queue.move_to_active("a")
    clock.now += 1
    for key in "aab":
        queue.begin_planning(key)
    assert measured() == (count + 1, seconds + 3)


def test_how_long_a_group_that_is_gone_was_in_the_queue_is_not_measured_of_the_next_of_its_name(
    queue: GangQueue, clock: Clock
) -> None:
    name = "gang_extender_planning_queue_duration_seconds_count"
    before = REGISTRY.get_sample_value(name)
    queue.move_to_active("a")
    queue.forget("a")
    clock.now += 9
    queue.follow("a", True)
    queue.begin_planning("a")
    assert REGISTRY.get_sample_value(name) == before
