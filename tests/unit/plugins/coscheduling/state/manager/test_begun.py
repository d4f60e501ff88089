"""Starts that were cut short: which members they left behind, and that the places of these are firm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from extender.plugins.coscheduling.spec.start_record import start_record
from extender.plugins.coscheduling.state.member import Start
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import pod, pod_group
from tests.unit.plugins.coscheduling.managing import POD, cut_short, place


def test_places_of_those_that_a_start_left_behind_are_firm_and_no_others(manager: PodGroupManager) -> None:
    group = cut_short(manager, "g")
    place(manager, pod("g-1", "g"))
    place(manager, pod("g-2", "g"), firm=True)
    assert manager.begun.was_cut_short(group)
    assert manager.begun.left_behind(group) == {"g-1"}
    manager.begun.follow(group, manager.specs.of(group))
    assert {each.uid: each.firm for each in manager.slots} == {"g-1": True, "g-2": False}
    manager.pod_changed(pod("g-1", "g", node_name="n1"))
    manager.begun.follow(group, manager.specs.of(group))
    assert (group.start, manager.begun.was_cut_short(group)) == (None, False)


@pytest.mark.parametrize(
    "act",
    [
        pytest.param(
            lambda manager: manager.group_of(pod("more", "g", node_name="n1")), id="a call shows one on its node"
        ),
        pytest.param(lambda manager: manager.pod_gone(pod("g-0", "g")), id="the member on its node goes"),
    ],
)
def test_where_a_start_is_over_no_place_is_firm(
    act: Callable[[PodGroupManager], object], manager: PodGroupManager
) -> None:
    group = cut_short(manager, "g")
    place(manager, pod("g-1", "g"), firm=True)
    act(manager)
    assert manager.begun.left_behind(group) == frozenset()
    assert not manager.slots.firm_of(group.key)


def test_a_group_without_object_has_begun_nothing(manager: PodGroupManager) -> None:
    group = manager.pod_changed(POD)
    assert group is not None
    group.start = Start(start_record(datetime(2026, 1, 1, tzinfo=UTC), 2, frozenset("p")), frozenset("p"))
    assert manager.begun.left_behind(group) == frozenset()


def test_of_a_group_whose_object_is_gone_no_place_is_firm_until_it_is_back(manager: PodGroupManager) -> None:
    group = cut_short(manager, "g")
    place(manager, pod("g-1", "g"), firm=True)
    manager.objects.pod_group_gone(pod_group("g", 2))
    manager.begun.follow(group, manager.specs.of(group))
    assert (group.start is None, manager.slots.firm_of(group.key)) == (False, set())
    manager.objects.pod_group_changed(pod_group("g", 2))
    manager.begun.follow(group, manager.specs.of(group))
    assert manager.slots.firm_of(group.key) == {"g-1"}
