"""Which slots will do on any node with room, and which have something promised of where they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from extender.plugins.coscheduling.dispatch.free_to_move import is_free_to_move
from extender.plugins.coscheduling.planner.request import Topology
from extender.plugins.coscheduling.spec.sources.steps import Step
from extender.plugins.coscheduling.state.group import Preempting
from tests.objects import PodBuilder
from tests.unit.plugins.coscheduling.conftest import World
from tests.unit.plugins.coscheduling.planning import LEVELS, RACK
from tests.unit.plugins.coscheduling.sampling import SPREAD, Make, apply, cluster, member, planned, slot


def free(w: World) -> bool:
    World.made.remove(w)  # the arrangements are in no other book
    return is_free_to_move(w.plugin.manager, w.plugin.manager.groups["default/g"], slot(w, "p1"))


def test_the_slot_of_a_plain_member_is(world: Make) -> None:
    w = cluster(world)
    apply(w)
    planned(w)
    assert free(w)


def test_the_slot_of_a_rank_without_slices_is(world: Make) -> None:
    """Ranks are an order of places, which one member that is planned by itself does not change either."""
    w = cluster(world)
    apply(w)
    planned(w, *(member(f"p{at}").label("batch.kubernetes.io/job-completion-index", str(at)) for at in range(2)))
    assert free(w)


def spread(pod: PodBuilder) -> PodBuilder:
    return pod.spread_constraint(1, RACK, "DoNotSchedule", SPREAD)


def apart(pod: PodBuilder) -> PodBuilder:
    return pod.pod_anti_affinity(RACK, SPREAD)


def as_if(w: World, **changed: Any) -> None:
    w.plugin.manager.slots.reserve(replace(slot(w, "p1"), **changed))


def looked_at(w: World) -> None:
    """A sibling of another shape minds where members are."""
    w.plugin.manager.slots.reserve(replace(slot(w, "p0"), pod_info=apart(member("p0")).info()))


def group_is(w: World, **changed: Any) -> None:
    for name, value in changed.items():
        setattr(w.plugin.manager.groups["default/g"], name, value)


@pytest.mark.parametrize(
    "arrange",
    [
        pytest.param(lambda w: as_if(w, firm=True), id="one that finishes a start"),
        pytest.param(lambda w: as_if(w, expires=math.inf), id="one whose room is still to come free"),
        pytest.param(lambda w: as_if(w, ranks=range(2)), id="the slot of a slice"),
        pytest.param(lambda w: as_if(w, kind=("worker", "")), id="one of several kinds of slices"),
        pytest.param(lambda w: as_if(w, wave=1), id="members that come one after the other"),
        pytest.param(looked_at, id="a sibling that looks at others"),
        pytest.param(lambda w: group_is(w, held={"p1": "n001"}), id="a member that is held"),
        pytest.param(lambda w: group_is(w, steps={Step.DRIVER: 1}), id="a job in phases"),
        pytest.param(lambda w: group_is(w, early=1), id="initializers that have started"),
        pytest.param(lambda w: group_is(w, in_part=True), id="members that are made later"),
        pytest.param(lambda w: group_is(w, preempting=Preempting), id="a gang for which pods have to go"),
    ],
)
def test_one_of_which_more_is_promised_is_not(world: Make, arrange: Callable[[World], None]) -> None:
    w = cluster(world)
    apply(w)
    planned(w)
    arrange(w)
    assert not free(w)


@pytest.mark.parametrize(
    ("annotations", "change"),
    [
        pytest.param({"topology_required": "rack"}, lambda pod: pod, id="a rack for all"),
        pytest.param({"topology_slice": "rack"}, lambda pod: pod, id="a rack for each slice"),
        pytest.param({}, lambda pod: pod.host_port(80), id="host ports"),
        pytest.param({}, spread, id="members that are spread"),
        pytest.param({}, apart, id="members that keep apart"),
    ],
)
def test_that_of_a_member_with_a_promise_is_not(
    world: Make, annotations: dict[str, str], change: Callable[[PodBuilder], PodBuilder]
) -> None:
    w = cluster(world, topology=Topology(LEVELS[1:]))
    apply(w, "g", 2, **annotations)
    members = [change(member(name)).scheduling_gates("scheduling.x-k8s.io/gang").obj() for name in ("p0", "p1")]
    w.create(*members)
    w.run_tasks()
    assert not free(w)


def test_that_of_a_gang_that_starts_with_another_is_not(world: Make) -> None:
    w = cluster(world)
    apply(w, "g", groups="g,h")
    apply(w, "h", groups="g,h")
    w.create(*(member(f"{name}{at}", group).obj() for name, group in (("p", "g"), ("q", "h")) for at in range(2)))
    assert w.filter(member("p0").obj()) in w.nodes
    assert not free(w)


def test_that_of_an_extra_member_of_a_gang_that_runs_is_not(world: Make) -> None:
    w = cluster(world)
    apply(w, "g", match_policy="once-satisfied")
    planned(w)
    group_is(w, once_whole=True)
    assert not free(w)
