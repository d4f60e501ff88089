"""Nodes in the order in which room is made on them for slices. Racks a and b are in one zone, c and d in another."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling.planner import Request
from extender.plugins.coscheduling.planner.slicing.node_order import in_slices
from tests.unit.plugins.coscheduling.planner.slicing.test_layout import racks, sliced
from tests.unit.plugins.coscheduling.planning import gang, member, node, topology

HOLDS = {"a": [1, 1, 1], "b": [2], "c": [1, 1], "d": [1, 1]}
RACKS, NESTED = (("rack", 2),), (("zone", 4), ("rack", 2))


@pytest.mark.parametrize(
    ("sizes", "prices", "expected"),
    [
        pytest.param(RACKS, {}, "b0 a0+a1 c0+c1 d0+d1 a2 x", id="the fewest nodes first, what makes no slice last"),
        pytest.param(RACKS, {"a0": 5, "c1": 1}, "b0 d0+d1 c0+c1 a0+a1 a2 x", id="the cheapest first, both together"),
        pytest.param((("rack", 1),), {}, "a0 a1 a2 b0 c0 c1 d0 d1 x", id="a node that holds two slices is there once"),
        pytest.param(NESTED, {}, "b0+a0+a1 c0+c1+d0+d1 a2 x", id="two racks of one zone together"),
        pytest.param(NESTED, {"b0": 5, "d0": 1}, "c0+c1+d0+d1 a0+a1+b0 a2 x", id="the cheaper zone first"),
        pytest.param((("rack", 3),), {}, "a0+a1+a2 b0 c0 c1 d0 d1 x", id="racks that are too small make no slice"),
        pytest.param((("rack", 0),), {}, "a0 a1 a2 b0 c0 c1 d0 d1 x", id="no size: all four in one rack, none has"),
        pytest.param((("zone", 0),), {}, "a0+a1+a2+b0 c0+c1+d0+d1 x", id="no size: all four in one zone"),
        pytest.param((), {}, None, id="no slices"),
        pytest.param((("cage", 2),), {}, None, id="a level that is not configured"),
    ],
)
def test_the_steps(sizes: tuple[tuple[str, int], ...], prices: Mapping[str, float], expected: str | None) -> None:
    """Each node costs one and what prices says; x is in no rack."""
    nodes, members = [*racks(**HOLDS), node("x", cpu=9).info()], gang(4, member())
    names = [each.name for each in nodes]
    request = Request(members, 4, topology=topology(), sliced=[sliced(members, *sizes)] if sizes else [])
    holds = np.array([*(number for room in HOLDS.values() for number in room), 9])
    steps = in_slices(
        HypotheticalSnapshot(nodes), request, range(len(names)), holds, lambda row: (prices.get(names[row], 0) + 1,)
    )
    found = None if steps is None else " ".join("+".join(names[row] for row in step) for step in steps)
    assert found == expected
