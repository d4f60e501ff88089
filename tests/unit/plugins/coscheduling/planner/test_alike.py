"""Packing by arithmetic: how members that are alike are shared out among nodes, and among domains from wide to narrow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from extender.config.types import Packing
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling.planner.alike import TRIES, fewest, most_even, split
from extender.plugins.coscheduling.planner.domains import Domains
from tests.unit.plugins.coscheduling.planning import LEVELS, gang, member, node, placed, plan, topology


@pytest.mark.parametrize(
    ("capacity", "count", "taken"),
    [
        pytest.param([4, 2, 3], 0, [0, 0, 0], id="no members"),
        pytest.param([4, 2, 3], 2, [0, 2, 0], id="the smallest that holds all"),
        pytest.param([4, 2, 3], 4, [4, 0, 0], id="the only one that holds all"),
        pytest.param([4, 2, 3], 5, [4, 1, 0], id="the largest first, the rest on the smallest that holds it"),
        pytest.param([3, 3, 3], 4, [3, 1, 0], id="ties go to the first"),
        pytest.param([4, 2, 3], 9, [4, 2, 3], id="all of it"),
    ],
)
def test_fewest(capacity: Sequence[int], count: int, taken: Sequence[int]) -> None:
    assert fewest(np.array(capacity), count).tolist() == taken


@pytest.mark.parametrize(
    ("capacity", "count", "taken"),
    [
        pytest.param([4, 2, 3], 0, [0, 0, 0], id="no members"),
        pytest.param([4, 2, 3], 3, [1, 1, 1], id="one each"),
        pytest.param([4, 2, 3], 7, [3, 2, 2], id="what is over goes to the node with the most room"),
        pytest.param([1, 9], 6, [1, 5], id="a full node takes no more"),
        pytest.param([4, 2, 3], 9, [4, 2, 3], id="all of it"),
    ],
)
def test_most_even(capacity: Sequence[int], count: int, taken: Sequence[int]) -> None:
    assert most_even(np.array(capacity), count).tolist() == taken


NODES = [
    node("a1", zone="a", rack="r1").info(),
    node("a2", zone="a", rack="r2").info(),
    node("b1", zone="b", rack="r1").info(),
    node("plain").info(),
]


@pytest.mark.parametrize(
    ("capacity", "count", "taken"),
    [
        pytest.param([2, 2, 3, 9], 3, {2: 3}, id="the smallest zone that holds all, though another has more room"),
        pytest.param([2, 2, 1, 9], 4, {0: 2, 1: 2}, id="both racks of one zone before a second zone"),
        pytest.param([2, 0, 1, 9], 5, {0: 2, 2: 1, 3: 2}, id="nodes without the label come last"),
    ],
)
def test_domains_before_nodes(capacity: Sequence[int], count: int, taken: dict[int, int]) -> None:
    domains = Domains(HypotheticalSnapshot(NODES), LEVELS)
    assert dict(split(domains, Packing.FEWEST_NODES, np.array(capacity), np.arange(4), 0, count)) == taken


def test_a_class_that_is_kept_to_a_node_comes_before_its_like_that_may_go_anywhere() -> None:
    nodes = [node("n1", cpu=1).info(), node("n2", cpu=1).info()]
    assert placed(plan(nodes, gang(2, member()), allowed={"m1": frozenset({"n1"})})) == {"m0": "n2", "m1": "n1"}


@pytest.mark.parametrize("members", [2, 3], ids=["all needed", "one more than is needed"])
def test_racks_that_hold_each_of_two_sizes_and_not_both_are_not_tried(members: int) -> None:
    """More of them than are tried, and all of them come first. Of the others the one with the least room will do."""
    nodes = [node(f"n{i:02}", cpu=4, rack=f"r{i:02}").info() for i in range(TRIES + 8)]
    wanted = [*gang(1, member(3), "big"), *gang(members - 1, member(2), "small")]
    for others in (
        [node("right", cpu=7, rack="r98"), node("roomy", cpu=64, rack="r99")],
        [node("right", cpu=6, rack="r98")],
    ):
        all_ = [*nodes, *(other.info() for other in others)]
        assert set(placed(plan(all_, wanted, 2, topology=topology("rack"))).values()) == {"right"}
