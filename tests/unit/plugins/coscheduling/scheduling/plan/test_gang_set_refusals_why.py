"""What a closer look at a refusal asks, what it comes to, and until when that is so."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from extender.api import corev1
from extender.config.types import TopologyLevel
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import look_closer, no_longer_reserved, waits_for
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.diagnosis import Diagnosis
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason as Why
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.refutations import How
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.coscheduling.waits_for import WaitsFor
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]
NAME = member("x").spec.scheduler_name
NO_ROOM = planner.NoPlacement("Insufficient cpu", 0, 2, planner.Cause.ROOM)
STOP = Diagnosis(Why.INSUFFICIENT_RESOURCES, "minMember of 2 does not fit: Insufficient cpu", verdict=NO_ROOM)
REFUTED = "minMember of 2 does not fit on the nodes that kube-scheduler's own filters accept"


class Refused(KubeScheduler):
    """A gang of two, and one of two others that has places on n1. fits: which questions find places."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.apply(group(), group("o"))
        self.create(*members(2, gated=True))
        self.questions: list[PlanQuestion] = []
        self.fits: Callable[[PlanQuestion], bool] = lambda question: False

    @property
    def group(self) -> Group:
        return self.plugin.manager.groups["default/g"]

    def has_places(self, *uids: str, group: str = "default/o") -> None:
        for uid in uids:
            info = self.plugin.manager.groups[group].members[uid].info
            self.plugin.manager.slots.reserve(Slot(info, group, "n1", math.inf))

    def question(self) -> PlanQuestion:
        manager = self.plugin.manager
        with manager.lock:
            return self.plugin.rounds.requests.question((self.group,), NAME, self.world.snapshot())

    def look(self, stop: Diagnosis = STOP, question: PlanQuestion | None = None) -> Diagnosis:
        def asked(each: PlanQuestion) -> bool:
            self.questions.append(each)
            return self.fits(each)

        requests = self.plugin.rounds.requests
        return look_closer(self.plugin.manager, requests, (self.group,), question or self.question(), stop, asked)


@pytest.fixture
def refused(world: Make) -> Refused:
    return Refused(world([node("n1", "8"), node("n2", "8")]))


@pytest.mark.parametrize(
    ("cause", "asked"),
    [
        pytest.param(planner.Cause.ROOM, True, id="room"),
        pytest.param(planner.Cause.NODES, True, id="a node"),
        pytest.param(planner.Cause.AFFINITY, True, id="a pod to be near to"),
        pytest.param(planner.Cause.TOPOLOGY, True, id="room in one rack"),
        pytest.param(planner.Cause.MEMBERS, False, id="members"),
        pytest.param(planner.Cause.BUDGET, False, id="time"),
    ],
)
def test_a_closer_look_is_taken_at_a_gang_that_lacks(cause: planner.Cause, asked: bool, refused: Refused) -> None:
    refused.group.refuted.add("default/g0", "n1", How.REFUSED, refused.world.clock.now)
    stop = replace(STOP, verdict=replace(NO_ROOM, cause=cause))
    assert refused.look(stop) is stop
    assert bool(refused.questions) is asked


def test_no_look_is_taken_where_no_plan_was_made(refused: Refused) -> None:
    refused.group.refuted.add("default/g0", "n1", How.REFUSED, refused.world.clock.now)
    stop = replace(STOP, verdict=None)
    assert refused.look(stop) is stop
    assert refused.questions == []


def test_nothing_is_asked_where_kube_scheduler_refused_nothing_and_no_other_has_places(refused: Refused) -> None:
    assert refused.look() is STOP
    assert refused.questions == []


def _refuted(refused: Refused) -> None:
    refused.group.refuted.add("default/g0", "n1", How.REFUSED, refused.world.clock.now)


def _refuted_before(refused: Refused) -> None:
    """It is left out no more."""
    _refuted(refused)
    refused.world.clock.now += 1000


def _stays_out(refused: Refused) -> None:
    refused.group.refuted.stays_out("default/g0", refused.plugin.manager.notes.cluster_epoch)


