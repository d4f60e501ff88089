"""What would help is asked of the planner once for a while, and only for a gang that needs a place."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.report.fit_analyses import FRESH_SECONDS
from extender.plugins.coscheduling.report.gang_report import GangReport
from extender.plugins.coscheduling.report.gang_status import GangStatus
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    made = KubeScheduler(world([node("n1", "2")]))
    made.apply(group(minimum=3))
    return made


def status(report: GangReport, key: str = "default/g") -> GangStatus:
    found = report.status(key)
    assert found is not None
    return found


def test_an_answer_is_shown_again_while_it_is_fresh_and_nothing_has_changed(kube: KubeScheduler) -> None:
    kube.create(*members(3))
    kube.run()
    report = kube.plugin.report
    before = kube.world.plans
    first = status(report)
    assert first.relaxations[0].text == "minMember 2 instead of 3"
    assert first.shortfall is not None
    assert (first.shortfall.placed, first.shortfall.needed, first.shortfall.missing) == (2, 3, "1")
    assert status(report).relaxations == first.relaxations
    assert kube.world.plans == before + 1
    kube.world.clock.now += FRESH_SECONDS + 0.1
    status(report)
    assert kube.world.plans == before + 2


def test_a_gang_that_fits_at_this_moment_says_so(kube: KubeScheduler) -> None:
    kube.create(*members(3))
    kube.run()
    kube.world.nodes["n2"] = node("n2")
    assert status(kube.plugin.report).fits_now


def test_the_groups_whose_places_are_in_the_way_are_named(kube: KubeScheduler) -> None:
    kube.apply(group("first", 2))
    kube.create(*members(1, "first"), *members(3))
    first = member("first1", "first")
    kube.create(first)
    kube.run()
    found = status(kube.plugin.report)
    assert found.gang.reason in ("InsufficientResources", "ReservedForOthers")
    assert found.reserved_for == (("default/first",) if found.gang.reason == "ReservedForOthers" else ())


def test_a_gang_without_members_that_wait_is_not_planned(kube: KubeScheduler) -> None:
    before = kube.world.plans
    assert status(kube.plugin.report).relaxations == ()
    assert kube.world.plans == before
