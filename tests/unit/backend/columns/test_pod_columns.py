"""Pods by class: numbers last as long as their kinds are on nodes, and those of kinds that are gone are given up at last."""

from __future__ import annotations

import pytest

from extender.backend.columns import class_ids
from extender.backend.columns.pod_columns import PodColumns
from extender.framework.columnar import PodClass
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from tests.unit.backend.objects import a_node, a_pod

NODES, PODS = 8, 5


@pytest.fixture(autouse=True)
def _crowded_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_ids, "CROWDED", 4)


def node_with(name: str, *indices: str) -> NodeInfo:
    """One pod for each index, with a label of its own, as those of a StatefulSet."""
    return NodeInfo(a_node(name), [PodInfo(a_pod(index, name, labels={"index": index})) for index in indices])


class Selector:
    """Of pods of node n0's first index; counts how many kinds it was asked about."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, kind: PodClass) -> bool:
        self.asked += 1
        return kind.pod.labels["index"] == "n0-0"


def full() -> list[NodeInfo]:
    return [node_with(f"n{node}", *(f"n{node}-{pod}" for pod in range(PODS))) for node in range(NODES)]


def test_after_a_first_look_at_many_kinds_a_selector_is_asked_about_the_new_ones_alone() -> None:
    nodes, selector = full(), Selector()
    columns = PodColumns.build(nodes)
    assert columns.matching("key", selector).tolist() == [1] + [0] * 7
    nodes[3] = node_with("n3", "new")
    assert columns.updated(nodes, [3]).matching("key", selector).tolist() == [1] + [0] * 7
    assert selector.asked == NODES * PODS + 1


def test_kinds_that_are_gone_do_not_pile_up() -> None:
    """They are given up all at once, and not at each change from then on."""
    nodes, selector = full(), Selector()
    columns = PodColumns.build(nodes)
    numberings = [columns.classes]
    for round_ in range(NODES * PODS * 20):
        nodes[3] = node_with("n3", f"new-{round_}")
        columns = columns.updated(nodes, [3])
        assert columns.bound <= 5 * NODES * PODS
        if columns.classes is not numberings[-1]:
            numberings.append(columns.classes)
    assert 1 < len(numberings) < 10
    assert columns.matching("key", selector).tolist() == [1] + [0] * 7
    assert columns.matching(None, lambda kind: True).tolist() == [PODS, PODS, PODS, 1, PODS, PODS, PODS, PODS]
