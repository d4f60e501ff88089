"""Victims for a gang in slices: whole slices come free, each in one domain, where they cost least."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extender.config.types import TopologyLevel
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner import NoPlacement, Request, Sliced, Topology
from extender.plugins.coscheduling.preemption.planning import VictimPlan
from tests.objects import HOSTNAME, NodeBuilder, PodBuilder, make_node, make_pdb, make_pod
from tests.unit.plugins.coscheduling.preemption.conftest import Cluster

LEVELS = (TopologyLevel("block", "example.com/block"), TopologyLevel("rack", "example.com/rack"))
BLOCKS = {"a": "x", "b": "x", "c": "y", "d": "y"}
PROTECTED = {"app": "protected"}
Racks = Mapping[str, Sequence[int]]


def node(name: str) -> NodeBuilder:
    """Room for one member; its rack is the first letter of its name."""
    made = make_node().name(name).capacity(cpu=10).label(HOSTNAME, name)
    return made.label(LEVELS[0].key, BLOCKS[name[0]]).label(LEVELS[1].key, name[0])


def running(on: str, number: int, priority: int = 0) -> list[PodBuilder]:
    return [make_pod().name(f"{on}-{i}").node(on).req(cpu="1").priority(priority) for i in range(number)]


def cluster_of(racks: Racks, pods: Sequence[PodBuilder] = (), gangs: Mapping[str, int] | None = None) -> Cluster:
    """racks: how many pods run on each node of a rack."""
    counts = {f"{rack}{i}": number for rack, numbers in racks.items() for i, number in enumerate(numbers)}
    small = [pod for name, number in counts.items() for pod in running(name, number)]
    return Cluster(map(node, counts), [*small, *pods], gangs)


def gang(count: int, *sizes: tuple[str, int], ranked: bool = True) -> tuple[list[PodBuilder], Request]:
    members = [make_pod().name(f"m{i:02}").priority(100).req(cpu="10") for i in range(count)]
    infos = [PodInfo(member.obj()) for member in members]
    uids = [info.pod.uid for info in infos]
    ranks = {uid: rank for rank, uid in enumerate(uids)} if ranked else {}
    sliced = Sliced(frozenset(uids), sizes or (("rack", 2),), ranks)
    return members, Request(infos, count, topology=Topology(LEVELS), sliced=(sliced,), clock=lambda: 0.0)


def cleared(found: VictimPlan | NoPlacement) -> str:
    """The nodes that have lost pods."""
    assert isinstance(found, VictimPlan), found
    return " ".join(sorted({victim.node_name for victim in found.victims}))


def whole(found: VictimPlan, size: int) -> bool:
    """Whether each slice, by rank, is in one rack."""
    names = sorted(found.placement.nodes)
    racks = [found.placement.nodes[name][0] for name in names]
    return all(len(set(racks[at : at + size])) == 1 for at in range(0, len(racks), size))


@pytest.mark.parametrize(
    ("racks", "count", "sizes", "expected"),
    [
        pytest.param({"a": [1, 1], "b": [2, 2]}, 2, [("rack", 2)], "a0 a1", id="the rack with the fewest victims"),
        pytest.param(
            {"a": [1, 9], "b": [1, 9], "c": [4, 4]}, 2, [("rack", 2)], "c0 c1", id="no rack for its cheapest node alone"
        ),
        pytest.param(
            {"a": [1, 1, 1, 4], "b": [2, 2, 2, 2]}, 4, [("rack", 4)], "a0 a1 a2 a3", id="a rack by its nodes together"
        ),
        pytest.param(
            {"a": [3, 3], "b": [0, 5], "c": [4, 4]}, 2, [("rack", 2)], "b1", id="what is free in a rack counts"
        ),
        pytest.param(
            {"a": [1, 1, 9], "b": [5, 1, 1], "c": [2, 2]},
            4,
            [("rack", 2)],
            "a0 a1 b1 b2",
            id="a slice in each of two racks, and no more of either",
        ),
        pytest.param(
            {"a": [1, 1, 2, 2], "b": [3, 3, 3, 3]}, 4, [("rack", 2)], "a0 a1 a2 a3", id="two slices in one rack"
        ),
        pytest.param(
            {"a": [1, 1], "b": [5, 5], "c": [2, 2], "d": [3, 3]},
            4,
            [("block", 4), ("rack", 2)],
            "c0 c1 d0 d1",
            id="slices in slices: the block that is cheaper together",
        ),
        pytest.param(
            {"a": [1, 1], "b": [4, 4], "c": [3, 3], "d": [3, 3]},
            4,
            [("block", 4), ("rack", 2)],
            "a0 a1 b0 b1",
            id="slices in slices: a block by its racks together",
        ),
        pytest.param(
            {"a": [1, 1, 1], "b": [2, 2, 2]}, 3, [("rack", 0)], "a0 a1 a2", id="all members in one rack, without a size"
        ),
    ],
)
@pytest.mark.parametrize("ranked", [True, False], ids=["by rank", "without ranks"])
def test_the_victims_of_whole_slices(
    racks: Racks, count: int, sizes: list[tuple[str, int]], expected: str, ranked: bool
) -> None:
    members, request = gang(count, *sizes, ranked=ranked)
    assert cleared(cluster_of(racks).plan(members, request=request)) == expected


def test_a_rack_that_costs_priority_or_budgets_is_left_alone() -> None:
    members, request = gang(2)
    for protected in (False, True):
        pods = [pod.labels(PROTECTED) for pod in running("a1", 1, priority=0 if protected else 7)]
        cluster = cluster_of({"a": [1, 0], "b": [3, 3]}, pods)
        pdb = make_pdb().name("pdb").match(PROTECTED).disruptions_allowed(0).obj()
        assert cleared(cluster.plan(members, request=request, pdbs=[pdb] if protected else [])) == "b0 b1"


def test_a_running_gang_goes_whole_or_not_at_all() -> None:
    """One of its members is in the rack that has the fewest pods, the other elsewhere."""
    members, request = gang(2)
    pods = [make_pod().name(f"g{i}").node(at).req(cpu="1").pod_group("g") for i, at in enumerate(("a1", "d1"))]
    cluster = cluster_of({"a": [1, 0], "b": [2, 2], "d": [9, 9]}, pods, {"g": 2})
    assert cleared(cluster.plan(members, request=request)) == "b0 b1"


def test_nodes_that_take_no_member_are_no_part_of_a_slice() -> None:
    """Rack a has a free one of that kind."""
    members, request = gang(2)
    nodes = [node(name) for name in ("a0", "a2", "b0", "b1")]
    pods = [pod for name, number in (("a0", 1), ("a2", 4), ("b0", 3), ("b1", 3)) for pod in running(name, number)]
    found = Cluster([*nodes, node("a1").taint("dedicated", "x", "NoSchedule")], pods).plan(members, request=request)
    assert cleared(found) == "a0 a2"


def test_no_pod_goes_where_no_slice_comes_free() -> None:
    """Each rack has a node that no eviction helps."""
    members, request = gang(2)
    fixed = [pod for rack in "ab" for pod in running(f"{rack}1", 1, priority=100)]
    assert isinstance(cluster_of({"a": [1, 0], "b": [1, 0]}, fixed).plan(members, request=request), NoPlacement)


def test_counting_slices_spares_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at some of the victims would be one. Pods of no importance are on four nodes, two of which are no slice."""
    asked: list[object] = []

    def counted(*given: Any) -> object:
        asked.append(given)
        return plan(*given)

    plan = planner.plan
    monkeypatch.setattr(planner, "plan", counted)
    members, request = gang(4)
    more_important = [pod for rack in "abcd" for pod in running(f"{rack}1", 1, priority=5)]
    cluster = cluster_of({rack: [1, 0] for rack in "abcd"}, more_important)
    assert cleared(cluster.plan(members, request=request)) == "a0 a1 b0 b1"
    assert len(asked) <= 3


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.lists(st.integers(0, 4), min_size=2, max_size=4), min_size=1, max_size=4
    ),
    st.integers(1, 3),
)
def test_as_few_victims_as_any_choice_of_racks_has(racks: dict[str, list[int]], slices: int) -> None:
    members, request = gang(2 * slices)
    found = cluster_of(racks).plan(members, request=request)
    pairs = [sum(pair) for numbers in racks.values() for pair in _pairs(sorted(numbers))]
    if len(pairs) < slices:
        assert isinstance(found, NoPlacement)
    else:
        assert isinstance(found, VictimPlan)
        assert len(found.victims) == min(map(sum, combinations(pairs, slices)))
        assert whole(found, 2)


def _pairs(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[at : at + 2] for at in range(0, len(numbers) - 1, 2)]
