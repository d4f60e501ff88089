"""Extra members that were allowed no victims: they are roused when their gang has started, and only then."""

from __future__ import annotations

import math

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.ledger import Reservation
from extender.plugins.coscheduling.preemption.vetoed_extras import VetoedExtras
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

FIRST, EXTRA = pod("p0", "g"), pod("p1", "g")


@pytest.fixture
def waiting() -> World:
    """A gang of one with a member more, which was vetoed before anybody had started."""
    world = World([node("n1", cpu="1"), node("n2", cpu="1")])
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(FIRST, EXTRA)
    return world


@pytest.fixture
def extras(waiting: World) -> VetoedExtras:
    made = VetoedExtras(waiting.plugin.manager, waiting, lambda: "n1")
    made.note(EXTRA, "n2")
    return made


def started(world: World) -> None:
    world.plugin.on_pod(FIRST, pod("p0", "g", node_name="n1"))


def test_it_is_roused_once_when_its_gang_runs(waiting: World, extras: VetoedExtras) -> None:
    extras.tick()
    assert waiting.roused == []
    started(waiting)
    for _ in range(2):
        extras.tick()
    assert waiting.roused == ["p1"]


def test_one_that_has_a_place_by_then_is_left_alone(waiting: World, extras: VetoedExtras) -> None:
    """Its nomination is ours, and would be taken back."""
    waiting.plugin.manager.ledger.reserve(Reservation(PodInfo(EXTRA), "default/g", "n2", math.inf))
    started(waiting)
    extras.tick()
    assert waiting.roused == []


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(None, id="gone"),
        pytest.param(pod("p1", "g", node_name="n2"), id="on a node"),
        pytest.param(pod("p1", "g", deleting=True), id="going"),
    ],
)
def test_who_waits_no_more_is_forgotten(new: object, waiting: World, extras: VetoedExtras) -> None:
    extras.on_pod(EXTRA, EXTRA)
    extras.on_pod(EXTRA, new)  # type: ignore[arg-type]
    started(waiting)
    extras.tick()
    assert waiting.roused == []


@pytest.mark.parametrize(
    ("refused", "roused"),
    [pytest.param(EXTRA, ["p1"], id="of a gang"), pytest.param(pod("single"), [], id="of none: it was heard")],
)
def test_after_a_restart_its_condition_tells(refused: corev1.Pod, roused: list[str], waiting: World) -> None:
    extras = VetoedExtras(waiting.plugin.manager, waiting, lambda: "n1")
    text = "0/2 nodes are available: 2 Insufficient cpu. preemption: no candidate node for preemption"
    condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", text)
    extras.on_pod(None, structs.replace(refused, status=corev1.PodStatus(conditions=(condition,))))
    extras.tick()
    assert waiting.roused == []
    started(waiting)
    extras.tick()
    assert waiting.roused == roused
