"""Slots to which no member came in time: whose plan is given up, what of it is noted, and which room is kept on."""

from __future__ import annotations

import logging
import math

import pytest

from extender import metrics
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.planner.room import asked_of
from extender.plugins.coscheduling.scheduling.lost_slots import fits_beside, refute
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.refutations import How
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

SOON = 160.0


class Planned(World):
    """A gang of two with its places on n1 until 160 s; its members have been asked about, but for those of kube-scheduler's own."""

    def __init__(self) -> None:
        super().__init__([node("n1"), node("n2")])
        self.plugin.on_pod_group(None, pod_group("g", 2))
        self.create(pod("p0", "g"), pod("p1", "g"))
        assert self.filter(pod("p0", "g")) == "n1"
        assert self.filter(pod("p1", "g")) == "n1"
        for slot in list(self.plugin.manager.slots):
            assert slot.expires == SOON
        self.tasks.clear()

    @property
    def group(self) -> Group:
        return self.plugin.manager.groups["default/g"]

    def looks(self, at: float) -> set[str]:
        """The tick of expired slots; the members that have a slot then."""
        self.clock.now = at
        self.plugin.expired_slots.tick()
        return {slot.uid for slot in self.plugin.manager.slots}

    def left_out(self) -> set[tuple[str, str]]:
        return set(self.group.refuted.left_out(self.clock.now))


@pytest.fixture
def planned() -> Planned:
    return Planned()


def did_not_come() -> float:
    return float(metrics.plan_refuted.labels(How.DID_NOT_COME)._value.get())


def test_when_their_time_is_over_the_plan_is_given_up_and_others_have_their_turn(
    planned: Planned, caplog: pytest.LogCaptureFixture
) -> None:
    assert planned.looks(SOON - 0.1) == {"p0", "p1"}
    with caplog.at_level(logging.INFO):
        assert planned.looks(SOON) == set()
    assert "plan expired group=default/g" in [record.message for record in caplog.records]
    assert planned.plugin.manager.denied.get("default/g") == messages.MEMBERS_DID_NOT_COME
    assert planned.group.last_diagnosis == Diagnosis(
        UnschedulableReason.MEMBERS_DID_NOT_COME, messages.MEMBERS_DID_NOT_COME, SOON
    )
    assert "plan" in planned.tasks
    assert not planned.group.planned


def test_members_that_took_our_answer_are_given_another_node_next_time(planned: Planned) -> None:
    planned.looks(SOON)
    assert planned.left_out() == {("p0", "n1"), ("p1", "n1")}


def test_one_that_was_not_asked_about_sleeps_until_it_is(planned: Planned) -> None:
    planned.group.members["p1"].rejected_in_tree = 7
    before = did_not_come()
    planned.looks(SOON)
    assert planned.left_out() == {("p0", "n1")}
    assert did_not_come() == before + 2
    assert planned.group.refuted.nowhere(SOON, 0) == {"p1"}
    planned.group.members["p1"].rejected_in_tree = None


def test_one_that_kube_scheduler_has_refused_since_sleeps_likewise(planned: Planned) -> None:
    planned.group.refuted.may_preempt("p1", frozenset(("n2",)))
    planned.looks(SOON)
    assert planned.left_out() == {("p0", "n1")}
    assert planned.group.refuted.nowhere(SOON, 0) == {"p1"}


def test_held_members_keep_the_whole_plan_until_the_others_time_is_over(planned: Planned) -> None:
    planned.bind(pod("p0", "g"), "n1")
    planned.looks(SOON)
    assert planned.left_out() == {("p1", "n1")}, "one that is held has come"


def test_a_plan_of_which_all_that_is_left_is_held_does_not_expire(planned: Planned) -> None:
    planned.bind(pod("p0", "g"), "n1")
    manager = planned.plugin.manager
    with manager.lock:
        manager.places.release(planned.group, ["p1"])
        slot = manager.slots.get("p0")
    assert slot is not None
    assert planned.looks(SOON) == {"p0"}


def to_come(planned: Planned, until: float) -> None:
    manager = planned.plugin.manager
    with manager.lock:
        likeness = PodInfo(pod("likeness", uid="likeness"))
        manager.slots.reserve(Slot(likeness, "default/g", "n2", until, to_come=True))


