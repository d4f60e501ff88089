"""Gangs of which a plan is made, and those that none would help: what they wait for instead."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.state.gang_queue import Unschedulable
from extender.plugins.coscheduling.state.group import Gathering
from extender.plugins.coscheduling.waits_for import ANYTHING, OWN_EVENTS
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, on_node
from tests.unit.plugins.coscheduling.scheduling.test_planning_rounds_calls import Calling, kube, refused, waits
from tests.unit.plugins.coscheduling.starting import cut_short

__all__ = ["kube"]
NAME = member("x").spec.scheduler_name


def looked_at(kube: Calling) -> int:
    """How many plans were made."""
    before = kube.world.plans
    kube.rounds.plan_one(kube.group)
    return kube.world.plans - before


def test_a_gang_of_which_a_member_was_refused_is_planned(kube: Calling) -> None:
    assert looked_at(kube) == 0, "kube-scheduler has not asked about any"
    waits(kube)
    assert looked_at(kube) == 1


def _denied(kube: Calling) -> None:
    kube.plugin.manager.denied.again("default/g", "no room")


def _one_gone(kube: Calling) -> None:
    kube.plugin.on_pod(kube.pods["default/g0"], None)
    kube._forget()


def _no_object(kube: Calling) -> None:
    kube.remove(kube.groups["default/g"])
    kube._forget()


def _waits_for_another(kube: Calling) -> None:
    kube.apply(group(groups="b"))
    kube._forget()


@pytest.mark.parametrize(
    "happened",
    [
        pytest.param(_denied, id="it is denied"),
        pytest.param(_one_gone, id="a member is missing"),
        pytest.param(_no_object, id="it has no object"),
        pytest.param(_waits_for_another, id="a group that it starts with is missing"),
    ],
)
def test_no_plan_is_made_of_a_gang_where(happened: Callable[[Calling], None], kube: Calling) -> None:
    waits(kube)
    happened(kube)
    assert looked_at(kube) == 0


def test_a_gang_that_is_denied_is_looked_at_again_when_that_is_over(kube: Calling) -> None:
    waits(kube)
    _denied(kube)
    looked_at(kube)
    until = kube.plugin.manager.denied.until("default/g")
    assert kube.plugin.manager.queue.unschedulable["default/g"] == Unschedulable(ANYTHING, until)


@pytest.mark.parametrize("away", [True, False], ids=["in error back-off", "parked"])
def test_a_gang_that_lacks_members_waits_for_its_own_events_and_for_those_that_are(away: bool, kube: Calling) -> None:
    waits(kube)
    back = math.inf
    if away:
        back = kube.group.errors.failed("default/g0", kube.world.clock.now)
    else:
        kube.apply(group(minimum=3))
        kube._forget()
    assert looked_at(kube) == 0
    assert kube.plugin.manager.queue.unschedulable["default/g"] == Unschedulable(OWN_EVENTS, back)


def test_a_gang_to_which_something_has_happened_meanwhile_stays_active(kube: Calling) -> None:
    waits(kube)
    _denied(kube)
    kube.plugin.manager.queue.move_to_active(("default/g",))
    looked_at(kube)
    assert kube.plugin.manager.queue.active == {"default/g"}


def test_a_gang_that_has_its_places_needs_no_plan(kube: Calling) -> None:
    waits(kube)
    assert looked_at(kube) == 1
    assert looked_at(kube) == 0


def test_an_extra_member_that_our_gate_holds_is_planned_and_one_that_is_plain_is_not(kube: Calling) -> None:
    waits(kube)
    looked_at(kube)
    extra = member("extra")
    kube.create(extra)
    kube.plugin.on_pod(extra, refused(extra))
    assert looked_at(kube) == 0
    kube.create(member("gated", gated=True))
    assert looked_at(kube) >= 1


def test_members_that_name_a_scheduler_of_others_are_not_planned(world: Callable[..., World]) -> None:
    w = world([node("n1", "4")])
    w.connect(ours=lambda pod: False)
    kube = Calling(w)
    waits(kube)
    assert looked_at(kube) == 0


def test_a_gang_that_is_still_being_made_is_planned_with_fewer(kube: Calling) -> None:
    waits(kube)
    kube.apply(group(minimum=3))
    kube._forget()
    kube.group.gathering = Gathering(0.0, 0.0)
    with kube.plugin.manager.lock:
        assert kube.rounds._waits(kube.group) == NAME
    kube.group.gathering = None
    kube.plugin.manager.queue.move_to_active(("default/g",))


def test_a_member_that_was_left_behind_is_planned_before_kube_scheduler_asks(kube: Calling) -> None:
    kube.plugin.on_pod(kube.pods["default/g0"], on_node(kube.pods["default/g0"], "n1"))
    kube._forget()
    assert looked_at(kube) == 0
    cut_short(kube.plugin.manager, "default/g")
    assert looked_at(kube) == 1
