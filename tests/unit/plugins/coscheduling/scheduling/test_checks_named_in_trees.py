"""Groups that name a group of a tree of CompositePodGroups, or one of which members come later, to start together with."""

from __future__ import annotations

from collections.abc import Callable

from extender.api.codec import convert
from extender.api.schedulingv1beta1 import PodGroup
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.scheduling.checks import failed_check
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, flat, named, part, trees

__all__ = ["trees"]
NAME = named("a", 0).spec.scheduler_name


def naming(name: str, other: str) -> PodGroup:
    metadata = {"name": name, "namespace": "default", "annotations": {"gang-extender.dev/groups": other}}
    return convert({"metadata": metadata, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}, PodGroup)


def test_no_part_of_a_tree_starts_with_a_group_that_names_it(trees: Callable[[int], Trees]) -> None:
    """There is room for the two, and none for the tree's other group."""
    kube = trees(5)
    kube.composite(composite("root", 2))
    kube.parts(part("a", "root"), part("c", "root"), naming("b", "a"))
    kube.members("b", "a")
    kube.run()
    kube.members("c")
    for _ in range(3):
        kube.run()
        kube.world.clock.now += 61
    assert "a" not in flat(kube.starts) or "c" in flat(kube.starts)


def test_no_place_is_kept_for_a_group_that_names_one_of_a_tree_that_cannot_start(trees: Callable[[int], Trees]) -> None:
    kube = trees(5)
    kube.composite(composite("root", 2))
    kube.parts(part("a", "root"), naming("b", "a"))
    kube.members("b", "a")
    kube.run()
    assert [slot.uid for slot in kube.plugin.manager.slots] == []
    assert "CompositePodGroup" in kube.told["b-0"]


def test_a_chosen_group_says_which_other_chosen_one_it_waits_for(trees: Callable[[int], Trees]) -> None:
    kube = trees(8)
    kube.composite(composite("top", 2))
    kube.parts(part("a", "top"), part("b", "top", 3), part("c", "top"))
    kube.members("a", "b", "c")
    kube.plugin.manager.composites.choose("default/top", ["default/a", "default/b"])
    manager = kube.plugin.manager
    with manager.lock:
        manager.groups["default/b"].planned = True
        failed = failed_check(manager, manager.groups["default/a"], NAME, "a-0", "default/a-0")
        manager.groups["default/b"].planned = False
    assert failed is not None
    assert failed.cause == messages.companion_waits("default/b", messages.waiting_for_members(3))
