"""Plans of gangs that are still being made: room for all their members, or none, and nothing is said of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api import corev1
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members, on_node

NAME = member("x").spec.scheduler_name


@pytest.fixture
def early(world: Callable[..., World]) -> KubeScheduler:
    """Four nodes of two CPUs; half of the room may go to gangs that are being made."""
    return KubeScheduler(world([node(f"n{number}", "2") for number in range(4)], early_start=True))


def plan_early(kube: KubeScheduler) -> str:
    """The refusal, or empty."""
    kube.world.tasks.clear()
    gang = kube.plugin.manager.groups["default/g"]
    with kube.plugin.rounds.planning:
        return kube.plugin.rounds._gang_sets.plan(gang, NAME, {}, caller="default/g1").message


@pytest.mark.parametrize(
    ("minimum", "places"),
    [
        pytest.param(4, 4, id="it takes half of the room"),
        pytest.param(5, 0, id="it would take more than half of it"),
    ],
)
def test_a_gang_that_is_being_made_has_room_for_all_its_members_where(
    minimum: int, places: int, early: KubeScheduler
) -> None:
    early.apply(group(minimum=minimum))
    early.create(*members(3))
    told = plan_early(early)
    assert len(list(early.plugin.manager.slots)) == places
    until = early.world.clock.now + early.plugin.rounds._gang_sets._lease_seconds
    assert {slot.expires for slot in early.plugin.manager.slots} == ({until} if places else set()), "as any place"
    siblings = (
        f"pre-filter pod g1 cannot find enough sibling pods, current pods number: 3, minMember of group: {minimum}"
    )
    assert told == ("" if places else siblings)
    assert (early.plugin.manager.groups["default/g"].gathering is not None) is bool(places)
    assert early.world.verdicts == [], "nothing is said of it"


def test_one_that_has_places_keeps_them_and_finds_room_for_the_others(early: KubeScheduler) -> None:
    """What it may take of the room was asked before."""
    early.apply(group(minimum=4))
    early.create(*members(2))
    assert plan_early(early) == ""
    early.world.nodes = {name: each for name, each in early.world.nodes.items() if name in ("n0", "n1")}
    manager = early.plugin.manager
    gang = manager.groups["default/g"]
    kept = {slot.uid for slot in manager.slots.to_come("default/g")}
    with manager.lock:
        manager.places.release(gang, kept)
    assert plan_early(early) == ""
    assert len(list(manager.slots)) == 4


def come(kube: KubeScheduler, *pods: corev1.Pod) -> None:
    kube.create(*pods)
    kube.run()


def test_those_that_are_being_made_give_way_to_a_gang_that_is_complete_as_far_as_it_takes(early: KubeScheduler) -> None:
    """Two have room for two members each, and single pods the rest."""
    early.apply(group("a", 2), group("b", 2), group())
    come(early, member("a0", "a"), member("b0", "b"))
    assert len(list(early.plugin.manager.slots)) == 4
    taken = {slot.node_name for slot in early.plugin.manager.slots}
    rest = [name for name in early.world.nodes if name not in taken]
    early.create(*(on_node(member(f"s-{name}", "", cpu=2), name) for name in rest))
    short: list[str] = []
    early.plugin.rounds._gang_sets.on_no_room = lambda group, name: short.append(group.key)
    early.create(*members(2, gated=True))
    assert "last failed" in plan_early(early)
    assert short == [], "no pod need be evicted"
    assert "plan" in early.world.tasks, "it is planned again in their room"
    gathering = [key for key, each in early.plugin.manager.groups.items() if each.gathering is not None]
    assert len(gathering) == 1, "the room of one is enough"


def test_one_whose_places_are_gone_ends_and_the_log_says_why(
    early: KubeScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    early.apply(group(minimum=4))
    early.create(*members(3))
    assert plan_early(early) == ""
    manager = early.plugin.manager
    with manager.lock:
        manager.places.release(manager.groups["default/g"], ["default/g0"])
        manager.groups["default/g"].planned = True
    early.world.nodes = {}
    with caplog.at_level("INFO"):
        assert "current pods number: 3, minMember of group: 4" in plan_early(early)
    text = "early start ended group=default/g members=3 of=4 reason='it does not fit'"
    assert text in [record.message for record in caplog.records]
    assert list(manager.slots) == []


def test_one_that_finds_no_room_waits_as_any_other(early: KubeScheduler) -> None:
    early.world.nodes = {}
    early.apply(group(minimum=2))
    early.create(*members(1))
    told = plan_early(early)
    assert "current pods number: 1, minMember of group: 2" in told
    gang = early.plugin.manager.groups["default/g"]
    assert (gang.gathering, gang.last_diagnosis) == (None, None)


def test_one_that_is_complete_when_its_plan_is_made_starts_as_any_other(early: KubeScheduler) -> None:
    """Its last member comes while it is planned."""
    early.apply(group(minimum=2))
    early.create(*members(1))
    gang = early.plugin.manager.groups["default/g"]

    def offload(function: Callable[..., object], *args: Any) -> object:
        found = function(*args)
        if len(gang.members) == 1:
            early.create(member("last"))
        return found

    early.world.connect(offload=offload)
    assert plan_early(early) == ""
    early.run()
    assert early.starts == [{"g0", "last"}]
