"""Which phase comes first where two could be told of a gang, and what makes its situation another."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from extender.plugins.coscheduling.plan_call import PlanCall, WaitingTime
from extender.plugins.coscheduling.scheduling.phases import Phase, own_situation, phase_of, situation
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Gathering, Group, Preempting
from extender.plugins.coscheduling.state.member import MemberEvent, Start
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod, make_pod_group
from tests.unit.plugins.coscheduling.managing import in_tree

Act = Callable[[PodGroupManager, Group], object]
NOW = 100.0


@pytest.fixture
def manager() -> PodGroupManager:
    """A group of two, with two members."""
    made = PodGroupManager(GroupLabels(), denied_seconds=20.0, permitted_seconds=20.0, clock=lambda: NOW)
    made.objects.pod_group_changed(make_pod_group().name("g").min_member(2).obj())
    for name in ("a", "b"):
        made.pod_changed(make_pod().name(name).uid(name).pod_group("g").obj())
    return made


def gang(manager: PodGroupManager) -> Group:
    return manager.groups["default/g"]


def stopped(reason: UnschedulableReason) -> Act:
    return lambda manager, group: group.stop(Diagnosis(reason, "no"))


def backs_off(manager: PodGroupManager, group: Group) -> None:
    manager.queue.back_off(group.key, 5.0)


def planned(manager: PodGroupManager, group: Group) -> None:
    group.planned = True


def held(manager: PodGroupManager, group: Group) -> None:
    group.happened("a", MemberEvent.HELD, "n")


def starts(manager: PodGroupManager, group: Group) -> None:
    held(manager, group)
    group.happened("a", MemberEvent.START_BEGUN)


def one_is_gone(manager: PodGroupManager, group: Group) -> None:
    manager.pod_gone(make_pod().name("b").uid("b").pod_group("g").obj())


def runs(manager: PodGroupManager, group: Group) -> None:
    for name in ("a", "b"):
        manager.pod_changed(make_pod().name(name).uid(name).pod_group("g").node("n").obj())


def asks_for_nonsense(manager: PodGroupManager, group: Group) -> None:
    manager.objects.pod_group_changed(make_pod_group().name("g").min_member(0).obj())


@pytest.mark.parametrize(
    ("happened", "phase"),
    [
        pytest.param([stopped(UnschedulableReason.INSUFFICIENT_RESOURCES)], Phase.DENIED, id="it was refused"),
        pytest.param([stopped(UnschedulableReason.HOLD_TIMED_OUT)], Phase.TIMED_OUT, id="its holds timed out"),
        pytest.param([stopped(UnschedulableReason.HOLD_ENDED)], Phase.TIMED_OUT, id="its holds ended"),
        pytest.param([stopped(UnschedulableReason.MEMBERS_DID_NOT_COME)], Phase.TIMED_OUT, id="members did not come"),
        pytest.param(
            [stopped(UnschedulableReason.INSUFFICIENT_RESOURCES), one_is_gone],
            Phase.GATHERING,
            id="it was refused, and lacks a member now",
        ),
        pytest.param([one_is_gone, backs_off], Phase.BACKING_OFF, id="it backs off, and lacks a member"),
        pytest.param([backs_off, planned], Phase.PLANNED, id="it has places, and backs off"),
        pytest.param([planned, held], Phase.ASSEMBLING, id="one is held, and it has places"),
        pytest.param([planned, held, backs_off], Phase.ASSEMBLING, id="one is held, and it backs off"),
        pytest.param([starts, planned], Phase.COMMITTING, id="one starts"),
        pytest.param([runs, planned], Phase.BOUND, id="it runs, and has places for more"),
        pytest.param([runs, asks_for_nonsense], Phase.GATHERING, id="it runs, and asks for nonsense"),
        pytest.param(
            [starts, lambda manager, group: manager.quarantine.set_aside(group.key)],
            Phase.QUARANTINED,
            id="it is set aside, whatever else",
        ),
    ],
)
def test_the_phase_of_a_gang_of_which(happened: list[Act], phase: Phase, manager: PodGroupManager) -> None:
    for each in happened:
        each(manager, gang(manager))
    assert phase_of(manager, gang(manager)) is phase


def without_object(manager: PodGroupManager) -> Group:
    group = Group("default/g")
    manager.groups[group.key] = group
    return group


def test_a_group_without_an_object_gathers_until_it_is_refused(manager: PodGroupManager) -> None:
    group = without_object(manager)
    assert phase_of(manager, group) is Phase.GATHERING
    manager.denied[group.key] = "no room"
    assert phase_of(manager, group) is Phase.DENIED


def _start() -> Start:
    uids = frozenset(("a", "b"))
    return Start(start_record(datetime(2026, 1, 1, tzinfo=UTC), 2, uids), uids)


def _call(manager: PodGroupManager, group: Group) -> None:
    group.calls["a"] = PlanCall("a", None, WaitingTime(lambda: NOW), False)


CHANGES: list[tuple[str, Act]] = [
    ("a member has changed", lambda manager, group: group.changed()),
    ("it asks for something else", lambda manager, group: group.asks_anew()),
    ("initializers have started", lambda manager, group: setattr(group, "early", 1)),
    ("its object has changed", lambda manager, group: setattr(group, "pod_group", None)),
    ("it has kube-scheduler's own object", lambda manager, group: setattr(group, "in_tree", in_tree("g", 2))),
    ("it was refused", stopped(UnschedulableReason.INSUFFICIENT_RESOURCES)),
    ("it has places", planned),
    ("victims have to go first", lambda m, group: setattr(group, "preempting", Preempting(set(), (), math.inf))),
    ("it has been whole", lambda manager, group: setattr(group, "once_whole", True)),
    ("it has been larger", lambda manager, group: setattr(group, "whole_of", 2)),
    ("it has room while it is made", lambda manager, group: setattr(group, "gathering", Gathering(0.0, 0.0))),
    ("one has ended", lambda manager, group: group.ended.update(c=make_pod().name("c").obj())),
    ("one is held", lambda manager, group: group.held.update(a="n")),
    ("one starts", lambda manager, group: group.started.add("a")),
    ("a start is known", lambda manager, group: setattr(group, "start", _start())),
    ("a filter call waits", _call),
    ("it is set aside", lambda manager, group: manager.quarantine.set_aside(group.key)),
    ("it is denied", lambda manager, group: manager.denied.again(group.key, "no room")),
    ("it backs off", backs_off),
    ("kube-scheduler has one in error back-off", lambda manager, group: group.errors.failed("a", NOW)),
]


@pytest.mark.parametrize("change", [pytest.param(change, id=text) for text, change in CHANGES])
def test_a_gang_is_looked_at_again_once(change: Act, manager: PodGroupManager) -> None:
    group = gang(manager)
    manager.specs.of(group)
    before = own_situation(manager, group)
    assert own_situation(manager, group) == before
    change(manager, group)
    assert own_situation(manager, group) != before


def test_it_is_looked_at_each_time_where_others_are_in_its_way(manager: PodGroupManager) -> None:
    group = gang(manager)
    stop = Diagnosis(UnschedulableReason.RESERVED_FOR_OTHERS, "no")
    group.last_diagnosis = stop
    assert situation(manager, group) is not None
    group.last_diagnosis = Diagnosis(stop.reason, stop.message, in_the_way=frozenset(("x",)))
    assert situation(manager, group) is None
