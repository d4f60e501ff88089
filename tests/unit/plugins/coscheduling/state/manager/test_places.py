"""Which members have a place, and what becomes of a plan when places are taken back, lost or given up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock, patch

import pytest

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Effect, MemberEvent, MemberState
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, hold, place, places


def planned(manager: PodGroupManager, min_member: int = 2) -> Group:
    """Of two members, with a place each."""
    group = manager.objects.pod_group_changed(pod_group("g", min_member))
    for name in "pq":
        manager.pod_changed(pod(name, "g"))
        group.happened(name, MemberEvent.REFUSED)
        place(manager, pod(name, "g"))
    group.planned, group.preempting = True, Mock()
    return group


def test_which_have_a_place(manager: PodGroupManager) -> None:
    group = planned(manager)
    manager.slots.release("q")
    for name in "abc":
        manager.pod_changed(pod(name, "g", node_name="n1" if name == "a" else ""))
    hold(group, "b")
    assert manager.places.placed(group) == {"p", "a", "b"}, "planned, on a node, held"


def test_where_enough_members_are_held_or_bound_it_is_not_asked_which(manager: PodGroupManager) -> None:
    """It is asked with each member that is bound, and took as long as there are members."""
    group = planned(manager)
    hold(group, "p")
    manager.pod_changed(pod("q", "g", node_name="n1"))
    manager.slots.release("p")
    with patch.object(manager.places, "placed", side_effect=AssertionError("asked")):
        manager.places.follow(group)
    assert group.planned


@pytest.mark.parametrize(
    ("min_member", "uids", "left", "still"),
    [
        pytest.param(2, ["q"], {"p"}, False, id="one of two that it needs: it is planned anew"),
        pytest.param(1, ["q"], {"p"}, True, id="one beyond its minimum: it may start"),
        pytest.param(1, None, set(), False, id="all of them"),
    ],
)
def test_places_that_are_taken_back(
    manager: PodGroupManager, min_member: int, uids: list[str] | None, left: set[str], still: bool
) -> None:
    group = planned(manager, min_member)
    manager.places.release(group, uids)
    assert (places(manager), group.planned) == (left, still)
    assert (KEY in manager.queue.active) is not still


def test_places_that_are_lost_are_planned_beside_those_that_are_good(manager: PodGroupManager) -> None:
    group = planned(manager, 1)
    manager.denied[KEY] = "no room"
    for key in list(manager.queue.active):
        manager.queue.begin_planning(key)
    manager.places.lose(group, ["q"])
    assert (places(manager), group.planned) == ({"p"}, True)
    assert (list(manager.denied), manager.queue.active) == ([], {KEY})


def test_a_plan_that_is_given_up_leaves_the_places_of_those_held_and_those_kept(manager: PodGroupManager) -> None:
    group = planned(manager)
    for name in "rs":
        manager.pod_changed(pod(name, "g"))
        place(manager, pod(name, "g"))
    group.happened("r", MemberEvent.ADMITTED)
    hold(group, "p")
    assert manager.places.give_up(group, keep=["q"])
    assert places(manager) == {"p", "q"}
    assert (group.planned, group.preempting) == (False, None)
    assert {member.turn for member in group.members.values()} == {None}
    assert group.members["r"].state is MemberState.UNSCHEDULABLE, "its place is gone, and the node with it"
    assert not manager.places.give_up(group, keep=["q"])


def test_a_plan_stands_while_enough_have_a_place(manager: PodGroupManager) -> None:
    group = planned(manager)
    for key in list(manager.queue.active):
        manager.queue.begin_planning(key)
    manager.places.follow(group)
    assert (group.planned, manager.queue.active) == (True, set())
    manager.objects.pod_group_changed(pod_group("g", 3))
    assert (group.planned, manager.queue.active) == (False, {KEY}), "it asks for more now"


@pytest.mark.parametrize(
    "asks",
    [
        pytest.param(lambda m: m.objects.pod_group_gone(pod_group("g", 2)), id="its object is gone"),
        pytest.param(lambda m: m.objects.pod_group_changed(pod_group("g", -1)), id="it asks for nonsense"),
    ],
)
def test_a_plan_falls_with_what_it_was_made_for(manager: PodGroupManager, asks: Callable[[Any], Any]) -> None:
    group = planned(manager)
    asks(manager)
    assert not group.planned


def test_a_plan_of_which_no_member_waits_in_vain_is_not_made_anew_by_itself(manager: PodGroupManager) -> None:
    group = planned(manager)
    for name in "pq":
        group.happened(name, MemberEvent.ADMITTED)
    for key in list(manager.queue.active):
        manager.queue.begin_planning(key)
    manager.places.release(group)
    assert (group.planned, manager.queue.active) == (False, set())


def test_a_member_whose_binding_failed_keeps_a_place_though_it_had_none(manager: PodGroupManager) -> None:
    """It came to be bound without a plan, as a single member does."""
    group = planned(manager)
    manager.slots.release("p")
    manager.places.carry_out([Effect.KEEP_PLACE], group, "p", node_name="n7", until=33.0)
    kept = manager.slots.get("p")
    assert kept is not None
    assert (kept.node_name, kept.expires, kept.group) == ("n7", 33.0, KEY)
    manager.places.carry_out([Effect.KEEP_PLACE], group, "p", node_name="n7", until=12.0)
    kept = manager.slots.get("p")
    assert kept is not None
    assert kept.expires == 33.0, "never for a shorter time than before"


def test_room_for_members_to_come_holds_at_the_gang_s_priority_and_is_theirs(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    manager.pod_changed(pod("p", "g", priority=7))
    manager.places.keep_for_members_to_come(group, [("n1", PodInfo(pod("like", "", priority=7)))], 50.0)
    [slot] = manager.slots.to_come(KEY)
    assert (slot.node_name, slot.expires, slot.priority) == ("n1", 50.0, 7)
    manager.pod_changed(pod("q", "g", priority=7))
    own = manager.slots.get("q")
    assert own is not None
    assert (own.node_name, own.to_come, list(manager.slots.to_come(KEY))) == ("n1", False, [])