def _excluded(refused: Refused) -> PlanQuestion:
    question = refused.question()
    return question.asking(replace(question.request, excluded=frozenset((("default/g0", "n1"),))))


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param(_refuted, id="has refused a place"),
        pytest.param(_refuted_before, id="has refused one some time ago"),
        pytest.param(_stays_out, id="lets a member go nowhere"),
    ],
)
def test_a_gang_that_would_fit_where_kube_scheduler(happened: Callable[[Refused], None], refused: Refused) -> None:
    """It is asked without what kube-scheduler has refused, and no longer than for a moment."""
    happened(refused)
    refused.fits = lambda question: True
    assert refused.look() == replace(STOP, reason=Why.REFUTED_BY_SCHEDULER, message=REFUTED)
    request = refused.questions[0].request
    assert (request.excluded, dict(request.allowed), request.budget_seconds) == (frozenset(), {}, 0.2)


def test_a_place_that_the_plan_left_out_counts_as_refused(refused: Refused) -> None:
    refused.fits = lambda question: True
    assert refused.look(question=_excluded(refused)).reason == Why.REFUTED_BY_SCHEDULER


def test_a_gang_that_is_gone_meanwhile_is_told_of_no_number(refused: Refused) -> None:
    _refuted(refused)
    question = refused.question()
    refused.remove(refused.groups["default/g"])
    refused.fits = lambda question: True
    text = "minMember of 0 does not fit on the nodes that kube-scheduler's own filters accept"
    assert refused.look(question=question).message == text


def test_a_gang_that_would_not_fit_without_that_keeps_its_cause(refused: Refused) -> None:
    _refuted(refused)
    assert refused.look() is STOP
    assert len(refused.questions) == 1


def test_a_gang_that_would_fit_in_the_places_of_others_says_whose_they_are(refused: Refused) -> None:
    refused.create(*members(2, "o", gated=True))
    refused.has_places("default/o0", "default/o1")
    refused.has_places("default/g0", group="default/g")
    refused.fits = lambda question: not question.others
    found = refused.look()
    assert found == replace(STOP, reason=Why.RESERVED_FOR_OTHERS, in_the_way=frozenset(("default/o0", "default/o1")))
    asked = refused.questions[0]
    assert (asked.cluster, asked.request.budget_seconds) == (asked.snapshot, 0.2)


def test_what_kube_scheduler_refused_is_asked_before_the_places_of_others(refused: Refused) -> None:
    _refuted(refused)
    refused.create(*members(2, "o", gated=True))
    refused.has_places("default/o0")
    refused.fits = lambda question: True
    assert refused.look().reason == Why.REFUTED_BY_SCHEDULER


def test_a_gang_that_fits_in_no_place_of_others_keeps_its_cause(refused: Refused) -> None:
    refused.create(*members(2, "o", gated=True))
    refused.has_places("default/o0")
    assert refused.look() is STOP
    assert len(refused.questions) == 1


def test_a_gang_of_which_the_others_have_gone_meanwhile_keeps_its_cause(refused: Refused) -> None:
    refused.create(*members(2, "o", gated=True))
    refused.has_places("default/o0")
    question = refused.question()
    refused.plugin.manager.slots.release("default/o0")
    refused.fits = lambda question: True
    assert refused.look(question=question) is STOP


# Until when


RESERVED = replace(STOP, reason=Why.RESERVED_FOR_OTHERS, since=1.0, in_the_way=frozenset(("default/o0", "default/o1")))


