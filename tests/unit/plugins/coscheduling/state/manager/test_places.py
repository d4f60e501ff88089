"""Which members have a place, and what becomes of a plan when places are taken back, lost or given up."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock, patch

import pytest

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.keys import ROLES
from extender.plugins.coscheduling.state.gang_queue import Unschedulable
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Effect, MemberEvent, MemberState
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import Needs
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.coscheduling.waits_for import WaitsFor
from tests.objects import make_pod_group
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


def keep(manager: PodGroupManager, *likenesses: corev1.Pod) -> None:
    """Room for members that are still to come."""
    for each in likenesses:
        manager.slots.reserve(Slot(PodInfo(each), KEY, "n1", math.inf, to_come=True))


def begin(group: Group, uid: str) -> None:
    """Its start is decided, and its binding under way."""
    hold(group, uid)
    group.happened(uid, MemberEvent.START_BEGUN)


def test_which_have_a_place(manager: PodGroupManager) -> None:
    group = planned(manager)
    manager.slots.release("q")
    for name in "abcd":
        manager.pod_changed(pod(name, "g", node_name="n1" if name == "a" else ""))
    hold(group, "b")
    begin(group, "d")
    place(manager, pod("to-come", "g"))
    assert manager.places.placed(group) == {"p", "a", "b", "d"}, "planned, on a node, held, and of a start"


def test_where_enough_members_are_held_or_bound_it_is_not_asked_which(manager: PodGroupManager) -> None:
    """It is asked with each member that is bound, and took as long as there are members."""
    group = planned(manager, 3)
    hold(group, "p")
    manager.pod_changed(pod("q", "g", node_name="n1"))
    manager.pod_changed(pod("r", "g"))
    begin(group, "r")
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


def test_the_place_of_a_failed_binding_holds_at_the_gang_s_priority_until_its_time_is_up(
    manager: PodGroupManager,
) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 2))
    for name, priority in (("p", 9), ("q", 4)):
        manager.pod_changed(pod(name, "g", priority=priority))
    manager.places.carry_out([Effect.KEEP_PLACE], group, "p", node_name="n7", until=0.5)
    manager.places.carry_out([Effect.KEEP_PLACE], group, "gone", node_name="n7", until=0.5)
    [kept] = manager.slots
    assert (kept.uid, kept.priority, kept.expires) == ("p", 4, 0.5)


def test_the_place_of_a_failed_binding_is_where_it_was_to_be_bound(manager: PodGroupManager) -> None:
    """kube-scheduler may have come with another node than that of its place."""
    group = planned(manager)
    manager.places.carry_out([Effect.KEEP_PLACE], group, "p", node_name="n7", until=33.0)
    assert {slot.uid: slot.node_name for slot in manager.slots} == {"p": "n7", "q": "n1"}


@pytest.mark.parametrize(
    ("node_name", "comes_free"),
    [
        pytest.param("n1", False, id="the member is on that node"),
        pytest.param("", True, id="the member is gone: others may have its room"),
    ],
)
def test_the_place_of_a_member_that_needs_none_any_more(
    node_name: str, comes_free: bool, manager: PodGroupManager
) -> None:
    group = planned(manager)
    manager.places.carry_out([Effect.RELEASE_PLACE], group, "p", node_name=node_name)
    assert (places(manager), manager.slots.given_up()) == ({"q"}, comes_free)


def test_a_member_whose_place_is_taken_back_keeps_its_turn(manager: PodGroupManager) -> None:
    """Those of later waves are not sent before it has another place."""
    group = planned(manager, 1)
    place(manager, pod("q", "g"), wave=2)
    place(manager, pod("gone", "g"))
    manager.places.release(group, ["q", "gone", "unknown"])
    assert {uid: member.turn for uid, member in group.members.items()} == {"p": None, "q": 2}
    assert manager.places.give_up(group)
    assert group.members["q"].turn is None, "of a plan that is given up there are no waves"


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param(lambda manager, group: manager.places.release(group, ["q"]), id="some are taken back"),
        pytest.param(lambda manager, group: manager.places.give_up(group), id="all are given up"),
    ],
)
def test_once_places_are_gone_what_the_plan_had_waited_for_is_true_no_more(
    lost: Callable[[PodGroupManager, Group], object], manager: PodGroupManager
) -> None:
    group = planned(manager, 1)
    for key in list(manager.queue.active):
        manager.queue.begin_planning(key)
    manager.queue.add_unschedulable(KEY, WaitsFor((), room_anywhere=True))
    lost(manager, group)
    assert manager.queue.unschedulable == {KEY: Unschedulable()}


def test_a_plan_without_places_that_is_given_up_leaves_what_the_gang_waits_for(manager: PodGroupManager) -> None:
    group = planned(manager)
    lack = WaitsFor((), room_anywhere=True)
    manager.queue.begin_planning(KEY)
    manager.queue.add_unschedulable(KEY, lack)
    assert not manager.places.give_up(group, keep=["p", "q"])
    assert manager.queue.unschedulable == {KEY: Unschedulable(lack)}
    assert group.members["p"].state is MemberState.UNSCHEDULABLE


LEADER, WORKER = ({"gang-extender.dev/role": role} for role in ("leader", "worker"))


@pytest.mark.parametrize(
    ("minimum", "there", "placed", "kept", "lacks"),
    [
        pytest.param(3, 1, 1, 2, 0, id="room is kept for all that are to come"),
        pytest.param(4, 1, 1, 2, 1, id="for one too few"),
        pytest.param(3, 2, 1, 2, 1, id="for more than are to come: the one that is there has none"),
        pytest.param(3, 3, 2, 2, 1, id="all are there, and what is kept is for no other"),
        pytest.param(3, 1, 1, 0, 2, id="no room is kept"),
        pytest.param(3, 3, 3, 0, 0, id="each has its place"),
    ],
)
def test_room_for_members_to_come_counts_for_those_that_are_not_there(
    minimum: int, there: int, placed: int, kept: int, lacks: int, manager: PodGroupManager
) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", minimum))
    for number in range(there):
        manager.pod_changed(pod(f"p{number}", "g"))
    keep(manager, *(pod(f"like{number}") for number in range(kept)))
    found = manager.places.lacks(group, manager.specs.of(group), {f"p{number}" for number in range(placed)})
    assert found == Needs(lacks)


@pytest.mark.parametrize(
    ("kept", "lacks"),
    [
        pytest.param([LEADER, WORKER, WORKER], Needs(), id="of each role as many as it needs"),
        pytest.param([WORKER, WORKER], Needs(1, (("leader", 1),)), id="no leader"),
        pytest.param([WORKER, WORKER, WORKER, LEADER], Needs(1, (("leader", 1),)), id="more than minMember: the first"),
    ],
)
def test_room_for_members_to_come_counts_for_their_roles(
    kept: list[dict[str, str]], lacks: Needs, manager: PodGroupManager
) -> None:
    made = make_pod_group().namespace("default").name("g").min_member(3).annotation(str(ROLES), "leader=1,worker=2")
    group = manager.objects.pod_group_changed(made.obj())
    keep(manager, *(pod(f"like{number}", labels=labels) for number, labels in enumerate(kept)))
    assert manager.places.lacks(group, manager.specs.of(group), frozenset()) == lacks


def test_a_group_that_asks_for_nothing_that_is_known_lacks_nothing(manager: PodGroupManager) -> None:
    assert manager.places.lacks(Group(KEY), None, frozenset()) == Needs()


def test_where_counting_says_that_none_lacks_a_place_it_is_not_asked_which(manager: PodGroupManager) -> None:
    """It is asked with each member's event: a list of all that are to come would cost a gang the square of its size."""
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    manager.pod_changed(pod("p", "g"))
    keep(manager, *(pod(f"like{number}") for number in range(2)))
    with patch("extender.plugins.coscheduling.state.manager.places.needs", side_effect=AssertionError("asked")):
        assert not manager.places.lacks(group, manager.specs.of(group), {"p"})


def test_the_plan_of_a_group_that_is_not_kept_makes_none_active(manager: PodGroupManager) -> None:
    """What a late call was given, beside a gang of that name."""
    stale = planned(manager)
    manager.groups.pop(KEY)
    manager.queue.active.clear()
    manager.places.release(stale)
    assert (stale.planned, manager.queue.active) == (False, set())


def test_room_for_members_to_come_holds_at_the_gang_s_priority_and_is_theirs(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    manager.pod_changed(pod("p", "g", priority=7))
    manager.places.keep_for_members_to_come(group, [("n1", PodInfo(pod("like", "", priority=9)))], 50.0)
    [slot] = manager.slots.to_come(KEY)
    assert (slot.node_name, slot.expires, slot.priority) == ("n1", 50.0, 7)
    manager.pod_changed(pod("q", "g", priority=9))
    own = manager.slots.get("q")
    assert own is not None
    assert (own.node_name, own.to_come, list(manager.slots.to_come(KEY))) == ("n1", False, [])
