"""Groups of a tree of composites: which of them start together, and when the others have their turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS
from extender.plugins.coscheduling.state.gang_sets import choice, gang_set_of, is_linked, missing_group
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from tests.unit.plugins.coscheduling.conftest import pod
from tests.unit.plugins.coscheduling.managing import below
from tests.unit.plugins.coscheduling.state.test_gang_sets_of_manager import ROOT, goes, names, runs


@pytest.fixture
def tree(manager: PodGroupManager) -> list[Group]:
    """Of a, b and c, of which two have to start together."""
    manager.composites.put(CompositeSpec(ROOT, min_groups=2))
    return [manager.objects.pod_group_changed(below(name, "root")) for name in "abc"]


def test_all_groups_of_a_tree_are_one_set_until_some_are_chosen(tree: list[Group], manager: PodGroupManager) -> None:
    a, b, c = tree
    assert [names(gang_set_of(manager, each)) for each in tree] == [["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]]
    assert [is_linked(manager, each) for each in tree] == [True] * 3
    manager.composites.choose(ROOT, ["default/a", "default/c"])
    assert choice(manager, ROOT) == (), "nothing is left of what was planned"
    assert names(gang_set_of(manager, b)) == ["b", "a", "c"]
    c.planned = True
    assert choice(manager, ROOT) == {"default/a", "default/c"}
    assert [names(gang_set_of(manager, each)) for each in (a, b, c)] == [["a", "c"], ["b"], ["c", "a"]]
    assert [missing_group(manager, each) for each in tree] == ["", "", ""]


@pytest.mark.parametrize(
    "kept",
    [
        pytest.param(lambda manager, group: setattr(group, "planned", True), id="it has places"),
        pytest.param(lambda manager, group: group.held.update(a0="n1"), id="a member is held"),
        pytest.param(lambda manager, group: group.assigned.add("a0"), id="a member is on its node"),
    ],
)
def test_a_choice_holds_while_something_is_left_of_one_of_its_groups(
    kept: Callable[[PodGroupManager, Group], object], tree: list[Group], manager: PodGroupManager
) -> None:
    manager.composites.choose(ROOT, ["default/a", "default/c"])
    kept(manager, tree[0])
    assert choice(manager, ROOT) == {"default/a", "default/c"}
    del manager.groups["default/c"]
    assert choice(manager, ROOT) == (), "one of them is gone"


def test_a_tree_has_started_once_as_many_groups_as_it_asks_for_are_whole(
    tree: list[Group], manager: PodGroupManager
) -> None:
    a, b, c = tree
    manager.pod_changed(pod("c0", "c"))
    c.happened("c0", MemberEvent.REFUSED)
    manager.denied[c.key] = manager.denied[b.key] = "no room"
    runs(manager, "a")
    assert not manager.composites.has_started(ROOT)
    runs(manager, "b")
    assert manager.composites.has_started(ROOT)
    assert (list(manager.denied), manager.queue.active) == (["default/b"], {"default/c"}), "the others have their turn"
    assert [names(gang_set_of(manager, each)) for each in (a, c)] == [["a"], ["c"]]
    manager.denied[c.key] = "no room"
    runs(manager, "a", 2)
    assert c.key in manager.denied, "it has started once: one member more helps no other group"
    goes(manager, "a0", "a")
    goes(manager, "a1", "a")
    goes(manager, "b0", "b")
    assert names(gang_set_of(manager, a)) == ["a", "b", "c"], "none runs: from the beginning"
    assert not manager.composites.has_started(ROOT)


def test_a_tree_that_is_none_holds_no_group_together(tree: list[Group], manager: PodGroupManager) -> None:
    manager.composites.put(replace(CompositeSpec(ROOT), invalid="it is nonsense"))
    assert names(gang_set_of(manager, tree[0])) == ["a"]
    manager.composites.put(CompositeSpec(ROOT))
    for number in range(MAX_GROUPS):
        manager.composites.adopt(f"default/many{number}", ROOT)
        manager.groups[f"default/many{number}"] = Group(f"default/many{number}")
    assert names(gang_set_of(manager, tree[0])) == ["a"], "it is too large"
