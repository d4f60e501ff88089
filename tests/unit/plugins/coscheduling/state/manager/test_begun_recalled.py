"""What a gang has begun as its members show it when we begin to lead, and since when a gang that was whole is broken."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from extender.api import corev1, volcanov1beta1
from extender.client.unreadable import convert
from extender.plugins.coscheduling.spec.keys import BROKEN_AFTER
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod, make_pod_group
from tests.unit.plugins.coscheduling.conftest import FakeClock, pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, place, set_wall
from tests.unit.plugins.coscheduling.starting import bound_by

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)


@pytest.fixture
def recalled(manager: PodGroupManager) -> Group:
    """Of a start of three a has been bound, and b and c wait; d came later. All that wait have places."""
    set_wall(manager, lambda: NOW)
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    began = NOW - timedelta(seconds=3)
    manager.pod_changed(bound_by(pod("a", "g", node_name="n1"), 3, ["a", "b", "c"], began))
    for name in "bcd":
        manager.pod_changed(pod(name, "g"))
        place(manager, pod(name, "g"))
    return group


def test_a_start_that_was_cut_short_is_recalled_and_its_places_are_firm(
    recalled: Group, manager: PodGroupManager
) -> None:
    assert manager.begun.recall(recalled)
    assert manager.begun.left_behind(recalled) == {"b", "c"}
    assert manager.slots.firm_of(KEY) == {"b", "c"}


def test_a_start_that_began_too_long_ago_is_not_recalled(recalled: Group, manager: PodGroupManager) -> None:
    set_wall(manager, lambda: NOW + timedelta(hours=1))
    assert not manager.begun.recall(recalled)
    assert (recalled.start, manager.slots.firm_of(KEY)) == (None, set())


def test_of_a_group_without_object_nothing_is_recalled(recalled: Group, manager: PodGroupManager) -> None:
    manager.objects.pod_group_gone(pod_group("g", 3))
    assert not manager.begun.recall(recalled)
    assert recalled.start is None


def task(name: str) -> corev1.Pod:
    made = make_pod().namespace("default").name(name).uid(name)
    return made.annotation(volcanov1beta1.GROUP_NAME_ANNOTATION, "g").node("n1").obj()


@pytest.mark.parametrize(
    ("phase", "whole_of"),
    [pytest.param("Running", 2, id="it says so"), pytest.param("Inqueue", 0, id="it says that the gang waits")],
)
def test_another_system_s_object_may_say_that_a_gang_has_been_whole(
    phase: str, whole_of: int, manager: PodGroupManager
) -> None:
    made = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 2}, "status": {"phase": phase}}
    manager.objects.foreign_changed(convert(made, volcanov1beta1.PodGroup))
    group = manager.pod_changed(task("p"))
    assert group is not None
    assert not manager.begun.recall(group)
    assert group.whole_of == whole_of


# Broken gangs


def whole(manager: PodGroupManager, minimum: int = 2, broken_after: str = "30s") -> Group:
    """Two members are on nodes."""
    made = make_pod_group().namespace("default").name("g").min_member(minimum)
    group = manager.objects.pod_group_changed(
        (made.annotation(str(BROKEN_AFTER), broken_after) if broken_after else made).obj()
    )
    for name in "pq":
        manager.pod_changed(pod(name, "g", node_name="n1"))
    group.whole_of = 2
    return group


def follow(manager: PodGroupManager, group: Group) -> dict[str, float]:
    manager.begun.follow_broken(group, manager.specs.of(group))
    return manager.begun.broken


def test_a_gang_is_broken_since_the_member_went_that_it_needs(manager: PodGroupManager, clock: FakeClock) -> None:
    group = whole(manager)
    assert follow(manager, group) == {}
    manager.pod_gone(pod("q", "g"))
    assert follow(manager, group) == {KEY: 100.0}
    clock.now += 7
    assert follow(manager, group) == {KEY: 100.0}, "it has been ever since"
    manager.pod_changed(pod("r", "g", node_name="n1"))
    assert follow(manager, group) == {}
    manager.pod_gone(pod("r", "g"))
    assert follow(manager, group) == {KEY: 107.0}


def test_when_we_begin_to_lead_a_gang_is_broken_from_then_on(manager: PodGroupManager, clock: FakeClock) -> None:
    group = whole(manager)
    manager.pod_gone(pod("q", "g"))
    manager.begun.broken.clear()
    clock.now += 9
    manager.begun.recall(group)
    assert manager.begun.broken == {KEY: 109.0}


@pytest.mark.parametrize(
    ("minimum", "broken_after"),
    [
        pytest.param(2, "", id="its owner asks for nothing"),
        pytest.param(-1, "30s", id="it asks for nonsense now"),
        pytest.param(1, "30s", id="the members that are left are enough"),
    ],
)
def test_a_gang_of_which_no_end_is_asked_is_not_broken(
    minimum: int, broken_after: str, manager: PodGroupManager
) -> None:
    group = whole(manager)
    manager.pod_gone(pod("q", "g"))
    assert follow(manager, group) == {KEY: 100.0}
    made = make_pod_group().namespace("default").name("g").min_member(minimum)
    manager.objects.pod_group_changed(
        (made.annotation(str(BROKEN_AFTER), broken_after) if broken_after else made).obj()
    )
    assert follow(manager, group) == {}
    assert follow(manager, group) == {}, "also where none was noted"


def test_a_group_whose_object_is_gone_is_not_broken(manager: PodGroupManager) -> None:
    group = whole(manager)
    manager.pod_gone(pod("q", "g"))
    follow(manager, group)
    manager.begun.follow_broken(group, None)
    assert manager.begun.broken == {}
