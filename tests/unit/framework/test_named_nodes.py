"""Nodes that are looked up when more is wanted than their names."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.framework.named_nodes import NamedNodes
from extender.framework.node_info import NodeInfo
from tests.objects import make_node


class Snapshot:
    def __init__(self) -> None:
        self.asked: list[Sequence[str]] = []

    def look_up(self, names: Sequence[str]) -> Sequence[NodeInfo]:
        self.asked.append(names)
        return [NodeInfo(make_node().name(name).obj()) for name in names]


def test_names_cost_no_look() -> None:
    snapshot = Snapshot()
    nodes = NamedNodes(["a", "b"], snapshot.look_up)
    assert (nodes.names, len(nodes), snapshot.asked) == (["a", "b"], 2, [])


def test_all_that_is_wanted_takes_one_look() -> None:
    snapshot = Snapshot()
    nodes = NamedNodes(["a", "b"], snapshot.look_up)
    assert [node.name for node in nodes] == ["a", "b"]
    assert [nodes[1].name, *(node.name for node in nodes[:1])] == ["b", "a"]
    assert snapshot.asked == [["a", "b"]]


@pytest.mark.parametrize(
    ("allowed", "left"),
    [
        pytest.param({"b"}, ["b"], id="one that is there"),
        pytest.param({"z"}, [], id="one that was not offered"),
        pytest.param({"c", "a", "z"}, ["a", "c"], id="several, in the order of the names"),
        pytest.param(set(), [], id="none"),
    ],
)
def test_those_allowed_are_looked_up_alone(allowed: set[str], left: list[str]) -> None:
    snapshot = Snapshot()
    nodes = NamedNodes(["a", "b", "c"], snapshot.look_up).among(allowed)
    assert [node.name for node in nodes] == left
    assert snapshot.asked == [left]
