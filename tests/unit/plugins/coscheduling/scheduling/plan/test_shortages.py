"""When counting alone says that a gang that found no room finds none still."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from msgspec import structs

from extender.api.quantity import parse_quantity
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.scheduling.plan.shortages import Shortages
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    """Three members of two cpus each, and two nodes of two: they were refused for it."""
    made = KubeScheduler(world([node("n1", "2"), node("n2", "2")]))
    made.apply(group(minimum=3))
    made.create(*members(3, cpu=2, gated=True))
    made.run()
    return made


def still_short(kube: KubeScheduler) -> str:
    manager, requests = kube.plugin.manager, kube.plugin.rounds.requests
    found: Shortages = kube.plugin.rounds._gang_sets._shortages
    with manager.lock:
        gang_set = (manager.groups["default/g"],)
        question = requests.question(gang_set, member("x").spec.scheduler_name, kube.world.snapshot())
    stop = found.still_short(gang_set, question.request, kube.world.snapshot())
    return stop.message if stop is not None else ""


def _comes(kube: KubeScheduler) -> None:
    kube.world.nodes["n3"] = node("n3", "2")


def _has_a_place(kube: KubeScheduler) -> None:
    info = kube.plugin.manager.groups["default/g"].members["default/g0"].info
    kube.plugin.manager.slots.reserve(Slot(info, "default/g", "n1", math.inf))


def _was_never_refused(kube: KubeScheduler) -> None:
    kube.plugin.manager.groups["default/g"].last_diagnosis = None


@pytest.mark.parametrize(
    ("happened", "short"),
    [
        pytest.param(lambda kube: None, True, id="nothing has changed: no plan is needed to know it"),
        pytest.param(_comes, False, id="a node that is large enough has come"),
        pytest.param(_has_a_place, False, id="a member has a place: the gang may fit without it"),
        pytest.param(_was_never_refused, False, id="nothing is known of what it lacked"),
    ],
)
def test_whether_counting_says_that_it_finds_no_room(
    happened: Callable[[KubeScheduler], None], short: bool, kube: KubeScheduler
) -> None:
    happened(kube)
    assert bool(still_short(kube)) == short


def test_a_gang_with_places_is_planned_though_counting_finds_no_room_beside_them(world: Make) -> None:
    """Without its places there may be."""
    made = KubeScheduler(world([node("n1", "2"), node("n2", "2")]))
    made.apply(group(minimum=5))
    made.create(*members(5, cpu=2, gated=True))
    made.run()
    assert still_short(made) == "minMember of 5 does not fit: Insufficient cpu"
    _has_a_place(made)
    assert still_short(made) == ""


def _refused_for_another_reason(kube: KubeScheduler) -> None:
    gang = kube.plugin.manager.groups["default/g"]
    assert gang.last_diagnosis is not None
    gang.last_diagnosis = replace(gang.last_diagnosis, reason=UnschedulableReason.RESERVED_FOR_OTHERS)


def _refused_by_no_plan(kube: KubeScheduler) -> None:
    gang = kube.plugin.manager.groups["default/g"]
    assert gang.last_diagnosis is not None
    gang.last_diagnosis = replace(gang.last_diagnosis, verdict=None)


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param(_refused_for_another_reason, id="it was refused for another reason"),
        pytest.param(_refused_by_no_plan, id="no plan has said what it lacks"),
    ],
)
def test_counting_says_nothing_where(happened: Callable[[KubeScheduler], None], kube: KubeScheduler) -> None:
    happened(kube)
    assert still_short(kube) == ""


def test_a_gang_whose_object_is_gone_meanwhile_is_told_of_no_number(kube: KubeScheduler) -> None:
    gang, question = kube.plugin.manager.groups["default/g"], asked(kube)
    stop = gang.last_diagnosis
    kube.remove(kube.groups["default/g"])
    gang.last_diagnosis = stop
    found: Shortages = kube.plugin.rounds._gang_sets._shortages
    known = found.still_short((gang,), question.request, kube.world.snapshot())
    assert known is not None
    assert known.message == "minMember of 0 does not fit: Insufficient cpu"


def gap(kube: KubeScheduler, needed: int | None = None) -> tuple[str, ...]:
    manager, requests = kube.plugin.manager, kube.plugin.rounds.requests
    found: Shortages = kube.plugin.rounds._gang_sets._shortages
    with manager.lock:
        gang = manager.groups["default/g"]
        request = requests.question((gang,), member("x").spec.scheduler_name, kube.world.snapshot()).request
        request = request if needed is None else replace(request, needed=needed)
        return found.gap(gang, request, kube.world.snapshot())


def test_what_the_cluster_has_too_little_of_for_a_gang_is_named(kube: KubeScheduler) -> None:
    made = group(minimum=3)
    resources = {"cpu": parse_quantity("7"), "example.com/gpu": parse_quantity("1"), "memory": parse_quantity("1Gi")}
    kube.apply(structs.replace(made, spec=structs.replace(made.spec, min_resources=resources)))
    assert gap(kube) == ("cpu", "example.com/gpu")
    assert gap(kube, needed=0) == (), "it has all places that it needs"
    kube.plugin.manager.permitted["default/g"] = True
    assert gap(kube) == (), "it had its places before"
    del kube.plugin.manager.permitted["default/g"]
    kube.remove(kube.groups["default/g"])
    assert gap(kube) == ()


# Nodes that were left out of the plan

STOP = Diagnosis(UnschedulableReason.INSUFFICIENT_RESOURCES, "no")


@pytest.mark.parametrize(
    ("excluded", "allowed", "reason", "kept"),
    [
        pytest.param((), {}, STOP.reason, False, id="none"),
        pytest.param((("default/g0", "n1"),), {}, STOP.reason, True, id="one that kube-scheduler refused"),
        pytest.param((), {"default/g0": {"n1"}}, STOP.reason, False, id="those that a call did not offer"),
        pytest.param((), {"default/g1": {"n1"}}, STOP.reason, True, id="those that it refused another member"),
        pytest.param((), {}, UnschedulableReason.ORDERED_AFTER_OTHERS, True, id="those that are kept free for another"),
    ],
)
def test_whether_a_gang_was_kept_from_nodes(
    excluded: tuple[tuple[str, str], ...],
    allowed: dict[str, set[str]],
    reason: UnschedulableReason,
    kept: bool,
    kube: KubeScheduler,
) -> None:
    nodes = {uid: frozenset(names) for uid, names in allowed.items()}
    question = asked(kube)
    found = question.asking(replace(question.request, excluded=frozenset(excluded), allowed=nodes))
    shortages: Shortages = kube.plugin.rounds._gang_sets._shortages
    assert shortages.kept_from_nodes(found, ("default/g0",), replace(STOP, reason=reason)) is kept


def asked(kube: KubeScheduler) -> PlanQuestion:
    manager, requests = kube.plugin.manager, kube.plugin.rounds.requests
    with manager.lock:
        gang_set = (manager.groups["default/g"],)
        return requests.question(gang_set, member("x").spec.scheduler_name, kube.world.snapshot())


def test_where_other_nodes_are_kept_free_for_a_gang_that_would_fit_there_it_is_told(kube: KubeScheduler) -> None:
    _comes(kube)
    question = asked(kube)
    nowhere = {uid: frozenset[str]() for uid in ("default/g0", "default/g1", "default/g2")}
    permitted = question.asking(replace(question.request, allowed=nowhere))
    result = planner.NoPlacement("Insufficient cpu", 0, 3, planner.Cause.ROOM)
    shortages: Shortages = kube.plugin.rounds._gang_sets._shortages
    gang_set = (kube.plugin.manager.groups["default/g"],)
    found = shortages.diagnosis_of(gang_set, question, permitted, result)
    text = "minMember of 3 does not fit: nodes are kept free for a gang that is first in line"
    assert found == Diagnosis(UnschedulableReason.ORDERED_AFTER_OTHERS, text)
    same = shortages.diagnosis_of(gang_set, question, question, result)
    assert (same.reason, same.message) == (
        UnschedulableReason.INSUFFICIENT_RESOURCES,
        "minMember of 3 does not fit: Insufficient cpu",
    )
