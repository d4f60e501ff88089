"""A plan that raises an unexpected error: the gang is planned again by itself, and no other gang is affected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node, pod_group
from tests.unit.plugins.coscheduling.failing_plans import Faulty, passes
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]

pytestmark = pytest.mark.faults


@pytest.fixture
def kube(world: Make) -> Faulty:
    made = Faulty(world([node("n1", "4"), node("n2", "4")]))
    made.apply(group("bad", 2), group("good", 2))
    return made


def test_a_gated_gang_is_planned_again_by_itself_and_keeps_no_other_waiting(kube: Faulty) -> None:
    """bad comes first in the order; it waited for ever, and good with it until something happened."""
    kube.create(*members(2, "bad", gated=True), *members(2, "good", gated=True))
    kube.run()
    assert kube.running() == {"good0", "good1"}
    assert kube.reason("default/bad") == "InternalError"
    kube.faulty = False
    passes(kube, 1.0)
    assert len(kube.running()) == 4


def test_it_is_left_alone_twice_as_long_each_time_up_to_five_minutes(kube: KubeScheduler) -> None:
    kube.create(*members(2, "bad", gated=True))
    manager, seen = kube.plugin.manager, []
    for _ in range(11):
        kube.run()
        seen.append(manager.quarantine.until("default/bad") - kube.world.clock.now)
        passes(kube, seen[-1])
    assert seen == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_plain_members_hear_one_constant_text_and_are_tried_again_when_it_is_over(kube: Faulty) -> None:
    kube.create(*members(2, "bad"))
    kube.run()
    assert kube.told == {"bad0": messages.INTERNAL_ERROR, "bad1": messages.INTERNAL_ERROR}
    kube.faulty = False
    passes(kube, 1.0)
    assert kube.running() == {"bad0", "bad1"}


def test_no_other_gang_s_call_fails_for_it(kube: KubeScheduler) -> None:
    kube.create(*members(2, "bad", gated=True), *(good := members(2, "good")))
    assert kube.world.filter(good[0]) in ("n1", "n2")


@pytest.fixture
def half_way(kube: Faulty, monkeypatch: pytest.MonkeyPatch) -> Iterator[KubeScheduler]:
    """The places are noted, and then it fails."""
    kube.faulty = False
    dispatcher = kube.plugin.dispatcher
    send = dispatcher.dispatch

    def fails(group: Group, caller: str = "") -> None:
        if group.key == "default/bad":
            raise KeyError("a fault of ours")
        send(group, caller)

    with monkeypatch.context() as patched:
        patched.setattr(dispatcher, "dispatch", fails)
        yield kube


def test_a_plan_that_fails_half_way_keeps_no_room(half_way: KubeScheduler, monkeypatch: pytest.MonkeyPatch) -> None:
    half_way.create(*members(2, "bad", cpu=4, gated=True), *members(2, "good", cpu=4, gated=True))
    half_way.run()
    assert half_way.running() == {"good0", "good1"}
    assert not half_way.plugin.manager.slots.of_group("default/bad")


def test_two_gangs_that_fail_half_way_do_not_keep_each_other_going(
    half_way: KubeScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room that one gives up is no reason to try the other at once, and so on for ever."""

    def fails(group: Group, caller: str = "") -> None:
        raise KeyError("a fault of ours")

    monkeypatch.setattr(half_way.plugin.dispatcher, "dispatch", fails)
    half_way.create(*members(2, "bad", gated=True), *members(2, "good", gated=True))
    half_way.run()
    quarantine, now = half_way.plugin.manager.quarantine, half_way.world.clock.now
    assert {key: quarantine.until(key) - now for key in quarantine} == {"default/bad": 1, "default/good": 1}


def test_a_step_of_the_tick_that_fails_leaves_the_others_to_be_done(
    kube: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise KeyError("a fault of ours")

    for part in (kube.plugin.room, kube.plugin.stale_refusals, kube.plugin.observer):
        monkeypatch.setattr(part, "tick", fails)
    kube.faulty = False
    kube.create(*(good := members(2, "good")))
    assert kube.world.filter(good[0]) in ("n1", "n2")
    kube.world.clock.now += 61
    kube.plugin.tick()
    assert not kube.plugin.manager.slots.of_group("default/good"), "its time is over"


def test_many_plans_are_made_in_turns(world: Make) -> None:
    """The order is looked at anew, and each that waits for the planner has its turn."""
    kube = KubeScheduler(world([node("n1", "8")]))

    def offload(function: Callable[..., object], *args: Any) -> object:
        kube.world.clock.now += 3.0
        return function(*args)

    kube.world.connect(offload=offload)
    for number in range(5):
        kube.apply(group(f"g{number}", 1))
        kube.create(member(f"m{number}", f"g{number}", gated=True))
    planned = []
    while kube.world.tasks:
        kube.world.run_tasks()
        planned.append(len(kube.plugin.manager.slots))
    assert planned == [1, 2, 3, 4, 5, 5]


def test_many_events_ask_for_one_turn_and_where_none_may_be_planned_the_next_event_asks_again(world: Make) -> None:
    w = world([])
    turns: list[Callable[[], None]] = []
    w.connect(plan_beside=turns.append, may_plan=lambda: w.leading)

    def comes(*names: str) -> int:
        for name in names:
            w.nodes[name] = node(name, "1")
            w.plugin.on_node(None, w.nodes[name])
        return len(turns)

    def run() -> None:
        while turns:
            turns.pop(0)()

    w.plugin.on_pod_group(None, pod_group("g", 8))
    w.create(*members(8, "g", gated=True))
    run()
    assert comes("n1", "n2", "n3") == 1
    run()
    assert comes("n4", "n5") == 1
    w.leading = False
    run()
    w.leading = True
    assert comes("n6", "n7", "n8") == 1
    run()
    assert len(list(w.plugin.manager.slots)) == 8
