"""Which groups start together as the manager knows them, what each of them lacks, and when the others are on their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from unittest.mock import Mock

import pytest

from extender.plugins.coscheduling.spec.keys import MATCH_POLICY, ROLES
from extender.plugins.coscheduling.spec.roles import ROLE_LABEL
from extender.plugins.coscheduling.state import gang_sets
from extender.plugins.coscheduling.state.gang_sets import (
    chosen_groups,
    gang_set_of,
    has_started,
    is_complete,
    is_linked,
    is_whole,
    may_preempt,
    missing_group,
    update_once_satisfied,
    waits_for_start,
)
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.objects import make_pod_group
from tests.unit.plugins.coscheduling.conftest import LABEL, pod, pod_group
from tests.unit.plugins.coscheduling.managing import KEY, hold, naming, place

ROOT = "default/root"


def names(groups: Sequence[Group]) -> list[str]:
    return [group.key.removeprefix("default/") for group in groups]


def runs(manager: PodGroupManager, name: str, count: int = 1, first: int = 0) -> None:
    """So many of its members are on nodes."""
    for number in range(first, first + count):
        manager.pod_changed(pod(f"{name}{number}", name, node_name="n1"))
    update_once_satisfied(manager, manager.groups[f"default/{name}"])


def goes(manager: PodGroupManager, name: str, group: str) -> None:
    manager.pod_gone(pod(name, group))
    if f"default/{group}" in manager.groups:
        update_once_satisfied(manager, manager.groups[f"default/{group}"])


# Sets by name


@pytest.fixture
def pair(manager: PodGroupManager) -> tuple[Group, Group]:
    """g names h."""
    return (
        manager.objects.pod_group_changed(naming("g", "h")),
        manager.objects.pod_group_changed(pod_group("h", 1)),
    )


def test_a_group_comes_first_in_its_set(pair: tuple[Group, Group], manager: PodGroupManager) -> None:
    g, h = pair
    other = manager.objects.pod_group_changed(pod_group("other", 1))
    assert [names(gang_set_of(manager, each)) for each in (g, h, other)] == [["g", "h"], ["h", "g"], ["other"]]
    assert [is_linked(manager, each) for each in (g, h, other)] == [True, True, False]
    manager.objects.pod_group_gone(pod_group("h", 1))
    assert names(gang_set_of(manager, g)) == ["g"], "the other is not there"


def test_once_all_groups_have_been_whole_each_is_on_its_own_until_none_runs(
    pair: tuple[Group, Group], manager: PodGroupManager
) -> None:
    runs(manager, "g")
    assert names(gang_set_of(manager, pair[1])) == ["h", "g"], "one of them is whole"
    runs(manager, "h")
    assert [names(gang_set_of(manager, each)) for each in pair] == [["g"], ["h"]]
    goes(manager, "h0", "h")
    assert [names(gang_set_of(manager, each)) for each in pair] == [["g"], ["h"]], "one of them runs still"
    goes(manager, "g0", "g")
    assert [names(gang_set_of(manager, each)) for each in pair] == [["g", "h"], ["h", "g"]]
    assert not manager.gang_set_index.was_whole((KEY, "default/h"))


def test_a_member_that_starts_keeps_the_groups_apart(pair: tuple[Group, Group], manager: PodGroupManager) -> None:
    g, _ = pair
    for name in "gh":
        runs(manager, name)
    manager.pod_changed(pod("g1", "g"))
    hold(g, "g1")
    g.happened("g1", MemberEvent.START_BEGUN)
    for name in "gh":
        manager.pod_gone(pod(f"{name}0", name))
    assert names(gang_set_of(manager, g)) == ["g"]


def test_which_group_a_set_is_short_of(pair: tuple[Group, Group], manager: PodGroupManager) -> None:
    g, h = pair
    assert [missing_group(manager, each) for each in pair] == ["", ""]
    manager.objects.pod_group_gone(pod_group("h", 1))
    assert missing_group(manager, g) == "default/h"
    other = manager.objects.pod_group_changed(pod_group("other", 1))
    assert missing_group(manager, other) == "", "it names none"
    manager.objects.pod_group_changed(pod_group("h", 1))
    manager.composites.adopt("default/h", ROOT)
    assert missing_group(manager, g) == "default/h", "it starts with its tree instead"
    assert missing_group(manager, h) == "", "and its tree says what that is short of"


def test_a_group_of_another_namespace_that_does_not_answer_is_missing(manager: PodGroupManager) -> None:
    made = make_pod_group().namespace("default").name("g").min_member(1).annotation("gang-extender.dev/groups", "x/h")
    group = manager.objects.pod_group_changed(made.obj())
    manager.objects.pod_group_changed(make_pod_group().namespace("x").name("h").min_member(1).obj())
    assert missing_group(manager, group) == "x/h"


def test_a_set_that_was_whole_is_short_of_no_group(pair: tuple[Group, Group], manager: PodGroupManager) -> None:
    g, _ = pair
    for name in "gh":
        runs(manager, name)
    goes(manager, "h0", "h")
    manager.objects.pod_group_gone(pod_group("h", 1))
    assert missing_group(manager, g) == ""


def test_the_groups_that_have_all_they_need_once_some_members_have_places(manager: PodGroupManager) -> None:
    groups = [manager.objects.pod_group_changed(pod_group(name, 2)) for name in "gh"]
    wrong = manager.objects.pod_group_changed(pod_group("wrong", -1))
    for name in ("g0", "g1", "h0", "h1"):
        manager.pod_changed(pod(name, name[0]))
    place(manager, pod("g0", "g"))
    assert names(chosen_groups(manager, [*groups, wrong], ["g1", "h0"])) == ["g"]
    assert names(chosen_groups(manager, groups, ["h0", "h1", "g0"])) == ["h"]
    assert names(chosen_groups(manager, groups, ["g0", "g1", "h0", "h1"])) == ["g", "h"]


# One group


@pytest.mark.parametrize(
    ("bound", "held", "starting", "complete", "whole", "started"),
    [
        pytest.param(0, 0, 0, False, False, False, id="none has come"),
        pytest.param(1, 1, 0, False, False, False, id="one too few"),
        pytest.param(1, 2, 0, True, False, False, id="with those that are held"),
        pytest.param(1, 1, 1, True, False, False, id="with those that start"),
        pytest.param(3, 0, 0, True, True, True, id="all are on nodes"),
    ],
)
def test_whether_a_group_has_its_minimum(
    bound: int, held: int, starting: int, complete: bool, whole: bool, started: bool, manager: PodGroupManager
) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    for number in range(3):
        manager.pod_changed(pod(f"g{number}", "g", node_name="n1" if number < bound else ""))
    for number in range(bound, bound + held + starting):
        hold(group, f"g{number}")
        if number >= bound + held:
            group.happened(f"g{number}", MemberEvent.START_BEGUN)
    found = is_complete(manager, group), is_whole(manager, group), has_started(manager, group)
    assert found == (complete, whole, started)
    group.started |= {"g0", "g1", "g2"} - group.assigned
    assert has_started(manager, group), "its start has begun for all three"


@pytest.mark.parametrize(
    "tell",
    [
        pytest.param(lambda m: m.objects.pod_group_gone(pod_group("g", 1)), id="its object is gone"),
        pytest.param(lambda m: m.objects.pod_group_changed(pod_group("g", -1)), id="it asks for nonsense"),
    ],
)
def test_a_group_that_asks_for_nothing_that_is_known_is_neither_complete_nor_whole(
    tell: Callable[[PodGroupManager], object], manager: PodGroupManager
) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 1))
    runs(manager, "g")
    assert (is_complete(manager, group), is_whole(manager, group)) == (True, True)
    tell(manager)
    assert (is_complete(manager, group), is_whole(manager, group)) == (False, False)


@pytest.mark.parametrize(
    ("roles", "whole"),
    [
        pytest.param(["leader", "worker"], True, id="each role has its minimum"),
        pytest.param(["worker", "worker"], False, id="a role is short"),
    ],
)
def test_a_group_with_roles_is_whole_with_the_minimum_of_each(
    roles: list[str], whole: bool, manager: PodGroupManager
) -> None:
    made = make_pod_group().namespace("default").name("g").min_member(2).annotation(str(ROLES), "leader=1,worker=1")
    group = manager.objects.pod_group_changed(made.obj())
    for number, role in enumerate(roles):
        manager.pod_changed(pod(f"g{number}", labels={LABEL: "g", ROLE_LABEL: role}, node_name="n1"))
    found = is_complete(manager, group), is_whole(manager, group), has_started(manager, group)
    assert found == (whole, whole, whole)


def test_a_gang_that_was_whole_is_complete_with_all_that_exist(manager: PodGroupManager) -> None:
    group = manager.objects.pod_group_changed(pod_group("g", 3))
    runs(manager, "g", 3)
    goes(manager, "g2", "g")
    assert (is_complete(manager, group), is_whole(manager, group)) == (True, False)
    manager.pod_changed(pod("later", "g"))
    assert not is_complete(manager, group), "there is one more, which has no place"


# Single members


@pytest.mark.parametrize(
    ("policy", "waits"),
    [
        pytest.param("", True, id="a member beyond those that run"),
        pytest.param("once-satisfied", False, id="of a gang that is on its own once it was whole"),
    ],
)
def test_a_member_of_a_gang_that_is_short_of_one_waits_for_its_start(
    policy: str, waits: bool, manager: PodGroupManager
) -> None:
    made = make_pod_group().namespace("default").name("g").min_member(2)
    group = manager.objects.pod_group_changed((made.annotation(str(MATCH_POLICY), policy) if policy else made).obj())
    runs(manager, "g", 2)
    late = pod("late", "g")
    assert not waits_for_start(manager, late), "the gang has started"
    goes(manager, "g1", "g")
    group.whole_of = 0
    assert waits_for_start(manager, late) is waits
    assert may_preempt(manager, late) is not waits


def test_a_member_waits_for_the_start_of_all_groups_of_its_set(
    pair: tuple[Group, Group], manager: PodGroupManager
) -> None:
    runs(manager, "g")
    manager.pod_changed(pod("h0", "h"))
    assert waits_for_start(manager, pod("late", "g"))
    runs(manager, "h")
    assert not waits_for_start(manager, pod("late", "g"))


def test_which_pods_wait_for_no_start(manager: PodGroupManager) -> None:
    assert not waits_for_start(manager, pod("single"))
    assert may_preempt(manager, pod("single"))
    assert waits_for_start(manager, pod("p", "g")), "its object is not there yet"
    manager.quarantine.set_aside(KEY)
    assert waits_for_start(manager, pod("p", "g")), "also of a gang that is set aside"


@pytest.mark.faults
def test_a_gang_at_which_it_raises_is_set_aside_and_its_members_wait(
    manager: PodGroupManager, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    manager.objects.pod_group_changed(pod_group("g", 1))
    monkeypatch.setattr(gang_sets, "schedules_alone", Mock(side_effect=KeyError("a fault of ours")))
    assert waits_for_start(manager, pod("p", "g"))
    assert list(manager.quarantine) == [KEY]
    assert "unexpected error where=guard group=default/g" in caplog.text


def test_a_pod_with_a_promised_place_needs_no_victims(manager: PodGroupManager) -> None:
    place(manager, pod("single"), group="default/room")
    assert not waits_for_start(manager, pod("single"))
    assert not may_preempt(manager, pod("single"))


def test_a_quorum_on_nodes_is_told_to_what_measures_starts(
    manager: PodGroupManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(manager.starts, "is_whole", told.append)
    manager.objects.pod_group_changed(pod_group("g", 2))
    runs(manager, "g")
    assert told == []
    runs(manager, "g", 2)
    assert set(told) == {KEY}
    manager.objects.pod_group_gone(pod_group("g", 2))
    update_once_satisfied(manager, manager.groups[KEY])
    assert gang_sets.is_whole(manager, manager.groups[KEY]) is False
