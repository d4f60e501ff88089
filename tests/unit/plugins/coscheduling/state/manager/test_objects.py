"""What a group is once its object is there, asks for something else, or is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.state.gang_set_index import GangSetIndex
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.objects import Objects
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import pod, pod_group, waves
from tests.unit.plugins.coscheduling.managing import KEY, POD, in_tree, naming, place

Told = Callable[[Objects, Any], Group | None]
OBJECTS = [
    pytest.param(pod_group, Objects.pod_group_changed, Objects.pod_group_gone, id="PodGroup"),
    pytest.param(in_tree, Objects.pod_group_changed, Objects.pod_group_gone, id="in-tree PodGroup"),
]


@pytest.mark.parametrize(("made", "changed", "gone"), OBJECTS)
def test_a_group_is_there_with_its_object_and_asks_for_what_that_says(
    manager: PodGroupManager, made: Any, changed: Told, gone: Told
) -> None:
    assert gone(manager.objects, made("g", 2)) is None
    group = changed(manager.objects, made("g", 2))
    assert group is manager.groups[KEY]
    spec = manager.specs.of(group)
    assert spec is not None
    assert spec.min_member == 2
    assert changed(manager.objects, made("g", 3)) is group
    spec = manager.specs.of(group)
    assert spec is not None
    assert spec.min_member == 3
    assert gone(manager.objects, made("g", 3)) is group
    assert manager.groups == {}


@pytest.mark.parametrize(("made", "changed", "gone"), OBJECTS)
def test_without_its_object_a_group_of_members_waits_for_it(
    manager: PodGroupManager, made: Any, changed: Told, gone: Told
) -> None:
    changed(manager.objects, made("g", 2))
    group = manager.pod_changed(POD)
    assert group is not None
    gone(manager.objects, made("g", 2))
    assert (manager.groups, manager.specs.of(group)) == ({KEY: group}, None)


def test_a_set_that_grows_too_large_is_refused_with_its_number_and_tried_again(manager: PodGroupManager) -> None:
    manager.specs.gang_set_index = manager.gang_set_index = GangSetIndex(most=2)
    manager.objects.pod_group_changed(naming("g", "h"))
    group = manager.objects.pod_group_changed(naming("x", "h"))
    spec = manager.specs.of(group)
    assert spec is not None
    assert spec.invalid.startswith(f"PodGroup default/x is invalid: annotation {GROUPS}: ")
    assert "3" in spec.invalid
    assert manager.objects.try_names_again("default/x") is None
    assert manager.objects.try_names_again("default/unknown") is None
    for name in "xh":
        manager.pod_changed(pod(name, name))
    for name in "xh":
        place(manager, pod(name, name), wave=1)
    assert waves(manager, "default/x") == [frozenset("x")], "they do not start together yet"
    manager.objects.pod_group_changed(pod_group("g", 1))
    assert manager.objects.try_names_again("default/x") is group
    assert set(manager.gang_set_index.gang_set("default/x")) == {"default/x", "default/h"}
    assert waves(manager, "default/x") == [frozenset("xh")]
    spec = manager.specs.of(group)
    assert spec is not None
    assert spec.invalid == ""


def test_a_composite_concerns_the_groups_below_it_and_no_others(manager: PodGroupManager) -> None:
    for name in "abc":
        manager.objects.pod_group_changed(pod_group(name, 1))
    manager.composites.adopt("default/a", "default/tree")
    manager.composites.adopt("default/b", "default/other")
    spec = CompositeSpec("default/tree")
    assert manager.objects.composite_changed("default/tree", spec) == ["default/a"]
    assert manager.objects.composite_changed("default/tree", None) == ["default/a"]
