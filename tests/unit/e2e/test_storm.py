"""Who waits although he fits, by the arithmetic that storms are judged with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.storm import waits_in_vain

GANG, APART = "scheduling.x-k8s.io/pod-group", {"podAntiAffinity": {}}


def node(name: str, cpu: int, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": {"cpu": str(cpu)}}}


def pod(name: str, cpu: int, gang: str = "", on: str = "", **spec: Any) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": str(cpu)}}}
    metadata = {"name": name, "namespace": "default", "uid": name, "labels": {GANG: gang} if gang else {}}
    return {"metadata": metadata, "spec": {"containers": [container], "nodeName": on, **spec}}


def unheard(pod: dict[str, Any]) -> dict[str, Any]:
    message = (
        '0/1 nodes are available: 1 Insufficient cpu. preemption: Post "http://127.0.0.1:1/preempt": connection reset'
    )
    return {**pod, "status": {"conditions": [{"type": "PodScheduled", "message": message}]}}


@pytest.mark.parametrize(
    ("pods", "nodes", "in_vain"),
    [
        pytest.param([pod("a", 2)], [node("n", 2)], ["pod default/a"], id="a single pod with room"),
        pytest.param([pod("a", 2), pod("b", 1, on="n")], [node("n", 2)], [], id="with too little of it"),
        pytest.param([pod("a", 2)], [node("n", 2, unschedulable=True)], [], id="on a node that is cordoned"),
        pytest.param([pod("a", 1, "g"), pod("b", 1, "g")], [node("n", 2)], ["default/g"], id="a gang with room"),
        pytest.param([pod("a", 1, "g"), pod("b", 1, "g")], [node("n", 1)], [], id="with room for half of it"),
        pytest.param([pod("a", 1, "g")], [node("n", 9)], [], id="a gang that lacks a member"),
        pytest.param(
            [pod("a", 1, "g"), pod("b", 1, "g", "n")], [node("n", 2)], ["default/g"], id="the last of a gang that began"
        ),
        pytest.param(
            [pod("a", 1, "g", affinity=APART), pod("b", 1, "g", affinity=APART)],
            [node("n", 9)],
            [],
            id="members that cannot share the one node",
        ),
        pytest.param(
            [pod("a", 2, priority=10), pod("b", 2, on="n")], [node("n", 2)], ["pod default/a"], id="who could preempt"
        ),
        pytest.param(
            [unheard(pod("a", 2, priority=10)), pod("b", 2, on="n")],
            [node("n", 2)],
            [],
            id="who preempts, and was not heard",
        ),
        pytest.param(
            [pod("a", 2), pod("b", 2, on="n", priority=10)], [node("n", 2)], [], id="who is less than who runs"
        ),
        pytest.param([pod("a", 1, "unknown")], [node("n", 9)], [], id="a gang without its PodGroup"),
    ],
)
def test_who_waits_in_vain(pods: list[Any], nodes: list[Any], in_vain: list[str]) -> None:
    found = waits_in_vain(pods, nodes, {"default/g": 2})
    assert [line.partition(":")[0] for line in found] == in_vain
