"""Trees of CompositePodGroups: what is below, what is missing, what is no tree, and what of it is chosen and has started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from unittest.mock import patch

import pytest

from extender.plugins.coscheduling.composites import MAX_DEPTH, Composites
from extender.plugins.coscheduling.spec.in_tree import CompositeSpec
from extender.plugins.coscheduling.spec.named_groups import MAX_GROUPS

A, B, C = "ns/a", "ns/b", "ns/c"  # groups


def tree(parents: Mapping[str, str], **composites: tuple[int, str]) -> Composites:
    """parents: group -> composite's name. composites: name -> (min_groups, parent's name)."""
    made = Composites()
    for name, (minimum, parent) in composites.items():
        made.put(CompositeSpec(f"ns/{name}", minimum, f"ns/{parent}" if parent else ""))
    for group, parent in parents.items():
        made.adopt(group, f"ns/{parent}")
    return made


def test_groups_are_found_at_every_depth_and_in_order() -> None:
    made = tree({A: "inner", B: "root", C: "inner"}, root=(1, ""), inner=(1, "root"))
    assert made.groups_of("ns/root") == [B, A, C]
    assert [made.root_of(group) for group in (A, B, "ns/other")] == ["ns/root", "ns/root", ""]
    assert [spec.key for spec in made.ancestors(A)] == ["ns/inner", "ns/root"]


@pytest.mark.parametrize(
    ("made", "missing"),
    [
        pytest.param(tree({A: "root"}, root=(1, "")), "", id="none"),
        pytest.param(tree({A: "root"}), "ns/root", id="the group's own"),
        pytest.param(tree({A: "inner"}, inner=(1, "root")), "ns/root", id="one further up"),
        pytest.param(tree({}), "", id="a group of no tree"),
    ],
)
def test_a_composite_that_is_missing_is_named(made: Composites, missing: str) -> None:
    assert (made.missing(A), made.problem(A)) == (missing, "")


@pytest.mark.parametrize(
    ("groups", "lacking"),
    [
        pytest.param([A, B, C], "", id="all"),
        pytest.param([A, C], "", id="as many as are asked for"),
        pytest.param(
            [C],
            "0 of 2 groups of CompositePodGroup ns/inner are ready, 1 are needed",
            id="too few of an inner one, which is named",
        ),
        pytest.param(
            [A, B], "1 of 2 groups of CompositePodGroup ns/root are ready, 2 are needed", id="too few of the outer one"
        ),
    ],
)
def test_which_composite_lacks_groups(groups: list[str], lacking: str) -> None:
    made = tree({A: "inner", B: "inner", C: "root"}, root=(2, ""), inner=(1, "root"))
    assert made.lacking("ns/root", groups) == lacking
    assert made.satisfied("ns/root", groups) == (not lacking)


def deep(levels: int) -> Composites:
    names = {f"c{number}": (1, f"c{number + 1}" if number + 1 < levels else "") for number in range(levels)}
    return tree({A: "c0"}, **names)


def test_a_tree_is_four_composites_deep_at_most() -> None:
    assert deep(MAX_DEPTH).problem(A) == ""
    assert deep(MAX_DEPTH + 1).problem(A).endswith("must not lead to more than 4 levels")
    assert deep(100).problem(A).endswith("must not lead to more than 4 levels")


def test_a_branch_that_is_too_deep_is_named_as_that() -> None:
    made = tree({A: "root", B: "c4"}, root=(2, ""), c1=(1, "root"), c2=(1, "c1"), c3=(1, "c2"), c4=(1, "c3"))
    assert made.lacking("ns/root", [A, B]) == "CompositePodGroup ns/c4 is more than 4 levels deep"


def test_what_lacks_groups_is_found_without_a_walk_through_a_tree_of_empty_composites() -> None:
    made = tree({A: "root"}, root=(2, ""), **{f"c{number}": (1, "root") for number in range(100 * MAX_GROUPS)})
    asked = []

    def children(key: str) -> tuple[Sequence[str], Sequence[str]]:
        asked.append(key)
        return Composites.children(made, key)

    with patch.object(made, "children", children):
        assert made.lacking("ns/root", [A])
    assert len(asked) <= 3 * MAX_GROUPS * MAX_DEPTH


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_composites_in_a_circle_are_no_tree_and_end_every_walk(length: int) -> None:
    names = {f"c{number}": (1, f"c{(number + 1) % length}") for number in range(length)}
    made = tree({A: "c0"}, **names)
    assert made.problem(A).endswith("must not lead back to the group itself")
    assert set(made.groups_of(made.root_of(A))) <= {A}


def test_what_is_wrong_with_a_composite_is_wrong_with_all_below_it() -> None:
    made = tree({A: "inner", B: "root"}, inner=(1, "root"))
    made.put(CompositeSpec("ns/root", invalid="it is invalid"))
    assert (made.problem(A), made.problem(B)) == ("it is invalid", "it is invalid")
    made.put(CompositeSpec("ns/root"))
    assert (made.problem(A), made.problem(B)) == ("", "")


def test_a_tree_that_grows_too_large_is_none_until_a_group_leaves() -> None:
    made = tree({f"ns/g{number}": "root" for number in range(MAX_GROUPS)}, root=(1, ""))
    assert made.problem("ns/g0") == ""
    assert len(made.adopt("ns/more", "ns/root")) == MAX_GROUPS + 1
    assert made.problem("ns/g0").endswith("Too many: must have at most 64 groups in ns/root")
    assert list(made.adopt("ns/still-more", "ns/root")) == []
    made.adopt("ns/still-more", "")
    assert len(made.adopt("ns/more", "")) == MAX_GROUPS
    assert made.problem("ns/g0") == ""


def test_a_walk_over_a_hostile_tree_is_bounded() -> None:
    """Ten thousand groups and composites below one."""
    made = tree({f"ns/g{number}": "root" for number in range(10_000)}, root=(1, ""))
    for number in range(10_000):
        made.put(CompositeSpec(f"ns/c{number}", parent="ns/root"))
    assert len(made.groups_of("ns/root")) == MAX_GROUPS + 1
    groups, composites = made.children("ns/root")
    assert (len(groups), len(composites)) == (MAX_GROUPS + 1, MAX_GROUPS + 1)


def test_a_group_more_costs_the_same_in_a_tree_that_is_far_too_large() -> None:
    """A tenant may make thousands of PodGroups that name one composite; each is compared with a few of its siblings alone."""

    class Key(str):
        compared = 0
        __slots__ = ()

        def __lt__(self, other: str) -> bool:
            Key.compared += 1
            return str.__lt__(self, other)

    made = tree({}, root=(1, ""))
    for number in range(2000):
        made.adopt(Key(f"ns/g{number}"), "ns/root")
    assert Key.compared < 2000 * 15


@pytest.mark.parametrize("parent", ["root", "other", None], ids=["asks for more", "moves", "goes"])
def test_a_choice_is_forgotten_when_a_composite_below_the_root(parent: str | None) -> None:
    made = tree({A: "inner", B: "root"}, root=(1, ""), inner=(1, "root"))
    made.choose("ns/root", [A])
    if parent is None:
        made.remove("ns/inner")
    else:
        made.put(CompositeSpec("ns/inner", 2, f"ns/{parent}"))
    assert made.chosen("ns/root") == frozenset()


def test_a_choice_is_forgotten_when_a_chosen_group_leaves_or_the_root_changes() -> None:
    made = tree({A: "root", B: "root"}, root=(1, ""))
    made.choose("ns/root", [A])
    made.adopt(B, "")
    assert made.chosen("ns/root") == {A}
    made.adopt(A, "")
    assert made.chosen("ns/root") == frozenset()
    made.adopt(A, "ns/root")
    made.choose("ns/root", [A])
    made.put(CompositeSpec("ns/root", 2))
    assert made.chosen("ns/root") == frozenset()


def test_a_tree_that_has_started_is_on_its_own_until_it_starts_anew() -> None:
    made = tree({A: "root"}, root=(1, ""))
    made.choose("ns/root", [A])
    made.start("ns/root")
    assert (made.has_started("ns/root"), made.chosen("ns/root")) == (True, frozenset())
    made.start_anew("ns/root")
    assert not made.has_started("ns/root")


def test_nothing_is_left_of_a_tree_that_has_gone() -> None:
    made = tree({A: "inner"}, root=(1, ""), inner=(1, "root"))
    made.choose("ns/root", [A])
    made.adopt(A, "")
    made.remove("ns/inner")
    made.remove("ns/root")
    assert not made.parents
    assert [getattr(made, name) for name in vars(made)] == [{}, {}, {}, {}, {}, set()]
