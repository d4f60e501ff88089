"""What a node must still be when its pod is bound: the API server binds to any node that is named, even to one that is gone."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from extender.api import corev1
from extender.plugins.coscheduling.extension_points.preflight import lacks_room, preflight
from tests.objects import NodeBuilder, PodBuilder, make_node, make_pod
from tests.unit.plugins.coscheduling.conftest import Snapshot

POD = make_pod().name("p").uid("p").node("n").req(cpu="1")
NODE = make_node().name("n").capacity(cpu="4", memory="8Gi", pods="110")
FOR_TWO = make_node().name("n").capacity(cpu="4", memory="8Gi", pods="2")
NOT_READY = "node.kubernetes.io/not-ready"


@pytest.mark.parametrize(
    ("node", "refusal"),
    [
        pytest.param(NODE, "", id="one that takes the pod"),
        pytest.param(NODE.condition("Ready", "True"), "", id="ready"),
        pytest.param(
            NODE.condition("MemoryPressure", "False"), "", id="one that says nothing of being ready counts as it"
        ),
        pytest.param(NODE.condition("Ready", "False"), "is not ready", id="not ready: its kubelet has said so"),
        pytest.param(NODE.condition("Ready", "Unknown"), "is not ready", id="unknown: its kubelet is silent"),
        pytest.param(NODE.unschedulable(), "is unschedulable", id="cordoned"),
        pytest.param(NODE.terminating(), "not found", id="on its way out"),
        pytest.param(NODE.taint("gpu"), "has an untolerated taint gpu", id="tainted NoSchedule"),
        pytest.param(
            NODE.taint("gpu", effect="NoExecute"),
            "has an untolerated taint gpu",
            id="tainted NoExecute: it would go again",
        ),
        pytest.param(NODE.taint("gpu", effect="PreferNoSchedule"), "", id="PreferNoSchedule keeps no pod off"),
    ],
)
def test_a_node_that_changed_after_the_plan(node: NodeBuilder, refusal: str) -> None:
    status = preflight(POD.obj(), "n", Snapshot([node.obj()], [POD.obj()]))
    assert status.message == (f'node "n" {refusal}' if refusal else "")
    assert status.success is (not refusal)
    assert not lacks_room(status)


@pytest.mark.parametrize(
    ("pod", "node"),
    [
        pytest.param(POD.toleration("gpu", operator="Exists"), NODE.taint("gpu"), id="the taint"),
        pytest.param(
            POD.toleration(NOT_READY, operator="Exists", effect="NoSchedule"),
            NODE.condition("Ready", "False"),
            id="nodes that are not ready",
        ),
        pytest.param(
            POD.toleration("node.kubernetes.io/unschedulable", operator="Exists"), NODE.unschedulable(), id="cordons"
        ),
        pytest.param(
            POD.toleration(operator="Exists"),
            NODE.unschedulable().condition("Ready", "False").taint("gpu", effect="NoExecute"),
            id="everything",
        ),
    ],
)
def test_a_pod_that_tolerates_it_is_bound(pod: PodBuilder, node: NodeBuilder) -> None:
    assert preflight(pod.obj(), "n", Snapshot([node.obj()], [pod.obj()])).success


def test_a_toleration_of_another_taint_does_not_count() -> None:
    pod = POD.toleration("ssd", operator="Exists").toleration("gpu", operator="Exists", effect="NoExecute").obj()
    assert not preflight(pod, "n", Snapshot([NODE.taint("gpu").obj()], [pod])).success


def test_a_node_that_is_gone() -> None:
    assert preflight(POD.obj(), "n", Snapshot([], [])).message == 'node "n" not found'


def others(count: int, cpu: str) -> list[corev1.Pod]:
    return [make_pod().name(f"o{i}").uid(f"o{i}").node("n").req(cpu=cpu).obj() for i in range(count)]


@pytest.mark.parametrize(
    ("node", "pods", "refusal"),
    [
        pytest.param(NODE, others(1, "3"), "", id="full to the last"),
        pytest.param(NODE, others(1, "3001m"), "insufficient cpu", id="more than there is"),
        pytest.param(FOR_TWO, others(1, "0"), "", id="the last pod that it takes"),
        pytest.param(
            FOR_TWO,
            others(2, "0"),
            "insufficient pods",
            id="too many pods",
        ),
    ],
)
def test_room(node: NodeBuilder, pods: list[corev1.Pod], refusal: str) -> None:
    """The pod is counted already."""
    status = preflight(POD.obj(), "n", Snapshot([node.obj()], [POD.obj(), *pods]))
    assert status.message == (f'node "n" has no room left: {refusal}' if refusal else "")
    assert lacks_room(status) is bool(refusal)


LARGE = make_node().name("n").capacity(cpu="4", memory="8Gi", ephemeral_storage="10Gi", pods="110")


@pytest.mark.parametrize(
    ("asked", "there", "refusal"),
    [
        pytest.param({"memory": "1Gi"}, {"memory": "8Gi"}, "memory", id="memory"),
        pytest.param({"ephemeral_storage": "1Gi"}, {"ephemeral_storage": "10Gi"}, "ephemeral-storage", id="storage"),
        pytest.param({"cpu": "1m"}, {"cpu": "4"}, "cpu", id="the least of it that can be asked for"),
        pytest.param({"memory": "1Gi", "cpu": "1"}, {"memory": "8Gi", "cpu": "4"}, "cpu, memory", id="two at once"),
        pytest.param({"memory": "1Gi"}, {"cpu": "5"}, "", id="what the pod does not ask for is not its matter"),
    ],
)
def test_each_resource_that_the_pod_asks_for_has_to_be_covered(
    asked: Mapping[str, str], there: Mapping[str, str], refusal: str
) -> None:
    pod, other = make_pod().name("p").uid("p").node("n").req(asked).obj(), make_pod().name("o").uid("o").node("n")
    status = preflight(pod, "n", Snapshot([LARGE.obj()], [pod, other.req(there).obj()]))
    assert status.message == (f'node "n" has no room left: insufficient {refusal}' if refusal else "")
