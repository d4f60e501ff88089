"""What differs between the cache and the informers."""

from __future__ import annotations

import pytest

from extender.backend.cache.cache import Cache
from extender.backend.cache.comparer import Difference, compare
from tests.unit.backend.objects import a_node, a_pod


def test_equal_sides_do_not_differ() -> None:
    cache = Cache()
    cache.add_node(a_node("n1"))
    cache.add_pod(a_pod("p", "n1"))
    cache.assume_pod(a_pod("assumed", "n1"))
    pods = [a_pod("p", "n1"), a_pod("pending"), a_pod("done", "n1", phase="Failed")]
    difference = compare(cache.dump(), [a_node("n1")], pods)
    assert not difference
    assert difference.lines() == []


def test_both_directions_are_named_sorted() -> None:
    cache = Cache()
    cache.add_node(a_node("n2"))
    cache.add_pod(a_pod("old", "n2"))
    cache.add_pod(a_pod("on-ghost", "n9"))
    pods = [a_pod("b", "n1"), a_pod("a", "n1"), a_pod("on-ghost", "n9"), a_pod("waits", "n1")]
    difference = compare(cache.dump(), [a_node("n1")], pods, waiting=[a_pod("waits")])
    assert difference == Difference(("n1",), ("n2",), ("default/a", "default/b"), ("default/old",))
    assert difference.lines() == [
        "cache mismatch nodes missed=['n1'] redundant=['n2']",
        "cache mismatch pods missed=['default/a', 'default/b'] redundant=['default/old']",
    ]


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        pytest.param(Difference(missed_nodes=("n",)), "nodes missed=['n'] redundant=[]", id="a node that was missed"),
        pytest.param(Difference(redundant_nodes=("n",)), "nodes missed=[] redundant=['n']", id="a node too many"),
        pytest.param(Difference(missed_pods=("p",)), "pods missed=['p'] redundant=[]", id="a pod that was missed"),
        pytest.param(Difference(redundant_pods=("p",)), "pods missed=[] redundant=['p']", id="a pod too many"),
    ],
)
def test_each_kind_alone_is_a_difference(difference: Difference, said: str) -> None:
    assert difference
    assert difference.lines() == [f"cache mismatch {said}"]
