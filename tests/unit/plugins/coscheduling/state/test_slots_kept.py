"""Slots as they come and go: found by member, node and group, counted by what is asked of them, and told to those that follow them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from extender.framework.pod_info import PodInfo
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY
from extender.plugins.coscheduling.state.slots import Slot, Slots
from tests.unit.plugins.coscheduling.conftest import pod

G, H = "default/g", "default/h"


def slot(uid: str, node_name: str = "n1", group: str = G, *, priority: int = 0, port: int = 0, **more: Any) -> Slot:
    containers = [{"ports": [{"hostPort": port, "containerPort": port}]}] if port else [{}]
    return Slot(PodInfo(pod(uid, priority=priority, containers=containers)), group, node_name, 100.0, **more)


def uids(slots: object) -> list[str]:
    return [each.uid for each in slots]  # type: ignore[attr-defined]


@pytest.fixture
def slots() -> Slots:
    """Of two groups on two nodes; b is for a member to come, c is firm."""
    made = Slots()
    for each in (slot("a"), slot("b", "n2", to_come=True), slot("c", firm=True), slot("d", group=H)):
        made.reserve(each)
    return made


def test_a_slot_is_found_by_its_member_its_node_and_its_group(slots: Slots) -> None:
    assert (len(slots), uids(slots), sorted(slots.uids())) == (4, list("abcd"), list("abcd"))
    assert (uids(slots.on_node("n1")), uids(slots.on_node("n2")), uids(slots.on_node("n3"))) == (list("acd"), ["b"], [])
    assert (uids(slots.of_group(G)), uids(slots.of_group(H)), uids(slots.of_group("other"))) == (list("abc"), ["d"], [])
    assert (set(slots.uids_of(G)), set(slots.uids_of("other"))) == (set("abc"), set())
    assert (uids(slots.to_come(G)), uids(slots.to_come(H))) == (["b"], [])
    assert (set(slots.firm_of(G)), set(slots.firm_of(H))) == ({"c"}, set())
    assert (slots.get("a"), slots.get("other")) == (next(iter(slots)), None)


def test_a_slot_that_is_released_is_found_nowhere(slots: Slots) -> None:
    for uid in "abcd":
        released = slots.release(uid)
        assert released is not None
        assert released.uid == uid
    assert slots.release("a") is None
    assert (len(slots), uids(slots), set(slots.uids())) == (0, [], set())
    assert [uids(found) for found in (slots.on_node("n1"), slots.of_group(G), slots.to_come(G))] == [[], [], []]
    assert (set(slots.uids_of(G)), set(slots.firm_of(G))) == (set(), set())
    assert slots.follow() == set(), "no node has any"


@pytest.mark.parametrize(
    ("node_names", "found"),
    [
        pytest.param({"n1"}, ["a", "c"], id="fewer nodes than slots: not the other group's"),
        pytest.param({"n2", "n1"}, ["a", "c", "b"], id="node by node, in the order of their names"),
        pytest.param({"n3"}, [], id="a node without any"),
        pytest.param({"n1", "n3", "n4"}, ["a", "c"], id="as many nodes as slots"),
        pytest.param({"n1", "n2", "n3", "n4"}, ["a", "b", "c"], id="more nodes than slots: in the slots' order"),
    ],
)
def test_the_slots_of_a_group_on_some_nodes(node_names: set[str], found: list[str], slots: Slots) -> None:
    assert uids(slots.of_group_on(G, node_names)) == found
    assert uids(slots.of_group_on("other", node_names)) == []


def test_a_slot_has_one_number_for_as_long_as_it_is_there(slots: Slots) -> None:
    numbers = [each.id for each in slots]
    assert len(set(numbers)) == 4
    assert 0 not in numbers, "that says that it is not kept"
    slots.move("a", "n9")
    slots.reserve(replace(slot("b"), node_name="n5"))
    assert {each.uid: each.id for each in slots} == dict(zip("abcd", numbers, strict=True))
    slots.release("a")
    slots.reserve(slot("a"))
    again = slots.get("a")
    assert again is not None
    assert again.id not in {*numbers, slots.next_number()}


def test_a_slot_that_is_moved_leaves_room_where_it_was(slots: Slots) -> None:
    slots.move("a", "n9")
    assert (uids(slots.on_node("n9")), uids(slots.on_node("n1"))) == (["a"], ["c", "d"])
    assert slots.given_up()
    with pytest.raises(KeyError):
        slots.move("other", "n9")


def test_a_follower_is_told_each_node_whose_slots_change(slots: Slots) -> None:
    told, other = slots.follow(), slots.follow()
    assert told == other == {"n1", "n2"}
    told.clear()
    slots.release("b")
    assert told == {"n2"}
    told.clear()
    slots.reserve(slot("e", "n7"))
    assert told == {"n7"}
    told.clear()
    slots.move("e", "n8")
    assert told == {"n7", "n8"}
    slots.unfollow(told)
    slots.release("e")
    slots.reserve(slot("f", "n9"))
    assert told == {"n7", "n8"}, "it is told no more"
    assert other == {"n1", "n2", "n7", "n8", "n9"}, "and the other still is"


def test_a_follower_above_any_priority_begins_with_the_firm_ones(slots: Slots) -> None:
    assert slots.follow(ABOVE_ANY_PRIORITY) == {"n1"}
    assert slots.follow(7) == {"n1", "n2"}
    slots.release("c")
    assert slots.follow(ABOVE_ANY_PRIORITY) == set()


def test_a_follower_is_told_of_all_changes_whatever_it_began_with(slots: Slots) -> None:
    told = slots.follow(ABOVE_ANY_PRIORITY)
    slots.release("b")
    assert told == {"n1", "n2"}


@pytest.mark.parametrize(
    ("priority", "lowest"),
    [
        pytest.param(0, 3, id="below all"),
        pytest.param(3, 3, id="as the lowest"),
        pytest.param(4, 7, id="between two"),
        pytest.param(8, ABOVE_ANY_PRIORITY, id="above all but the firm one"),
    ],
)
def test_from_which_priority_on_slots_hold(priority: int, lowest: int) -> None:
    slots = Slots()
    for each in (slot("a", priority=3), slot("b", priority=3), slot("c", priority=7), slot("d", priority=9, firm=True)):
        slots.reserve(each)
    assert slots.lowest_against(priority) == lowest
    slots.release("a")
    assert slots.lowest_against(priority) == lowest, "another of that priority is left"
    slots.release("b")
    assert slots.lowest_against(priority) == (7 if lowest == 3 else lowest)


def test_a_slot_that_becomes_firm_counts_at_no_priority_any_more() -> None:
    slots = Slots()
    slots.reserve(slot("a", priority=3))
    slots.reserve(slot("a", priority=3, firm=True))
    assert slots.lowest_against(0) == ABOVE_ANY_PRIORITY
    slots.reserve(slot("a", priority=3))
    assert slots.lowest_against(0) == 3


def test_a_member_beyond_the_quorum_holds_at_its_own_lower_priority() -> None:
    assert [slot("a", priority=own, gang_priority=5).priority for own in (3, 9)] == [3, 5]
    assert slot("a", priority=9).priority == 9, "a pod of no gang"


@pytest.mark.parametrize(
    ("made", "against", "holds"),
    [
        pytest.param(slot("a", priority=5), 4, True, id="a lower one"),
        pytest.param(slot("a", priority=5), 5, True, id="the same"),
        pytest.param(slot("a", priority=5), 6, False, id="a higher one"),
        pytest.param(slot("a", priority=5, firm=True), 6, True, id="a higher one, but the slot is firm"),
    ],
)
def test_against_which_priority_a_slot_holds(made: Slot, against: int, holds: bool) -> None:
    assert made.holds_against(against) is holds


@pytest.mark.parametrize(
    ("of", "made"),
    [
        pytest.param(lambda slots: slots.waves, lambda uid, group=G: slot(uid, group=group, wave=2), id="a later wave"),
        pytest.param(
            lambda slots: slots.looking, lambda uid, group=G: slot(uid, group=group, port=80), id="a pod with a port"
        ),
    ],
)
def test_how_many_slots_of_a_group_are_not_like_most(
    of: Callable[[Slots], Any], made: Callable[..., Slot], slots: Slots
) -> None:
    assert of(slots) == {}
    slots.reserve(made("x"))
    slots.reserve(made("y"))
    slots.reserve(made("z", H))
    assert of(slots) == {G: 2, H: 1}
    slots.reserve(made("x"))
    slots.release("y")
    assert of(slots) == {G: 1, H: 1}
    slots.reserve(slot("x"))
    slots.release("z")
    assert of(slots) == {}
