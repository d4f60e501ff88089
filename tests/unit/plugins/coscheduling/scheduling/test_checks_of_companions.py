"""What a group says of the groups that it starts with: in a tree of CompositePodGroups, or those that it names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.plugins.coscheduling.scheduling.checks import failed_check, missing_peer_gang
from extender.plugins.coscheduling.state.diagnosis import FailedCheck, UnschedulableReason
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members
from tests.unit.plugins.coscheduling.scheduling.test_tree_request import Trees, composite, named, part, trees

__all__ = ["trees"]
NAME = member("x").spec.scheduler_name
CANNOT_START = "PodGroup default/b, which it is to start together with, cannot start: "


@pytest.fixture
def kube(world: Callable[..., World]) -> KubeScheduler:
    return KubeScheduler(world([node("n1", "8")]))


def check(kube: KubeScheduler, name: str = "g0", key: str = "default/g") -> FailedCheck | None:
    manager = kube.plugin.manager
    with manager.lock:
        return failed_check(manager, manager.groups[key], NAME, name, f"default/{name}")


def missing(kube: KubeScheduler, key: str) -> str:
    manager = kube.plugin.manager
    with manager.lock:
        return missing_peer_gang(manager, manager.groups[key])


def companion(text: str) -> FailedCheck:
    return FailedCheck(UnschedulableReason.COMPANION_NOT_READY, text, text, told=text)


def test_a_group_of_a_tree_waits_for_its_composite(trees: Callable[[int], Trees]) -> None:
    kube = trees(8)
    kube.parts(part("a", "top"))
    kube.members("a")
    text = "CompositePodGroup default/top, which it is a group of, is not found"
    assert check(kube, "a-0", "default/a") == companion(text)
    assert missing(kube, "default/a") == text


def test_a_group_that_was_not_chosen_waits_until_the_chosen_have_started(trees: Callable[[int], Trees]) -> None:
    kube = trees(4)
    kube.composite(composite("top", 2))
    kube.parts(part("a", "top"), part("b", "top"), part("c", "top"))
    kube.members("a", "b", "c", gated=True)
    kube.world.run_tasks()
    text = "it waits until other groups of CompositePodGroup default/top have started"
    assert check(kube, "c-0", "default/c") == companion(text)
    assert check(kube, "a-0", "default/a") is None


def test_a_tree_of_which_too_few_groups_are_ready_says_so_and_what_the_first_lacks(
    trees: Callable[[int], Trees],
) -> None:
    kube = trees(8)
    kube.composite(composite("top", 3))
    kube.parts(part("a", "top"), part("b", "top", 3), part("c", "top", 4))
    kube.members("a", "b", "c")
    assert check(kube, "a-0", "default/a") == companion(
        "1 of 3 groups of CompositePodGroup default/top are ready, 3 are needed: PodGroup default/b, which it is to start "
        "together with, cannot start: fewer pods exist than minMember of 3"
    )
    assert missing(kube, "default/a") == ""


def test_a_tree_in_which_a_group_is_missing_says_how_many_there_are(trees: Callable[[int], Trees]) -> None:
    kube = trees(8)
    kube.composite(composite("top", 2))
    kube.parts(part("a", "top"))
    kube.members("a")
    text = "1 of 1 groups of CompositePodGroup default/top are ready, 2 are needed"
    assert check(kube, "a-0", "default/a") == companion(text)
    assert missing(kube, "default/a") == text


def test_a_tree_that_needs_no_more_groups_waits_for_none_that_is_not_ready(trees: Callable[[int], Trees]) -> None:
    kube = trees(8)
    kube.composite(composite("top", 1))
    kube.parts(part("a", "top"), part("b", "top", 3))
    kube.members("a", "b")
    assert check(kube, "a-0", "default/a") is None
    assert check(kube, "b-0", "default/b") is not None, "it lacks a member itself"


def test_once_a_tree_has_started_none_of_its_groups_waits_for_another(trees: Callable[[int], Trees]) -> None:
    kube = trees(4)
    kube.composite(composite("top", 2))
    kube.parts(part("a", "top"), part("b", "top"), part("c", "top"), part("d", "top", 3))
    kube.members("a", "b", "c", "d")
    kube.run()
    assert kube.plugin.manager.composites.has_started("default/top")
    assert check(kube, "c-0", "default/c") is None
    assert missing(kube, "default/c") == ""


def test_a_group_that_names_one_of_a_tree_is_told_of_the_composite(trees: Callable[[int], Trees]) -> None:
    kube = trees(8)
    kube.composite(composite("top", 1))
    kube.parts(part("b", "top"))
    kube.apply(group(groups="b"))
    kube.create(*members(2), named("b", 0), named("b", 1))
    text = (
        "PodGroup default/b, which it is to start together with, is a group of CompositePodGroup default/top, "
        "and starts with that one's groups alone"
    )
    assert check(kube) == companion(text)
    assert missing(kube, "default/g") == text


@pytest.mark.parametrize(
    ("other", "text"),
    [
        pytest.param(group("b", 0), "spec.minMember", id="asks for nonsense"),
        pytest.param(None, "PodGroup not found", id="has members, and no object"),
    ],
)
def test_no_member_can_start_with_a_group_that(other: Any, text: str, kube: KubeScheduler) -> None:
    kube.apply(group(groups="b"))
    kube.create(*members(2), *members(2, "b"))
    if other is not None:
        kube.apply(other)
    said = missing(kube, "default/g")
    assert said.startswith(CANNOT_START)
    assert text in said
    assert check(kube) == companion(said)


def test_a_gang_of_no_other_waits_for_none(kube: KubeScheduler) -> None:
    kube.apply(group())
    kube.create(*members(2))
    assert missing(kube, "default/g") == ""
