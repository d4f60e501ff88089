"""Preemptors that were allowed no victims are tried again when a gang has started or can spare a member, and only then."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.preemption.waiting_preemptors import WaitingPreemptors
from extender.plugins.coscheduling.state.group_members import GONE_SECONDS
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

FIRST, EXTRA = pod("p0", "g"), pod("p1", "g")


@pytest.fixture
def waiting() -> World:
    """A gang of one with a member more, which was vetoed before any had started."""
    world = World([node("n1", cpu="1"), node("n2", cpu="1")])
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(FIRST, EXTRA)
    return world


@pytest.fixture
def vetoed(waiting: World) -> WaitingPreemptors:
    made = preemptors(waiting)
    made.note_extra(EXTRA, "n2")
    return made


def preemptors(world: World, may_break: Callable[[], bool] = lambda: True) -> WaitingPreemptors:
    steering = OrderedSteering(world, world.plugin.manager.quarantine)
    return WaitingPreemptors(world.plugin.manager, world.plugin.dependencies, steering, lambda: "n1", may_break)


def started(world: World) -> None:
    world.plugin.on_pod(FIRST, pod("p0", "g", node_name="n1"))


def test_it_is_roused_once_when_its_gang_runs(waiting: World, vetoed: WaitingPreemptors) -> None:
    vetoed.tick()
    assert waiting.roused == []
    started(waiting)
    for _ in range(2):
        vetoed.tick()
    assert waiting.roused == ["p1"]


def test_one_that_has_a_place_by_then_is_left_alone(waiting: World, vetoed: WaitingPreemptors) -> None:
    """Its nomination is ours, and would be taken back."""
    waiting.plugin.manager.slots.reserve(Slot(PodInfo(EXTRA), "default/g", "n2", math.inf))
    started(waiting)
    vetoed.tick()
    assert waiting.roused == []


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(None, id="gone"),
        pytest.param(pod("p1", "g", node_name="n2"), id="on a node"),
        pytest.param(pod("p1", "g", deleting=True), id="going"),
    ],
)
def test_a_preemptor_that_waits_no_more_is_forgotten(new: object, waiting: World, vetoed: WaitingPreemptors) -> None:
    vetoed.on_pod(EXTRA, EXTRA)
    vetoed.on_pod(EXTRA, new)  # type: ignore[arg-type]
    started(waiting)
    vetoed.tick()
    assert waiting.roused == []


def test_a_preemptor_that_has_gone_by_the_time_of_its_veto_is_no_member_again_later(waiting: World) -> None:
    """Its preempt call was under way. Nothing would have it forgotten, and what was deleted so long ago is not known as deleted."""
    started(waiting)
    waiting.plugin.on_pod(EXTRA, None)
    vetoed = preemptors(waiting)
    vetoed.note_extra(EXTRA, "n2")
    waiting.clock.now += GONE_SECONDS + 1.0
    vetoed.tick()
    assert set(waiting.plugin.manager.groups["default/g"].members) == {FIRST.uid}
    assert waiting.roused == []


@pytest.mark.parametrize(
    ("refused", "roused"),
    [pytest.param(EXTRA, ["p1"], id="of a gang"), pytest.param(pod("single"), [], id="of none: it was heard")],
)
def test_after_a_restart_its_condition_tells(refused: corev1.Pod, roused: list[str], waiting: World) -> None:
    vetoed = preemptors(waiting)
    text = "0/2 nodes are available: 2 Insufficient cpu. preemption: no candidate node for preemption"
    condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", text)
    vetoed.on_pod(None, structs.replace(refused, status=corev1.PodStatus(conditions=(condition,))))
    vetoed.tick()
    assert waiting.roused == []
    started(waiting)
    vetoed.tick()
    assert waiting.roused == roused


# Gangs in the way

VIP = pod("vip", priority=100)
GROUP = pod_group("g", 2)


@pytest.fixture
def running() -> World:
    """A gang of two runs, and needs both."""
    world = World([node("n1", cpu="1"), node("n2", cpu="1"), node("n3", cpu="1")])
    world.plugin.on_pod_group(None, GROUP)
    for name, at in (("p0", "n1"), ("p1", "n2")):
        world.plugin.on_pod(None, pod(name, "g", node_name=at))
    return world


def grows(world: World) -> None:
    world.plugin.on_pod(None, pod("p2", "g", node_name="n3"))


def needs_fewer(world: World) -> None:
    world.plugin.on_pod_group(GROUP, pod_group("g", 1))


def is_a_gang_no_more(world: World) -> None:
    world.plugin.on_pod_group(GROUP, None)


def loses_one(world: World) -> None:
    world.plugin.on_pod(pod("p1", "g", node_name="n2"), None)


def needs_more(world: World) -> None:
    world.plugin.on_pod_group(GROUP, pod_group("g", 3))


@pytest.mark.parametrize(
    ("happens", "roused"),
    [
        pytest.param(grows, ["vip"], id="one more runs"),
        pytest.param(needs_fewer, ["vip"], id="minMember is lowered"),
        pytest.param(is_a_gang_no_more, ["vip"], id="the PodGroup goes"),
        pytest.param(loses_one, [], id="one fewer runs"),
        pytest.param(needs_more, [], id="minMember is raised"),
        pytest.param(lambda _: None, [], id="nothing"),
    ],
)
def test_a_preemptor_that_wants_a_victim_that_a_gang_needs_is_tried_again_when_it_has_more_to_spare(
    happens: Callable[[World], None], roused: list[str], running: World
) -> None:
    vetoed = preemptors(running)
    vetoed.note_in_want_of_victims(VIP, "n1", {"default/g"})
    happens(running)
    for _ in range(2):
        vetoed.tick()
    assert running.roused == roused


def test_a_gang_that_could_spare_a_member_before_has_to_have_more_to_spare(running: World) -> None:
    """The member that it could spare was of too high a priority, or on another node."""
    grows(running)
    vetoed = preemptors(running)
    vetoed.note_in_want_of_victims(VIP, "n1", {"default/g"})
    vetoed.tick()
    assert running.roused == []
    running.plugin.on_pod(None, pod("p3", "g", node_name="n3"))
    vetoed.tick()
    assert running.roused == ["vip"]


def test_it_is_roused_when_we_may_break_gangs(running: World) -> None:
    allowed: list[bool] = []
    vetoed = preemptors(running, lambda: bool(allowed))
    vetoed.note_in_want_of_victims(VIP, "n1", {"default/g"})
    vetoed.tick()
    assert running.roused == []
    allowed.append(True)
    vetoed.tick()
    assert running.roused == ["vip"]
