"""Which places are lost when a node has less room than is promised there, and what a place says that kube-scheduler did not take."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from extender.api import corev1
from extender.framework.interface import MIN_FEASIBLE_NODES_TO_FIND
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.scheduling.lost_slots import lose_slot, no_longer_fit, recheck, refute
from extender.plugins.coscheduling.state.refutations import How
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

Make = Callable[..., World]
SOON = 160.0


def place(name: str, priority: int = 0, *, firm: bool = False, expires: float = SOON) -> Slot:
    """Of one CPU on the node n1."""
    return Slot(PodInfo(pod(name, "g", priority=priority)), "default/g", "n1", expires, firm)


@pytest.mark.parametrize(
    ("places", "lost"),
    [
        pytest.param([place("a")], [], id="there is room"),
        pytest.param([place("a"), place("b")], ["b"], id="of equal ones the older stays"),
        pytest.param([place("low", 1), place("high", 2)], ["low"], id="the higher priority stays"),
        pytest.param(
            [place("high", 2), place("firm", 1, firm=True)], ["high"], id="what is firm stays, at any priority"
        ),
        pytest.param(
            [place("f", 1, firm=True), place("g", 2, firm=True)], ["f"], id="of firm ones the higher priority"
        ),
        pytest.param(
            [place("a", expires=math.inf), place("b")], [], id="room that is still to come free is not counted"
        ),
        pytest.param([place("here"), place("a")], [], id="one that is there already has its room"),
    ],
)
def test_which_places_a_node_with_room_for_one_has_no_room_for(places: list[Slot], lost: list[str]) -> None:
    info = NodeInfo(node("n1", "1"))
    if any(each.uid == "here" for each in places):
        info = NodeInfo(node("n1", "2"))
        info.add_pod(PodInfo(pod("here", "g", node_name="n1")))
    assert [each.pod.name for each in no_longer_fit(info, places)] == lost


def test_a_cordoned_node_has_room_for_none() -> None:
    info = NodeInfo(node("n1", "4", unschedulable=True))
    assert [each.pod.name for each in no_longer_fit(info, [place("a"), place("firm", firm=True)])] == ["firm", "a"]


@pytest.mark.parametrize(
    ("groups", "but", "lost"),
    [
        pytest.param(["g"], [], True, id="each node is looked at"),
        pytest.param(["g"], ["default/g"], False, id="but one that has slots of this gang set alone"),
        pytest.param(["g", "other"], ["default/g"], True, id="one has slots of another gang too"),
    ],
)
def test_which_nodes_are_looked_at_after_a_plan(groups: list[str], but: list[str], lost: bool, world: Make) -> None:
    """On each there is room for one slot less than there are."""
    w = world([node("n1", str(len(groups)))])
    manager = w.plugin.manager
    for name in groups:
        w.plugin.on_pod_group(None, pod_group(name, 2))
        w.create(pod(f"{name}0", name), pod(f"{name}1", name))
        manager.places.give_up(manager.groups[f"default/{name}"])
    uids = ["g0", "g1", "other0"][: len(groups) + 1]
    for uid in uids:
        key = f"default/{uid[:-1]}"
        manager.slots.reserve(Slot(manager.groups[key].members[uid].info, key, "n1", SOON))
    assert recheck(manager, ["n1"], w.snapshot(), but) is lost
    assert len(manager.slots.on_node("n1")) == len(uids) - lost


@pytest.fixture
def planned(world: Make) -> World:
    """A gang of two with its places on n1."""
    w = world([node("n1"), node("n2")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(pod("p0", "g"), pod("p1", "g"))
    assert w.filter(pod("p0", "g")) == "n1"
    return w


def test_a_held_member_keeps_its_place_on_a_node_that_goes(planned: World) -> None:
    """Its hold ends where the start finds no node; without its place the room beside it was given away before that."""
    manager = planned.plugin.manager
    planned.bind(pod("p0", "g"), "n1")
    planned.plugin.on_node(node("n1"), None)
    assert {each.uid for each in manager.slots.on_node("n1")} == {"p0"}
    held = manager.slots.get("p0")
    assert held is not None
    with manager.lock:
        assert not lose_slot(manager, held)


@pytest.mark.parametrize(
    ("offered", "confined"),
    [
        pytest.param(MIN_FEASIBLE_NODES_TO_FIND - 1, True, id="it has judged every node"),
        pytest.param(MIN_FEASIBLE_NODES_TO_FIND, False, id="it may have stopped at so many"),
    ],
)
def test_what_was_offered_says_all_only_where_kube_scheduler_did_not_stop_early(
    planned: World, offered: int, confined: bool
) -> None:
    manager = planned.plugin.manager
    gang = manager.groups["default/g"]
    own = manager.slots.get("p0")
    assert own is not None
    refute(manager, gang, own, How.NOT_OFFERED, frozenset(f"other{number}" for number in range(offered)))
    assert ("p0" in gang.refuted.confined(manager.clock(), manager.notes.cluster_epoch)) is confined


# SchedulerFeedback: a nomination of ours is gone


def nominated(w: World, node_name: str, message: str = "") -> corev1.Pod:
    condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", message)
    status = corev1.PodStatus(nominated_node_name=node_name, conditions=(condition,) if message else ())
    return structs.replace(pod("p1", "g"), status=status)


@pytest.mark.parametrize(
    ("place_on", "refuted"),
    [
        pytest.param("n1", True, id="its place is there: it is refuted"),
        pytest.param("n2", False, id="its place has moved on: the new one stands"),
    ],
)
def test_a_refusal_speaks_of_the_place_that_was_nominated(planned: World, place_on: str, refuted: bool) -> None:
    """The member's new place was left out of plans for what the old one was refused for."""
    manager = planned.plugin.manager
    gang = manager.groups["default/g"]
    own = manager.slots.get("p1")
    assert own is not None
    planned.plugin.on_pod(pod("p1", "g"), nominated(planned, "n1"))
    gang.members["p1"].nomination = "n1"
    manager.slots.reserve(replace(own, node_name=place_on))
    planned.steered.clear()
    planned.plugin.on_pod(
        nominated(planned, "n1"), nominated(planned, "", "0/2 nodes are available: 2 an unknown reason.")
    )
    left_out = gang.refuted.left_out(manager.clock())
    assert left_out == ({("p1", "n1")} if refuted else frozenset())
    assert planned.steered == ([] if refuted else [("p1", "n2")])
