"""When counting alone says that a gang that found no room finds none still."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.scheduling.plan.shortages import Shortages
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
