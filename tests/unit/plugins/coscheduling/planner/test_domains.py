"""Which nodes share a domain, how domains are named, and in which of them a gang is tried."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from extender.config.types import TopologyLevel
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.planner import Request, Topology
from extender.plugins.coscheduling.planner.domains import (
    DomainCache,
    Domains,
    Scope,
    UnknownLevelError,
    coarse_groups,
    level_of,
    nodes_by_value,
)
from tests.unit.plugins.coscheduling.planning import LEVELS, RACK, node, topology

NODES = [
    node("a1", zone="a", rack="r1").info(),
    node("a2", zone="a", rack="r2").info(),
    node("b1", zone="b", rack="r1").info(),
    node("no-rack", zone="b").info(),
    node("plain").info(),
]
SNAPSHOT = HypotheticalSnapshot(NODES)


def test_racks_of_one_name_in_two_zones_are_two_domains() -> None:
    domains = Domains(SNAPSHOT, LEVELS)
    assert domains.names == [["a", "b"], ["a/r1", "a/r2", "b/r1"]]
    assert [ids.tolist() for ids in domains.ids] == [[0, 0, 1, 1, -1], [0, 1, 2, -1, -1]]


def test_sums_count_no_node_without_the_label() -> None:
    domains, amounts = Domains(SNAPSHOT, LEVELS), np.array([1, 2, 4, 8, 16])
    assert domains.sums(0, amounts).tolist() == [3, 12]
    assert domains.sums(1, amounts, among=np.array([1, 3])).tolist() == [0, 2, 0]
    assert domains.parent_sums(0, amounts).tolist() == [31, 31], "the widest level is inside of the cluster"
    assert domains.parent_sums(1, amounts).tolist() == [3, 3, 12]


@pytest.mark.parametrize(
    ("at", "name"),
    [
        pytest.param([0], "a/r1", id="one node: its rack"),
        pytest.param([0, 1], "a", id="two racks of a zone"),
        pytest.param([2, 3], "b", id="one of them has no rack"),
        pytest.param([0, 2], "", id="two zones"),
        pytest.param([4], "", id="no label at all"),
    ],
)
def test_the_narrowest_domain_of_some_nodes(at: Sequence[int], name: str) -> None:
    assert Domains(SNAPSHOT, LEVELS).narrowest_with(at) == name


@pytest.mark.parametrize(
    ("name", "index"),
    [
        pytest.param("rack", 1, id="by its name"),
        pytest.param(RACK, 1, id="by its label"),
        pytest.param("", None, id="none is asked for"),
    ],
)
def test_how_a_level_is_named(name: str, index: int | None) -> None:
    assert level_of(topology(), name) == index


@pytest.mark.parametrize(
    ("configured", "has"),
    [
        pytest.param(topology().levels, "has the levels zone, rack", id="several"),
        pytest.param(topology().levels[1:], "has the level rack", id="one"),
        pytest.param((), "has no levels", id="none"),
    ],
)
def test_a_level_that_is_not_configured_is_told_by_its_name(configured: tuple[TopologyLevel, ...], has: str) -> None:
    told = f'topology level "row" is not configured: the key `topology` {has}$'
    with pytest.raises(UnknownLevelError, match=told):
        level_of(Topology(configured), "row")


def scope(**asked: object) -> Scope:
    placed = asked.pop("placed", ())
    return Scope(SNAPSHOT, Request((), 0, topology=topology(**asked), placed=placed))  # type: ignore[arg-type]


def tried(scope: Scope, level: int, capacity: Sequence[int], count: int) -> list[list[str]]:
    found = scope.holding(level, [np.array(capacity)], [count])
    return [[scope.node_names[i] for i in at] for at in found]


def test_domains_are_tried_with_the_least_room_first_and_those_too_small_not_at_all() -> None:
    assert tried(scope(), 1, [3, 2, 1, 9, 9], 2) == [["a2"], ["a1"]]


def test_of_domains_with_equal_room_the_one_in_the_fuller_surroundings_comes_first() -> None:
    assert tried(scope(), 1, [2, 2, 2, 0, 0], 2) == [["b1"], ["a1"], ["a2"]]


def test_the_domain_that_the_gang_is_in_already_comes_first_and_is_the_only_one_where_it_is_required() -> None:
    assert tried(scope(placed=["a1"]), 1, [3, 2, 2, 0, 0], 2)[0] == ["a1"]
    assert tried(scope(required="zone", placed=["a1"]), 1, [3, 2, 2, 0, 0], 2) == [["a1"], ["a2"]]


def test_levels_are_tried_from_the_narrowest_to_the_required_one() -> None:
    assert list(scope().levels_to_try()) == [1, 0]
    assert list(scope(preferred="zone").levels_to_try()) == [0]
    assert list(scope(required="rack").levels_to_try()) == [1]


def test_a_label_of_each_node_s_own_groups_no_nodes() -> None:
    many = HypotheticalSnapshot([node(f"n{i}", zone="ab"[i % 2]).info() for i in range(20)])
    key = LEVELS[0].key
    assert [mask.sum() for mask in nodes_by_value(many, key)] == [10, 10]
    assert nodes_by_value(many, "kubernetes.io/hostname") == []
    assert coarse_groups(many, ["kubernetes.io/hostname"]).max() == 0
    assert len(set(coarse_groups(many, [key]).tolist())) == 2


def test_of_a_label_of_which_most_values_are_one_node_s_the_others_are_told_apart() -> None:
    """Ten zones of fifteen nodes, five of them of one node."""
    some = HypotheticalSnapshot([node(f"n{i:02}", zone=f"z{i // 2 if i < 10 else i - 5}").info() for i in range(15)])
    key = LEVELS[0].key
    assert coarse_groups(some, [key]).tolist() == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0, 0, 0, 0, 0]
    assert [np.flatnonzero(mask).tolist() for mask in nodes_by_value(some, key)] == [
        [2 * i, 2 * i + 1] for i in range(5)
    ]


class Generations(HypotheticalSnapshot):
    def __init__(self, nodes: Sequence[NodeInfo], node_generation: int) -> None:
        super().__init__(nodes)
        self.node_generation = node_generation


def test_domains_are_kept_until_a_node_or_a_label_changes() -> None:
    cache = DomainCache(LEVELS)
    first = cache.of(Generations(NODES, 1))
    assert cache.of(Generations(NODES, 1)) is first
    assert cache.of(Generations(NODES, 2)) is not first
    assert cache.of(Generations(NODES[:2], 2)).names[0] == ["a"], "a node is gone"
