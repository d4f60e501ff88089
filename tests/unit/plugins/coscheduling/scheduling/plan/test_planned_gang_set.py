"""Whether a plan still holds when it is noted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.scheduling.plan.planned_gang_set import PlannedGangSet
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]


@pytest.fixture
def kube(world: Make) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "8"), node("n2", "8")]))


def _deleted(kube: KubeScheduler) -> None:
    kube.delete(kube.pods["default/g0"])


def _asks_for_more(kube: KubeScheduler) -> None:
    kube.apply(group(minimum=3))


def _names_another(kube: KubeScheduler) -> None:
    kube.apply(group("b", 2, groups="g"), group(groups="b"))


@pytest.mark.parametrize(
    ("happened", "may"),
    [
        pytest.param(lambda kube: None, True, id="nothing has changed"),
        pytest.param(_deleted, False, id="a member is gone"),
        pytest.param(_asks_for_more, False, id="minMember was raised"),
        pytest.param(_names_another, False, id="it starts together with another group now"),
        pytest.param(lambda kube: kube.create(member("more")), True, id="a member more"),
    ],
)
def test_whether_a_plan_still_holds_when_it_is_noted(
    happened: Callable[[KubeScheduler], None], may: bool, kube: KubeScheduler
) -> None:
    kube.apply(group())
    kube.create(*members(2))
    manager = kube.plugin.manager
    with manager.lock:
        planned = PlannedGangSet.of(manager, gang_set_of(manager, manager.groups["default/g"]))
    happened(kube)
    with manager.lock:
        assert planned.may_start_with(manager, {"default/g0", "default/g1"}) == may