@pytest.mark.parametrize(
    ("stop", "places", "reason"),
    [
        pytest.param(RESERVED, (), Why.INSUFFICIENT_RESOURCES, id="no place is left of them"),
        pytest.param(RESERVED, ("default/o1",), None, id="one is left"),
        pytest.param(
            replace(RESERVED, verdict=replace(NO_ROOM, cause=planner.Cause.TOPOLOGY)),
            (),
            Why.TOPOLOGY_UNSATISFIABLE,
            id="the cause is the plan's",
        ),
        pytest.param(replace(RESERVED, reason=Why.INSUFFICIENT_RESOURCES), (), None, id="it was for another reason"),
        pytest.param(replace(RESERVED, verdict=None), (), None, id="no plan was made"),
        pytest.param(replace(RESERVED, in_the_way=frozenset()), (), None, id="none of them is known"),
        pytest.param(None, (), None, id="it is not refused"),
    ],
)
def test_the_places_of_others_are_no_reason_any_more_where(
    stop: Diagnosis | None, places: tuple[str, ...], reason: Why | None, refused: Refused
) -> None:
    refused.create(*members(2, "o", gated=True))
    refused.has_places(*places)
    refused.group.last_diagnosis = stop
    manager = refused.plugin.manager
    with manager.lock:
        found = no_longer_reserved(manager, refused.group)
    if reason is None:
        assert found is None
    else:
        assert stop is not None
        assert found == replace(stop, reason=reason, since=refused.world.clock.now)
    refused.group.last_diagnosis = None


# What it waits for

RACK = planner.Topology((TopologyLevel("zone", "z"), TopologyLevel("rack", "r")), required="r")


def with_priority(pod: corev1.Pod, priority: int) -> corev1.Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, priority=priority))


def waits(refused: Refused, request: planner.Request, stop: Diagnosis = STOP, *, anything: bool = False) -> WaitsFor:
    return waits_for(refused.plugin.manager, (refused.group,), request, stop, anything=anything)


@pytest.mark.parametrize(
    ("topology", "keys"),
    [
        pytest.param(RACK, {"z", "r"}, id="in one rack: labels of nodes for every level"),
        pytest.param(replace(RACK, required="", preferred="r"), set(), id="near each other where it can be: none"),
        pytest.param(planner.Topology(), set(), id="anywhere: none"),
    ],
)
def test_which_labels_of_nodes_may_help_a_gang_that_is_to_be(
    topology: planner.Topology, keys: set[str], refused: Refused
) -> None:
    found = waits(refused, replace(refused.question().request, topology=topology))
    assert found.level_keys == keys


@pytest.mark.parametrize(
    ("sizes", "keys"),
    [
        pytest.param((("rack", 2),), {"z", "r"}, id="slice by slice: labels of nodes for every level"),
        pytest.param((), set(), id="in the order of its ranks: none"),
    ],
)
def test_which_labels_of_nodes_may_help_a_gang_that_is_placed(
    sizes: tuple[tuple[str, int], ...], keys: set[str], refused: Refused
) -> None:
    request = replace(refused.question().request, topology=replace(RACK, required=""))
    sliced = planner.Sliced(frozenset(("default/g0", "default/g1")), sizes)
    assert waits(refused, replace(request, sliced=[sliced])).level_keys == keys


def test_it_waits_for_what_may_help_its_members_at_the_priority_of_the_lowest_of_its_groups(refused: Refused) -> None:
    refused.apply(group("low"), group("high"))
    refused.create(*(with_priority(pod, 3) for pod in members(2, "low")))
    refused.create(*(with_priority(pod, 7) for pod in members(2, "high")))
    request, manager = refused.question().request, refused.plugin.manager
    gang_set = [manager.groups[f"default/{name}"] for name in ("high", "low")]
    found = waits_for(manager, gang_set, request, STOP)
    assert [kind.first.pod.name for kind in found.kinds] == ["g0"]
    assert (found.priority, found.room_anywhere) == (3, False)


def test_anything_may_help_where_it_is_said_so(refused: Refused) -> None:
    assert waits(refused, refused.question().request, anything=True).anything
    assert not waits(refused, refused.question().request).anything


def test_anything_may_help_a_gang_that_needs_room_for_members_to_come(refused: Refused) -> None:
    request = refused.question().request
    foreseen = planner.Foreseen(request.members[0], request.members[0].requests)
    assert waits(refused, replace(request, foreseen=foreseen)).anything
