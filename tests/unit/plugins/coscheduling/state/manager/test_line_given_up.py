"""A gang that has waited for longer than it asks for comes behind others of its priority; and where gangs of a tree stand in the line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.keys import GIVE_UP_AFTER
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod, make_pod_group
from tests.unit.plugins.coscheduling.conftest import pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, in_tree, set_wall

ROOT = "default/root"
FAR_FUTURE = datetime.max.replace(tzinfo=UTC)


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def gang(manager: PodGroupManager, name: str, *, priority: int = 0, since: int = 1, patience: str = "") -> Group:
    """Of one member, that came on that day."""
    made = make_pod_group().namespace("default").name(name).min_member(1)
    group = manager.objects.pod_group_changed(
        (made.annotation(str(GIVE_UP_AFTER), patience) if patience else made).obj()
    )
    member = pod(f"{name}-0", name, priority=priority)
    manager.pod_changed(replace(member, metadata=replace(member.metadata, creation_timestamp=day(since))))
    return group


@pytest.mark.parametrize(
    ("patience", "waited", "given_up"),
    [
        pytest.param("60s", 59, False, id="not yet"),
        pytest.param("60s", 60, True, id="as long as it asks for"),
        pytest.param("60s", 9999, True, id="longer"),
        pytest.param("", 9999, False, id="it asks for nothing"),
    ],
)
def test_a_gang_has_given_up_once_its_quorum_is_as_old_as_its_patience(
    patience: str, waited: float, given_up: bool, manager: PodGroupManager
) -> None:
    group = gang(manager, "g", patience=patience)
    set_wall(manager, lambda: day(1) + timedelta(seconds=waited))
    assert manager.line.has_given_up(group) is given_up


def test_a_gang_without_a_quorum_or_an_object_has_given_up_nothing(manager: PodGroupManager) -> None:
    patient = make_pod_group().namespace("default").name("g").min_member(2).annotation(str(GIVE_UP_AFTER), "1s")
    group = manager.objects.pod_group_changed(patient.obj())
    manager.pod_changed(pod("p", "g"))
    assert not manager.line.has_given_up(group)
    assert not manager.line.has_given_up(Group("default/unknown"))


def test_a_gang_that_has_given_up_comes_behind_younger_ones_of_its_priority_and_no_others(
    manager: PodGroupManager,
) -> None:
    set_wall(manager, lambda: day(9))
    groups = [
        gang(manager, "low", priority=1, since=1),
        gang(manager, "given-up", priority=5, since=2, patience="60s"),
        gang(manager, "young", priority=5, since=8),
    ]
    incomplete = manager.objects.pod_group_changed(pod_group("incomplete", 2))
    manager.pod_changed(pod("incomplete-0", "incomplete", priority=5))
    first = [each.key.partition("/")[2] for each in manager.line.in_order([*groups, incomplete])]
    assert first == ["young", "incomplete", "given-up", "low"]


def test_a_gang_that_is_set_aside_has_no_place_in_the_line(manager: PodGroupManager) -> None:
    good, aside = gang(manager, "good"), gang(manager, "aside")
    manager.quarantine.set_aside(aside.key)
    assert manager.line.in_order([aside, good]) == [good]


# Trees


@pytest.fixture
def tree(manager: PodGroupManager) -> PodGroupManager:
    """Of three groups: a is more important than b and came earlier; c is less important and has no quorum."""
    gang(manager, "a", priority=5, since=1)
    gang(manager, "b", priority=3, since=2)
    manager.objects.pod_group_changed(pod_group("c", 2))
    manager.pod_changed(pod("c-0", "c", priority=4))
    for name in ("a", "b", "c", "gone"):
        manager.composites.adopt(f"default/{name}", ROOT)
    return manager


def standing(manager: PodGroupManager, name: str) -> tuple[int, datetime | None]:
    found = manager.line.standing(manager.groups[f"default/{name}"])
    return found.priority, found.since


def test_groups_of_a_tree_stand_together_at_the_lowest_priority_and_the_age_of_the_last_quorum(
    tree: PodGroupManager,
) -> None:
    assert [standing(tree, name) for name in "abc"] == [(3, day(2))] * 3, "its composite is not there yet"
    tree.composites.put(CompositeSpec(ROOT))
    assert [standing(tree, name) for name in "abc"] == [(3, day(2))] * 3


def test_a_composite_s_own_priority_is_that_of_its_groups(tree: PodGroupManager) -> None:
    tree.composites.put(CompositeSpec(ROOT, priority=0))
    assert [standing(tree, name) for name in "abc"] == [(0, day(2))] * 3
    assert tree.line.priority_of(tree.groups["default/a"]) == 0


def test_the_groups_that_were_chosen_to_start_make_out_where_a_tree_stands(tree: PodGroupManager) -> None:
    tree.composites.put(CompositeSpec(ROOT))
    tree.composites.choose(ROOT, ["default/a"])
    assert [standing(tree, name) for name in "abc"] == [(5, day(1))] * 3


def test_once_a_tree_has_started_each_of_its_groups_stands_for_itself(tree: PodGroupManager) -> None:
    tree.composites.put(CompositeSpec(ROOT))
    tree.composites.start(ROOT)
    assert [standing(tree, name) for name in "abc"] == [(5, day(1)), (3, day(2)), (4, None)]


def test_a_group_of_a_tree_of_which_no_group_is_there_stands_nowhere(manager: PodGroupManager) -> None:
    manager.composites.adopt(KEY, ROOT)
    found = manager.line.standing(Group(KEY))
    assert (found.priority, found.since) == (0, None)


def test_a_group_stands_at_the_priority_of_its_own_object(manager: PodGroupManager) -> None:
    made = in_tree("g", 1)
    manager.objects.pod_group_changed(replace(made, spec=replace(made.spec, priority=7)))
    manager.pod_changed(make_pod().namespace("default").name("p").uid("p").pod_group("g").priority(2).obj())
    assert manager.line.priority_of(manager.groups[KEY]) == 7
