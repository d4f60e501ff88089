"""PreBind and PostBind: which members go on to their nodes, and what is on record of them afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.framework.binding_annotations import binding_annotations
from extender.framework.cycle_state import CycleState
from extender.framework.status import SUCCESS, unschedulable
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.start_record import parse_start
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import group

Make = Callable[..., World]
LEFT = unschedulable("the PodGroup fell below its minMember while waiting")


def started(w: World, size: int = 2, minimum: int = 2) -> None:
    """A gang of which so many are held, and the last one starts all."""
    w.plugin.on_pod_group(None, pod_group("g", minimum))
    w.create(*(pod(f"p{number}", "g") for number in range(size)))
    for number in range(minimum - 1):
        assert isinstance(w.bind(pod(f"p{number}", "g"), "n1"), Waiting)
    assert w.plugin.gang_permit.permit(pod(f"p{minimum - 1}", "g"), "n1", 60.0) == (SUCCESS, 0)


def test_each_member_of_a_start_bears_its_record(world: Make) -> None:
    w = world([node("n1")])
    started(w)
    for name in ("p0", "p1"):
        state = CycleState()
        assert w.plugin.pre_bind(state, pod(name, "g"), "n1") == SUCCESS
        record = parse_start(binding_annotations(state)[str(START)])
        assert record is not None
        assert record.quorum == 2


def test_a_member_that_was_not_in_the_start_bears_no_record_of_it(world: Make) -> None:
    w = world([node("n1")])
    started(w, size=3)
    state = CycleState()
    assert w.plugin.gang_permit.check_commit(state, pod("p2", "g"), "n1") == LEFT
    assert binding_annotations(state) == {}


def test_a_member_whose_gang_has_not_started_is_not_bound(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(held := pod("p0", "g"), pod("p1", "g"))
    w.bind(held, "n1")
    assert w.plugin.gang_permit.check_commit(CycleState(), held, "n1") == LEFT


def test_nor_is_a_member_that_was_deleted_while_it_was_bound(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(held := pod("p0", "g"), pod("p1", "g"))
    w.bind(held, "n1")
    w.plugin.on_pod(held, None)
    assert w.plugin.gang_permit.check_commit(CycleState(), held, "n1") == LEFT


@pytest.mark.parametrize(
    ("leads", "cordoned", "told"),
    [
        pytest.param(True, False, "", id="a node that takes it"),
        pytest.param(True, True, 'node "n1" is unschedulable', id="a node that was cordoned meanwhile"),
        pytest.param(False, False, "not the leader: nothing is committed", id="we lead no more"),
    ],
)
def test_a_single_pod_is_bound_to(leads: bool, cordoned: bool, told: str, world: Make) -> None:
    w = world([node("n1", unschedulable=cordoned)])
    w.leading = leads
    expected = unschedulable(told) if told else SUCCESS
    assert w.plugin.gang_permit.check_commit(CycleState(), pod("single"), "n1") == expected


def test_a_member_that_was_bound_counts_at_once_and_is_held_no_more(world: Make) -> None:
    """The watch may show it much later."""
    w = world([node("n1")])
    started(w)
    gang = w.plugin.manager.groups["default/g"]
    for name in ("p0", "p1"):
        w.plugin.gang_permit.bound(pod(name, "g"), "n1")
    assert (gang.assigned, gang.held, gang.started) == ({"p0", "p1"}, {}, set())
    assert {each.node for each in gang.members.values()} == {"n1"}
    assert gang.whole_of == 2, "it has been whole: of members that go only those that are left count"


def test_a_member_that_was_bound_without_a_hold_is_on_that_node_too(world: Make) -> None:
    """It may have been held by a process that led before."""
    w = world([node("n1"), node("n2")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(first := pod("p0", "g"), pod("p1", "g"))
    w.plugin.gang_permit.bound(first, "n2")
    gang = w.plugin.manager.groups["default/g"]
    assert (gang.assigned, gang.members["p0"].node) == ({"p0"}, "n2")


def test_a_single_pod_that_was_bound_is_no_gang_s_matter(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.gang_permit.bound(pod("single"), "n1")
    assert w.plugin.manager.groups == {}


def test_of_a_gang_whose_last_member_went_while_it_was_bound_nothing_is_left(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 1))
    w.create(only := pod("p0", "g"))
    assert w.bind(only, "n1") == "starts"
    w.plugin.on_pod_group(pod_group("g", 1), None)
    w.plugin.on_pod(only, None)
    w.plugin.gang_permit.bound(only, "n1")
    assert w.plugin.manager.groups == {}


def test_groups_that_start_together_are_each_on_their_own_once_all_are_bound(world: Make) -> None:
    w = world([node("n1")])
    for each in (group("g", 1, groups="h"), group("h", 1, groups="g")):
        w.plugin.on_pod_group(None, each)
    w.create(first := pod("g0", "g"), second := pod("h0", "h"))
    assert isinstance(w.bind(first, "n1"), Waiting)
    assert w.bind(second, "n1") == "starts"
    for member in (first, second):
        w.plugin.gang_permit.bound(member, "n1")
    assert w.plugin.manager.gang_set_index.was_whole(w.plugin.manager.gang_set_index.gang_set("default/g"))
