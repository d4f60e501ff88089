"""How far a gang has come, in one word."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.scheduling.phases import Phase, count_phases, situation
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod, make_pod_group


def nothing(manager: PodGroupManager, group: Group) -> None:
    return


def planned(manager: PodGroupManager, group: Group) -> None:
    group.planned = True


def held(manager: PodGroupManager, group: Group) -> None:
    group.planned = True
    group.happened(_uid(group), MemberEvent.HELD, "n")


def committing(manager: PodGroupManager, group: Group) -> None:
    held(manager, group)
    group.happened(_uid(group), MemberEvent.START_BEGUN)


def bound(manager: PodGroupManager, group: Group) -> None:
    committing(manager, group)
    group.happened(_uid(group), MemberEvent.BINDING_CONFIRMED, "n")
    manager.pod_changed(make_pod().name("b").pod_group("g").node("n").obj())


def _uid(group: Group) -> str:
    return next(uid for uid, member in group.members.items() if member.pod.name == "a")


def denied(manager: PodGroupManager, group: Group) -> None:
    manager.denied[group.key] = "no room"


def backing_off(manager: PodGroupManager, group: Group) -> None:
    manager.queue.back_off(group.key, 10.0)


@pytest.mark.parametrize(
    ("happened", "phase"),
    [
        pytest.param(nothing, Phase.GATHERING, id="nothing has happened"),
        pytest.param(denied, Phase.DENIED, id="it was denied"),
        pytest.param(backing_off, Phase.BACKING_OFF, id="it was rejected a moment ago"),
        pytest.param(planned, Phase.PLANNED, id="it has places"),
        pytest.param(held, Phase.ASSEMBLING, id="a member is held"),
        pytest.param(committing, Phase.COMMITTING, id="a member is being bound"),
        pytest.param(bound, Phase.BOUND, id="its quorum is on nodes"),
    ],
)
def test_phase(happened: Callable[[PodGroupManager, Group], None], phase: Phase) -> None:
    manager = PodGroupManager(GroupLabels(), denied_seconds=20.0, permitted_seconds=20.0, clock=lambda: 0.0)
    manager.objects.pod_group_changed(make_pod_group().name("g").min_member(2).obj())
    for name in ("a", "b"):
        manager.pod_changed(make_pod().name(name).pod_group("g").obj())
    happened(manager, manager.groups["default/g"])
    counts = count_phases(manager)
    assert {each for each, count in counts.items() if count} == {phase}
    assert len(counts) == len(Phase)


@pytest.mark.parametrize(
    "links",
    [
        pytest.param(lambda manager: manager.gang_set_index.name("default/g", ("default/h",)), id="it names another"),
        pytest.param(lambda manager: manager.gang_set_index.name("default/h", ("default/g",)), id="another names it"),
        pytest.param(lambda manager: manager.composites.adopt("default/g", "default/tree"), id="it is in a tree"),
    ],
)
def test_where_other_gangs_play_a_part_there_is_no_situation(links: Callable[[PodGroupManager], object]) -> None:
    """It would be equal though one of them has changed, and a tick would pass the gang over."""
    manager = PodGroupManager(GroupLabels(), denied_seconds=20, permitted_seconds=60, clock=lambda: 0.0)
    assert situation(manager, Group("default/g")) == situation(manager, Group("default/g")) is not None
    links(manager)
    assert situation(manager, Group("default/g")) is None


def test_a_gang_that_is_set_aside_is_in_a_phase_of_its_own() -> None:
    manager = PodGroupManager(GroupLabels(), denied_seconds=20.0, permitted_seconds=20.0, clock=lambda: 0.0)
    for name in ("g", "h"):
        manager.objects.pod_group_changed(make_pod_group().name(name).min_member(2).obj())
        manager.pod_changed(make_pod().name(name).pod_group(name).obj())
    manager.quarantine.set_aside("default/g")
    assert {phase: count for phase, count in count_phases(manager).items() if count} == {
        Phase.QUARANTINED: 1,
        Phase.GATHERING: 1,
    }
