"""Groups that name a group of a tree of CompositePodGroups, or one of which members come later, to start together with."""

from __future__ import annotations

from collections.abc import Callable

from extender.api.codec import convert
from extender.api.schedulingv1beta1 import PodGroup
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, flat, part, trees

__all__ = ["trees"]


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
