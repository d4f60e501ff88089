"""Trees of CompositePodGroups that become too large, or are so no longer, by a composite that comes or goes."""

from __future__ import annotations

from collections.abc import Callable

from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, flat, named, part, trees

__all__ = ["trees"]
HALF = 33  # of two composites: two groups too many
TOO_MANY = "Too many: must have at most 64 groups in default/root"


def names(of: str) -> list[str]:
    return [f"{of}{index:02}" for index in range(HALF)]


def test_by_a_composite_that_comes_last_all_groups_of_the_tree_are_refused_in_the_same_words(
    trees: Callable[[int], Trees],
) -> None:
    kube = trees(100)
    kube.composite(composite("root", 2), composite("one", HALF, "root"))
    kube.parts(*(part(name, "one", 1) for name in names("a")), *(part(name, "two", 1) for name in names("b")))
    kube.composite(composite("two", HALF, "root"))  # 66 groups
    kube.members(*names("a"), *names("b"), count=1)
    kube.run()
    assert kube.starts == []
    assert kube.told["b00-0"].endswith(TOO_MANY)
    assert kube.told["a00-0"].endswith(TOO_MANY)


def test_by_a_composite_that_goes_the_others_are_a_tree_again(trees: Callable[[int], Trees]) -> None:
    kube = trees(100)
    two = composite("two", HALF, "root")
    kube.composite(composite("root", 1), composite("one", HALF, "root"), two)
    kube.parts(*(part(name, "one", 1) for name in names("a")), *(part(name, "two", 1) for name in names("b")))
    kube.members(*names("a"), *names("b"), count=1)
    kube.run()
    assert kube.starts == []
    kube.plugin.on_composite_pod_group(two, None)
    for name in names("b"):
        kube.plugin.on_pod_group(part(name, "two", 1), None)
    kube.delete(*(named(name, 0) for name in names("b")))
    for _ in range(3):
        kube.run()
    assert flat(kube.starts) == set(names("a")), kube.told["a00-0"]
