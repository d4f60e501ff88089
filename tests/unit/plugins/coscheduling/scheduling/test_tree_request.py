"""Trees of CompositePodGroups through the plugin: which groups may be chosen, before a choice, after it and once the tree has started."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.codec import convert
from extender.api.corev1.pod import PodSchedulingGroup
from extender.api.schedulingv1alpha3 import CompositePodGroup
from extender.api.schedulingv1beta1 import PodGroup
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.scheduling.tree_request import tree_of
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, broken, member, on_node

NewWorld = Callable[..., World]


def composite(name: str, minimum: int, parent: str = "") -> CompositePodGroup:
    spec: dict[str, Any] = {"schedulingPolicy": {"gang": {"minGroupCount": minimum}}}
    spec |= {"parentCompositePodGroupName": parent} if parent else {}
    return convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, CompositePodGroup)


def part(name: str, parent: str, minimum: int = 2) -> PodGroup:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "parentCompositePodGroupName": parent}
    stamp = "2026-01-01T00:00:00Z"
    return convert(
        {"metadata": {"name": name, "namespace": "default", "creationTimestamp": stamp}, "spec": spec}, PodGroup
    )


def named(group: str, number: int, **more: Any) -> corev1.Pod:
    plain = member(f"{group}-{number}", "", **more)
    return structs.replace(
        plain, spec=structs.replace(plain.spec, scheduling_group=PodSchedulingGroup(pod_group_name=group))
    )


class Trees(KubeScheduler):
    def composite(self, *composites: CompositePodGroup) -> None:
        for each in composites:
            self.plugin.on_composite_pod_group(None, each)

    def parts(self, *groups: PodGroup) -> None:
        for each in groups:
            self.plugin.on_pod_group(None, each)

    def members(self, *groups: str, count: int = 2, **more: Any) -> None:
        self.create(*(named(group, number, **more) for group in groups for number in range(count)))

    def shape(self, key: str) -> object:
        """What the planner would be asked for the group: (composite, needed, children)."""
        plugin = self.plugin
        with plugin.manager.lock:
            group = plugin.manager.groups[key]
            tree = tree_of(
                plugin.manager,
                gang_set_of(plugin.manager, group),
                planner.Topology(),
                lambda each: planner.Leaf(each.key, frozenset(), 0),
                lambda each: (),
            )
        return _shape(tree) if tree is not None else None


def _shape(tree: planner.Branch | planner.Leaf) -> object:
    if isinstance(tree, planner.Leaf):
        return tree.name.partition("/")[2]
    return tree.name.partition("/")[2], tree.needed, [_shape(child) for child in tree.children]


@pytest.fixture
def trees(world: NewWorld) -> Callable[[int], Trees]:
    return lambda cpu: Trees(world([node("n1", str(cpu))], in_tree_pod_groups=True))


def flat(starts: Iterable[Collection[str]]) -> set[str]:
    """The groups of members."""
    return {name.rpartition("/")[2].rpartition("-")[0] for each in starts for name in each}


def test_before_a_choice_all_groups_may_be_chosen(trees: Callable[[int], Trees]) -> None:
    kube = trees(9)
    kube.composite(composite("root", 2), composite("inner", 1, "root"))
    kube.parts(part("a", "inner"), part("b", "inner"), part("c", "root"))
    assert kube.shape("default/a") == ("root", 2, ["c", ("inner", 1, ["a", "b"])])


def test_as_many_as_fit_start_and_the_others_when_there_is_room(trees: Callable[[int], Trees]) -> None:
    kube = trees(5)
    kube.composite(composite("root", 2))
    kube.parts(part("a", "root"), part("b", "root"), part("c", "root"))
    kube.members("a", "b", "c")
    kube.run()
    assert flat(kube.starts) == {"a", "b"}
    assert kube.shape("default/a") == ("root", 1, ["a"])
    assert kube.shape("default/c") == ("root", 1, ["c"])
    kube.delete(named("a", 0), named("a", 1))
    kube.run()
    assert flat(kube.starts) == {"a", "b", "c"}
    assert list(broken(kube)) == []


def test_too_few_do_not_start(trees: Callable[[int], Trees]) -> None:
    kube = trees(3)
    kube.composite(composite("root", 2))
    kube.parts(part("a", "root"), part("b", "root"))
    kube.members("a", "b")
    kube.run()
    assert kube.starts == []
    assert "1 of 2 groups of CompositePodGroup default/root fit, 2 are needed" in kube.told["a-0"]
    assert list(broken(kube)) == []


def test_fewer_groups_that_are_needed_start_the_tree(trees: Callable[[int], Trees]) -> None:
    kube = trees(3)
    old, new = composite("root", 2), composite("root", 1)
    kube.composite(old)
    kube.parts(part("a", "root"), part("b", "root"))
    kube.members("a", "b")
    kube.run()
    kube.plugin.on_composite_pod_group(old, new)
    kube.run()
    assert flat(kube.starts) == {"a"}


def test_a_composite_that_goes_is_waited_for_again(trees: Callable[[int], Trees]) -> None:
    kube = trees(9)
    root = composite("root", 1)
    kube.parts(part("a", "root"))
    kube.members("a")
    kube.run()
    assert kube.told["a-0"] == "CompositePodGroup default/root, which it is a group of, is not found"
    kube.composite(root)
    kube.run()
    assert flat(kube.starts) == {"a"}
    kube.plugin.on_composite_pod_group(root, None)
    kube.parts(part("b", "root"))
    kube.members("b")
    kube.run()
    assert flat(kube.starts) == {"a"}
    assert list(broken(kube)) == []


INNER = composite("inner-a", 1, "root")


def nested(kube: Trees, *calls: corev1.Pod) -> None:
    """A tree of two composites that each have one group, of two members each; bind calls come for these."""
    kube.composite(composite("root", 2), INNER, composite("inner-b", 1, "root"))
    kube.parts(part("a", "inner-a"), part("b", "inner-b"))
    kube.members("a", "b")
    kube.world.run_tasks()
    for pod in calls:
        kube.bind_call(pod, kube.filter_call(pod))
    assert kube.held() == {pod.name for pod in calls}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(INNER, None, id="is deleted"),
        pytest.param(INNER, composite("inner-a", 1, "other"), id="is moved to another"),
        pytest.param(composite("root", 2), None, id="was the root and is deleted"),
    ],
)
def test_no_part_of_a_tree_starts_where_a_composite_above_its_held_members(
    before: CompositePodGroup, after: CompositePodGroup | None, trees: Callable[[int], Trees]
) -> None:
    kube = trees(9)
    nested(kube, named("a", 0), named("a", 1), named("b", 0))
    kube.plugin.on_composite_pod_group(before, after)
    kube.run()
    assert kube.starts == []
    assert list(broken(kube)) == []


def test_a_member_that_comes_after_the_other_part_of_its_tree_has_lost_its_composite_starts_nothing(
    trees: Callable[[int], Trees],
) -> None:
    kube = trees(9)
    nested(kube, named("a", 0), named("b", 0))
    last = named("b", 1)
    node_name = kube.filter_call(last)
    kube.plugin.on_composite_pod_group(INNER, None)
    kube.bind_call(last, node_name)
    assert kube.starts == []
    assert kube.told["b-1"] == "1 of 1 groups of CompositePodGroup default/root are ready, 2 are needed"
    kube.composite(INNER)
    kube.run()
    assert flat(kube.starts) == {"a", "b"}
    assert list(broken(kube)) == []


def test_a_chosen_group_that_goes_before_the_start_is_replaced_by_another(trees: Callable[[int], Trees]) -> None:
    """Gated members are planned, and held by no call."""
    kube = trees(4)
    kube.composite(composite("root", 2))
    kube.parts(part("a", "root"), part("b", "root"), part("c", "root"))
    kube.members("a", "b", "c", gated=True)
    kube.world.run_tasks()
    assert kube.plugin.manager.composites.chosen("default/root") == {"default/a", "default/b"}
    kube.delete(named("a", 0), named("a", 1))
    kube.world.run_tasks()
    assert kube.plugin.manager.composites.chosen("default/root") == {"default/b", "default/c"}
    assert list(broken(kube)) == []


def test_a_tree_of_which_nothing_is_left_starts_as_a_whole_again(trees: Callable[[int], Trees]) -> None:
    kube = trees(4)
    kube.composite(composite("root", 2))
    kube.parts(part("a", "root"), part("b", "root"))
    kube.members("a", "b")
    kube.run()
    assert kube.plugin.manager.composites.has_started("default/root")
    kube.delete(*(named(group, number) for group in "ab" for number in range(2)))
    kube.run()
    before = len(kube.starts)
    kube.create(named("a", 7), named("a", 8))
    kube.run()
    assert len(kube.starts) == before
    assert "1 of 2 groups of CompositePodGroup default/root are ready, 2 are needed" in kube.told["a-7"]
    assert list(broken(kube)) == []


def test_a_group_of_no_tree_has_none(trees: Callable[[int], Trees]) -> None:
    kube = trees(4)
    kube.parts(part("a", ""))
    kube.members("a")
    assert kube.shape("default/a") is None


def test_a_group_that_was_not_chosen_is_planned_once_the_tree_has_started(trees: Callable[[int], Trees]) -> None:
    """Room for it comes while the chosen groups are on their way, and it may not use it yet."""
    kube = trees(4)
    kube.composite(composite("root", 2))
    kube.parts(part("a", "root"), part("b", "root"), part("c", "root"))
    kube.members("a", "b", "c", gated=True)
    kube.world.run_tasks()
    kube.world.nodes["n2"] = node("n2", "4")
    kube.plugin.on_node(None, kube.world.nodes["n2"])
    kube.world.run_tasks()
    assert kube.plugin.manager.groups["default/c"].planned is False
    kube.run()
    kube.plugin.tick()
    kube.run()
    assert flat(kube.starts) == {"a", "b", "c"}
    assert list(broken(kube)) == []


def test_a_start_that_a_restart_has_cut_short_goes_on_with_the_group_that_it_was_of(
    trees: Callable[[int], Trees],
) -> None:
    """Which groups were chosen is known no more; one of them has a member on a node."""
    kube = trees(3)
    kube.composite(composite("root", 1))
    kube.parts(part("a", "root"), part("b", "root"), part("c", "root"))
    kube.create(on_node(named("c", 0), "n1"))
    kube.members("a", "b")
    kube.create(named("c", 1))
    kube.run()
    assert flat(kube.starts) == {"c"}
    assert list(broken(kube)) == []


def chosen(kube: Trees) -> set[str]:
    manager = kube.plugin.manager
    with manager.lock:
        return {key.rpartition("/")[2] for key in manager.composites.chosen("default/root")}


def planned(kube: Trees, minimum: int) -> Trees:
    """Three groups of two members, of which none has been sent."""
    kube.composite(composite("root", minimum))
    kube.parts(*(part(name, "root") for name in "abc"))
    kube.members("a", "b", "c", gated=True)
    kube.world.run_tasks()
    return kube


def test_after_a_restart_with_members_on_nodes_the_same_groups_are_chosen(world: NewWorld) -> None:
    """The other member of the last group runs; there would be room for the first group in its place."""
    again = Trees(world([node("n1", "5")], in_tree_pod_groups=True))
    again.composite(composite("root", 2))
    again.parts(*(part(name, "root") for name in "abc"))
    again.create(on_node(named("b", 0), "n1"), on_node(named("c", 0), "n1"))
    again.create(named("a", 0), named("a", 1), named("b", 1), named("c", 1))
    again.run()
    assert flat(again.starts) == {"b", "c"}
    assert list(broken(again)) == []


def test_after_a_restart_with_nothing_on_nodes_they_are_chosen_anew(
    trees: Callable[[int], Trees], world: NewWorld
) -> None:
    kube = planned(trees(4), 2)
    assert chosen(kube) == {"a", "b"}
    again = Trees(world([node("n1", "4")], in_tree_pod_groups=True))
    again.composite(composite("root", 2))
    again.parts(*(part(name, "root") for name in "abc"))
    again.members("b", "c", gated=True)  # those of a have gone meanwhile
    again.run()
    assert flat(again.starts) == {"b", "c"}
    assert list(broken(again)) == []


@pytest.mark.parametrize(("before", "after", "started"), [(2, 3, set()), (3, 2, {"a", "b"}), (2, 1, {"a", "b"})])
def test_a_minimum_that_changes_before_the_start_counts(
    trees: Callable[[int], Trees], before: int, after: int, started: set[str]
) -> None:
    """There is room for two groups."""
    kube = planned(trees(4), before)
    kube.plugin.on_composite_pod_group(composite("root", before), composite("root", after))
    kube.run()
    assert flat(kube.starts) == started
    kube.plugin.on_node(None, large := node("n2", "4"))
    kube.world.nodes["n2"] = large
    kube.run()
    kube.plugin.tick()
    kube.run()
    assert flat(kube.starts) == {"a", "b", "c"}
    assert list(broken(kube)) == []


def test_a_minimum_that_is_raised_after_the_start_takes_nothing_back(trees: Callable[[int], Trees]) -> None:
    kube = planned(trees(4), 2)
    kube.run()
    assert flat(kube.starts) == {"a", "b"}
    kube.plugin.on_composite_pod_group(composite("root", 2), composite("root", 3))
    kube.run()
    assert kube.running() == {"a-0", "a-1", "b-0", "b-1"}
    kube.plugin.on_node(None, large := node("n2", "4"))
    kube.world.nodes["n2"] = large
    kube.run()
    kube.plugin.tick()
    kube.run()
    assert flat(kube.starts) == {"a", "b", "c"}
    assert list(broken(kube)) == []


def test_once_chosen_a_composite_without_a_chosen_group_is_no_part_of_the_plan(trees: Callable[[int], Trees]) -> None:
    kube = trees(4)
    kube.composite(composite("top", 1), composite("left", 1, "top"), composite("right", 1, "top"))
    kube.parts(part("a", "left"), part("b", "right"))
    kube.members("a", "b")
    assert kube.shape("default/a") == ("top", 1, [("left", 1, ["a"]), ("right", 1, ["b"])])
    kube.plugin.manager.composites.choose("default/top", ["default/a"])
    kube.plugin.manager.groups["default/a"].planned = True
    assert kube.shape("default/a") == ("top", 1, [("left", 1, ["a"])])
    kube.plugin.manager.groups["default/a"].planned = False
