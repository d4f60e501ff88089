"""Zones in turn, one node of each."""

from __future__ import annotations

import pytest

from extender.api import corev1
from extender.backend.cache.node_tree import NodeTree, zone_key
from tests.unit.backend.objects import a_node

BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"


def a_tree(*nodes: corev1.Node) -> NodeTree:
    tree = NodeTree()
    for node in nodes:
        tree.add_node(node)
    return tree


@pytest.mark.parametrize(
    ("node", "key"),
    [
        pytest.param(a_node("n"), "", id="no labels"),
        pytest.param(a_node("n", zone="z"), ":\x00:z", id="a zone alone"),
        pytest.param(a_node("n", region="r"), "r:\x00:", id="a region alone"),
        pytest.param(a_node("n", region="r", zone="z"), "r:\x00:z", id="both"),
        pytest.param(a_node("n", zone="z", labels={BETA_ZONE: "old"}), ":\x00:old", id="the beta zone wins"),
        pytest.param(
            a_node("n", region="r", zone="z", labels={BETA_REGION: "old"}), "old:\x00:z", id="each label for itself"
        ),
    ],
)
def test_zone_key(node: corev1.Node, key: str) -> None:
    assert zone_key(node) == key


@pytest.mark.parametrize(
    ("zones", "order"),
    [
        pytest.param([], [], id="empty"),
        pytest.param(["", "", ""], [0, 1, 2], id="no zones: order of arrival"),
        pytest.param(["a", "a", "b", "b"], [0, 2, 1, 3], id="two zones in turn"),
        pytest.param(["b", "a", "b", "a"], [0, 1, 2, 3], id="zones in order of arrival, not of name"),
        pytest.param(["a", "a", "a", "b"], [0, 3, 1, 2], id="a short zone drops out"),
        pytest.param(["a", "b", "c", "a", "c", "a"], [0, 1, 2, 3, 4, 5], id="three zones of unequal size"),
        pytest.param(["a", "", "a", ""], [0, 1, 2, 3], id="nodes without a zone are a zone"),
    ],
)
def test_list_takes_one_of_each_zone_in_turn(zones: list[str], order: list[int]) -> None:
    tree = a_tree(*(a_node(f"n{i}", zone=zone) for i, zone in enumerate(zones)))
    assert tree.list() == [f"n{i}" for i in order]
    assert len(tree) == len(zones)


def test_a_node_that_is_added_again_keeps_its_place_and_the_version() -> None:
    tree = a_tree(a_node("n1"), a_node("n2"))
    version = tree.version
    tree.add_node(a_node("n1"))
    assert (tree.list(), tree.version) == (["n1", "n2"], version)


def test_a_node_that_changes_its_zone_goes_to_the_end_of_the_new_one() -> None:
    tree = a_tree(a_node("n1", zone="a"), a_node("n2", zone="a"), a_node("n3", zone="b"))
    tree.add_node(a_node("n1", zone="b"))
    assert tree.list() == ["n2", "n3", "n1"]


def test_an_emptied_zone_loses_its_turn() -> None:
    tree = a_tree(a_node("n1", zone="a"), a_node("n2", zone="b"))
    assert tree.remove_node("n1")
    tree.add_node(a_node("n3", zone="a"))
    assert tree.list() == ["n2", "n3"]


def test_removing_an_unknown_node_changes_nothing() -> None:
    tree = a_tree(a_node("n1"))
    version = tree.version
    assert not tree.remove_node("n9")
    assert "n1" in tree
    assert tree.version == version
