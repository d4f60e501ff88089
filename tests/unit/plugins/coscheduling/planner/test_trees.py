"""Which groups of a tree the planner chooses, in which domains, and what it says where too few fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from extender.api import corev1
from extender.config.types import TopologyLevel
from extender.framework.hypothetical import snapshot_of
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner import (
    Branch,
    Cause,
    Leaf,
    NoPlacement,
    Placement,
    Request,
    Sliced,
    Topology,
    plan,
)
from extender.plugins.coscheduling.planner.request import OutOfTimeError
from extender.plugins.coscheduling.planner.trees import least_needed, plan_tree
from tests.fakes.planning import planning_judge
from tests.objects import make_node, make_pod

JUDGE = planning_judge()
RACK = Topology((TopologyLevel("rack", "rack"),), required="rack")
ZONE = Topology((TopologyLevel("zone", "zone"),), required="zone")


def node(name: str, cpu: int, zone: str = "z", rack: str = "") -> NodeInfo:
    made = make_node().name(name).label("zone", zone).label("rack", rack or name)
    return NodeInfo(made.capacity(cpu=cpu, memory="8Gi", pods=110).obj())


def pods(name: str, count: int, cpu: int = 1) -> list[PodInfo]:
    return [PodInfo(_pod(f"{name}-{number}", cpu)) for number in range(count)]


def _pod(name: str, cpu: int) -> corev1.Pod:
    return make_pod().name(name).namespace("default").uid(name).req(cpu=cpu).obj()


def leaf(name: str, members: Iterable[PodInfo], needed: int, topology: Topology = RACK) -> Leaf:
    return Leaf(name, frozenset(info.pod.uid for info in members), needed, topology=topology)


def groups(**sizes: int) -> tuple[list[PodInfo], list[Leaf]]:
    """Each of so many members, all of them needed."""
    members = {name: pods(name, size) for name, size in sizes.items()}
    leaves = [leaf(name, infos, len(infos)) for name, infos in members.items()]
    return [info for infos in members.values() for info in infos], leaves


def ask(nodes: Sequence[NodeInfo], members: Sequence[PodInfo], tree: Branch) -> Placement | NoPlacement:
    return plan(nodes, Request(members, least_needed(tree), tree=tree), JUDGE)


def started(found: Placement | NoPlacement) -> dict[str, set[str]]:
    """Group -> nodes."""
    assert isinstance(found, Placement), found
    result: dict[str, set[str]] = {}
    for uid, name in found.nodes.items():
        result.setdefault(uid.rpartition("-")[0], set()).add(name)
    return result


def test_as_many_groups_as_fit_are_chosen() -> None:
    members, leaves = groups(a=2, b=2, c=2)
    nodes = [node("n1", 2), node("n2", 2)]
    assert started(ask(nodes, members, Branch("p", leaves, 1))) == {"a": {"n1"}, "b": {"n2"}}


def test_too_few_are_none_and_the_first_that_does_not_fit_is_named() -> None:
    members, leaves = groups(a=2, b=2, c=2)
    found = ask([node("n1", 2), node("n2", 1)], members, Branch("p", leaves, 2))
    assert isinstance(found, NoPlacement)
    assert found.reason == (
        "1 of 3 groups of CompositePodGroup p fit, 2 are needed; PodGroup b does not: no single rack takes it: Insufficient cpu"
    )
    assert (found.composite, found.placed, found.needed) == ("p", 2, 4)


def test_a_group_that_is_in_the_way_of_more_is_placed_after_them() -> None:
    """In order the first takes the only rack that holds the second."""
    members = [*pods("a", 2), *pods("b", 4)]
    leaves = [leaf("a", members[:2], 2, Topology()), leaf("b", members[2:], 4)]
    nodes = [node("n1", 4), node("n2", 2)]
    assert started(ask(nodes, members, Branch("p", leaves, 2))) == {"a": {"n2"}, "b": {"n1"}}


def test_groups_that_were_chosen_before_come_first() -> None:
    """The start of b was cut short: one of its members is on n1 already."""
    members, leaves = groups(a=2, b=1, c=2)
    leaves[1] = replace(leaves[1], topology=Topology(), placed=["n1"])
    nodes = [node("n1", 2)]
    assert started(ask(nodes, members, Branch("p", leaves, 1))) == {"b": {"n1"}}


def test_no_group_comes_before_those_for_having_found_no_room_beside_them() -> None:
    """Without b both others fit; b would stay a fraction."""
    members, leaves = groups(a=2, b=2, c=2)
    leaves[1] = replace(leaves[1], topology=Topology(), placed=["n1"])
    found = ask([node("n1", 2), node("n2", 2)], members, Branch("p", leaves, 2))
    assert sorted(started(found)) == ["a", "b"]
    inner = Branch("inner", leaves[1:2], 1, placed=["n1"])
    assert sorted(started(ask([node("n1", 2)], members, Branch("p", [leaves[0], inner], 1)))) == ["b"]


def test_all_groups_of_a_composite_are_in_one_domain_the_one_that_takes_most() -> None:
    members, leaves = groups(a=2, b=2, c=2)
    nodes = [node("x1", 2, "x"), node("y1", 2, "y"), node("y2", 2, "y"), node("z1", 2, "z")]
    assert started(ask(nodes, members, Branch("p", leaves, 1, ZONE))) == {"a": {"y1"}, "b": {"y2"}}


def test_the_domain_of_members_that_run_is_the_only_one() -> None:
    members, leaves = groups(a=2)
    nodes = [node("x1", 2, "x"), node("y1", 1, "y")]
    found = ask(nodes, members, Branch("p", leaves, 1, ZONE, placed=["y1"]))
    assert isinstance(found, NoPlacement)
    assert found.reason == "no single zone takes it: no single rack takes it: Insufficient cpu"


def test_composites_are_nested() -> None:
    members, leaves = groups(a=2, b=2, c=2, d=2)
    inner = Branch("inner", leaves[:3], 2)
    nodes = [*(node(f"x{n}", 2, "x") for n in range(2)), *(node(f"y{n}", 2, "y") for n in range(3))]
    found = ask(nodes, members, Branch("outer", [inner, leaves[3]], 2, ZONE))
    assert sorted(started(found)) == ["a", "b", "d"]
    assert all(name.startswith("y") for names in started(found).values() for name in names)


def test_members_beyond_the_minimum_keep_no_group_out_and_come_last() -> None:
    """Whole, the first group would take both racks."""
    members = [*pods("a", 4), *pods("b", 2)]
    leaves = [leaf("a", members[:4], 2, Topology()), leaf("b", members[4:], 2)]
    nodes = [node("n1", 3), node("n2", 2)]
    found = started(ask(nodes, members, Branch("p", leaves, 2)))
    assert sorted(found) == ["a", "b"]
    placed = ask(nodes, members, Branch("p", leaves, 2))
    assert isinstance(placed, Placement)
    assert len(placed.nodes) == 5


def test_a_group_without_enough_members_does_not_count() -> None:
    members, leaves = groups(a=1)
    short = Leaf("b", frozenset(), 2)
    found = ask([node("n1", 9)], members, Branch("p", [*leaves, short], 2))
    assert isinstance(found, NoPlacement)
    assert found.reason.endswith("PodGroup b does not: not enough members")
    assert started(ask([node("n1", 9)], members, Branch("p", [*leaves, short], 1))) == {"a": {"n1"}}


def test_a_group_that_lacks_nothing_counts() -> None:
    members, leaves = groups(a=1)
    runs = Leaf("b", frozenset(), 0)
    assert started(ask([node("n1", 1)], members, Branch("p", [runs, *leaves], 2))) == {"a": {"n1"}}


def test_more_groups_are_asked_for_than_there_are() -> None:
    members, leaves = groups(a=1)
    found = ask([node("n1", 9)], members, Branch("p", leaves, 2))
    assert isinstance(found, NoPlacement)
    assert found.cause is Cause.MEMBERS
    assert found.reason == "1 of 1 groups of CompositePodGroup p fit, 2 are needed: there are no more"


def test_the_one_zone_of_many_that_takes_the_composite_is_found() -> None:
    """Each of the others takes one of the groups, and comes before it by name."""
    members, leaves = groups(a=2, b=2)
    nodes = [node(f"a{number}", 3, f"a{number:02}") for number in range(40)]
    nodes += [node("z1", 2, "z"), node("z2", 2, "z")]
    assert started(ask(nodes, members, Branch("p", leaves, 2, ZONE))) == {"a": {"z1"}, "b": {"z2"}}


def test_the_one_zone_that_a_composites_members_select_is_found_among_larger_ones() -> None:
    members = [
        PodInfo(make_pod().name(f"{name}-0").uid(f"{name}-0").req(cpu=1).node_selector({"gpu": "yes"}).obj())
        for name in "ab"
    ]
    leaves = [leaf(name, members[i : i + 1], 1) for i, name in enumerate("ab")]
    nodes = [node(f"a{number}", 64, f"a{number:02}") for number in range(40)]
    gpu = make_node().name("z1").label("zone", "z").label("rack", "z1").label("gpu", "yes")
    nodes.append(NodeInfo(gpu.capacity(cpu=2, memory="8Gi", pods=110).obj()))
    assert started(ask(nodes, members, Branch("p", leaves, 2, ZONE))) == {"a": {"z1"}, "b": {"z1"}}


def test_a_composite_that_fits_in_no_zone_is_told_of_the_one_that_comes_nearest() -> None:
    members, leaves = groups(a=2, b=2)
    nodes = [node(f"a{number}", 1, f"a{number:02}") for number in range(40)] + [node("z1", 3, "z")]
    found = ask(nodes, members, Branch("p", leaves, 2, ZONE))
    assert isinstance(found, NoPlacement)
    assert "no single zone takes it: 1 of 2 groups of CompositePodGroup p fit, 2 are needed" in found.reason


def test_what_was_found_until_time_ran_out_is_taken() -> None:
    """The second zone is not looked at any more; it would take both groups, as the first seems to by the sum of its room."""
    members, leaves = groups(a=2, b=2)
    nodes = [node("x1", 3, "x"), node("x2", 1, "x"), node("y1", 2, "y"), node("y2", 2, "y")]
    request = Request(members, 2, tree=Branch("p", leaves, 1, ZONE))

    def plan_one(part: Request) -> Placement | NoPlacement:
        if any("y1" in names for names in part.allowed.values()):
            raise OutOfTimeError
        return plan(nodes, part, JUDGE)

    assert started(plan_tree(snapshot_of(nodes), request, plan_one, JUDGE)) == {"a": {"x1"}}
    assert sorted(started(plan(nodes, request, JUDGE))) == ["a", "b"]
    none = plan(nodes, Request(members, 2, tree=Branch("p", leaves, 1, ZONE), budget_seconds=-1.0), JUDGE)
    assert isinstance(none, NoPlacement)
    assert (none.cause, none.composite) == (Cause.BUDGET, "p")


@pytest.mark.parametrize(
    ("tree", "needed"),
    [
        pytest.param(Leaf("a", frozenset("x"), 3), 3, id="a group"),
        pytest.param(Branch("p", [Leaf("a", frozenset(), 3), Leaf("b", frozenset(), 1)], 1), 1, id="the smallest"),
        pytest.param(Branch("p", [Leaf("a", frozenset(), 3), Leaf("b", frozenset(), 1)], 2), 4, id="both"),
        pytest.param(
            Branch("p", [Branch("q", [Leaf("a", frozenset(), 2)], 1), Leaf("b", frozenset(), 5)], 1), 2, id="nested"
        ),
    ],
)
def test_how_many_members_are_needed_whichever_groups_are_chosen(tree: Leaf | Branch, needed: int) -> None:
    assert least_needed(tree) == needed


def test_a_group_of_a_tree_is_in_slices_of_its_own_and_members_that_come_after_them_are_in_them_too() -> None:
    """minCount is three of four: the fourth completes the second slice."""
    members, leaves = pods("a", 4), []
    leaves.append(leaf("a", members, 3, ZONE))
    ranks = {f"a-{number}": number for number in range(4)}
    sliced = [Sliced(frozenset(ranks), (("rack", 2),), ranks)]
    levels = (TopologyLevel("zone", "zone"), TopologyLevel("rack", "rack"))
    leaves[0] = replace(leaves[0], topology=Topology(levels, required="zone"))
    nodes = [node("x1", 3, "x"), node("y1", 2, "y"), node("y2", 2, "y"), node("y3", 1, "y")]
    tree = Branch("p", leaves, 1)
    found = plan(nodes, Request(members, 3, tree=tree, sliced=sliced, topology=Topology(levels)), JUDGE)
    assert isinstance(found, Placement), found
    assert [found.nodes[f"a-{number}"] for number in range(4)] == ["y1", "y1", "y2", "y2"]


@pytest.mark.parametrize(
    ("room", "found"),
    [
        pytest.param("z1", True, id="there is room in the zone of the composite's members"),
        pytest.param("z2", False, id="there is room in another zone alone"),
    ],
)
def test_one_more_member_of_a_tree_that_runs_goes_where_its_composite_is(room: str, found: bool) -> None:
    """Its group and the others of the tree need no member."""
    extra = pods("a", 2)
    running = replace(leaf("a", extra, 0, Topology()), placed=("n1",))
    inner = Branch("inner", [running], 1, ZONE, placed=("n1",))
    tree = Branch("top", [inner, leaf("b", (), 0)], 2)
    request = Request(extra, 0, tree=tree).for_one_of(extra[:1])
    assert (request.needed, request.members) == (1, extra[:1])
    nodes = [node("n1", 0, "z1"), node("n2", int(room == "z1"), "z1"), node("n3", int(room == "z2"), "z2")]
    assert isinstance(plan(nodes, request, JUDGE), Placement) == found


def test_for_one_of_no_members_nothing_is_asked() -> None:
    members, leaves = groups(a=2)
    request = Request(members, 2, tree=Branch("top", leaves, 1)).for_one_of([])
    assert (request.needed, request.tree) == (0, None)