def test_room_for_members_that_never_came_to_be_is_given_up_alone(planned: Planned) -> None:
    to_come(planned, SOON - 10)
    assert planned.looks(SOON - 11) == {"p0", "p1", "likeness"}
    assert planned.tasks == {}
    assert planned.looks(SOON - 10) == {"p0", "p1"}
    assert "plan" in planned.tasks, "others may fit"
    assert planned.plugin.manager.denied.get("default/g") is None


def test_with_the_plan_it_goes_too(planned: Planned) -> None:
    to_come(planned, 1000.0)
    assert planned.looks(SOON) == set()


def test_an_extra_member_s_place_is_given_up_and_nothing_is_said_of_its_gang(planned: Planned) -> None:
    manager = planned.plugin.manager
    for name in ("p0", "p1"):
        there = pod(name, "g", node_name="n1")
        planned.on_nodes[there.uid] = there
        planned.plugin.on_pod(pod(name, "g"), there)
    planned.create(pod("extra", "g"))
    with manager.lock:
        manager.slots.reserve(Slot(planned.group.members["extra"].info, "default/g", "n2", SOON))
    assert planned.looks(SOON) == set()
    assert manager.denied.get("default/g") is None
    assert planned.group.last_diagnosis is None


def test_a_place_of_no_gang_is_not_looked_at(planned: Planned) -> None:
    manager = planned.plugin.manager
    with manager.lock:
        manager.slots.reserve(Slot(PodInfo(pod("single")), "", "n2", 50.0))
    assert planned.looks(SOON - 1) == {"p0", "p1", "single"}
    manager.slots.release("single")


# What kube-scheduler did not take


@pytest.mark.parametrize(
    ("how", "offered", "nodes"),
    [
        pytest.param(How.REFUSED, (), frozenset(), id="it refused them all: nowhere until it asks"),
        pytest.param(How.NOT_OFFERED, ("n7",), frozenset(("n7", "n1")), id="it offered some: there, or with siblings"),
        pytest.param(How.NOT_OFFERED, (), frozenset(("n1",)), id="it offered none: with siblings alone"),
    ],
)
def test_where_a_member_may_go_whose_place_it_did_not_take(
    how: How, offered: tuple[str, ...], nodes: frozenset[str], planned: Planned
) -> None:
    manager = planned.plugin.manager
    with manager.lock:
        own = manager.slots.get("p0")
        assert own is not None
        refute(manager, planned.group, own, how, frozenset(offered))
        found = planned.group.refuted.confined(manager.clock(), manager.notes.cluster_epoch)
    assert planned.left_out() == {("p0", "n1")}
    assert found == {"p0": nodes}


# Room


@pytest.mark.parametrize(
    ("cpu", "coming", "pods", "fits"),
    [
        pytest.param("2", ["1", "1"], 110, True, id="all of them take all there is"),
        pytest.param("2", ["1", "2"], 110, False, id="together they take too much"),
        pytest.param("4", [], 110, True, id="it takes all of the node"),
        pytest.param("5", [], 110, False, id="it is larger than the node"),
        pytest.param("1", ["1"], 2, True, id="as many as the node may run"),
        pytest.param("1", ["1", "1"], 2, False, id="one more than the node may run"),
    ],
)
def test_whether_a_pod_fits_beside_those_that_are_to_come(cpu: str, coming: list[str], pods: int, fits: bool) -> None:
    asked = asked_of(PodInfo(pod("p", cpu=cpu)).requests)
    others = [PodInfo(pod(f"c{number}", cpu=amount)) for number, amount in enumerate(coming)]
    assert fits_beside(asked, NodeInfo(node("n1", "4", pods)), others) is fits


def test_a_place_for_which_victims_have_to_go_first_does_not_expire(planned: Planned) -> None:
    manager = planned.plugin.manager
    with manager.lock:
        for slot in list(manager.slots):
            manager.slots.reserve(Slot(slot.pod_info, slot.group, "n1", math.inf))
    assert planned.looks(1e9) == {"p0", "p1"}
