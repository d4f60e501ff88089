"""What event handlers call a change of a pod or a node."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from extender.api import corev1
from extender.api.metav1 import Condition
from extender.framework.events import (
    ActionType,
    node_scheduling_properties_change,
    pod_scheduling_properties_change,
)
from tests.objects import make_pod
from tests.unit.backend.objects import a_node, a_pod

POD = a_pod("p")
NODE = a_node("n1")


def tolerating(pod: corev1.Pod) -> corev1.Pod:
    return replace(pod, spec=replace(pod.spec, tolerations=(corev1.Toleration("k"),)))


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(POD, POD, [ActionType.UPDATE_POD_OTHER], id="nothing that matters"),
        pytest.param(POD, a_pod("p", labels={"a": "b"}), [ActionType.UPDATE_POD_LABEL], id="labels"),
        pytest.param(a_pod("p", cpu="2"), POD, [ActionType.UPDATE_POD_SCALE_DOWN], id="asks for less"),
        pytest.param(
            make_pod().name("p").req(cpu="0").obj(),
            make_pod().name("p").obj(),
            [ActionType.UPDATE_POD_SCALE_DOWN],
            id="no longer asks for nothing",
        ),
        pytest.param(POD, a_pod("p", cpu="2"), [ActionType.UPDATE_POD_OTHER], id="asks for more"),
        pytest.param(POD, tolerating(POD), [ActionType.UPDATE_POD_TOLERATION], id="tolerates more"),
        pytest.param(
            a_pod("p", gates=["x"]), POD, [ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED], id="the last gate is off"
        ),
        pytest.param(
            a_pod("p", gates=["x", "y"]), a_pod("p", gates=["x"]), [ActionType.UPDATE_POD_OTHER], id="a gate is left"
        ),
        pytest.param(
            a_pod("p", cpu="2"),
            a_pod("p", labels={"a": "b"}),
            [ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_SCALE_DOWN],
            id="an event for each",
        ),
    ],
)
def test_pod_changes(old: corev1.Pod, new: corev1.Pod, actions: list[ActionType]) -> None:
    assert [event.action for event in pod_scheduling_properties_change(old, new)] == actions


@pytest.mark.parametrize(
    ("pod", "resource"),
    [pytest.param(POD, "UnschedulablePod", id="waiting"), pytest.param(a_pod("p", "n1"), "AssignedPod", id="assigned")],
)
def test_resource_says_whether_the_pod_has_a_node(pod: corev1.Pod, resource: str) -> None:
    assert pod_scheduling_properties_change(pod, pod)[0].resource == resource


def ready(status: str) -> corev1.Node:
    return replace(NODE, status=replace(NODE.status, conditions=(Condition("Ready", status),)))


def cordoned() -> corev1.Node:
    return replace(NODE, spec=corev1.NodeSpec(unschedulable=True))


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(NODE, NODE, [], id="a heartbeat"),
        pytest.param(NODE, a_node("n1", cpu="8"), [ActionType.UPDATE_NODE_ALLOCATABLE], id="allocatable"),
        pytest.param(NODE, a_node("n1", zone="z"), [ActionType.UPDATE_NODE_LABEL], id="labels"),
        pytest.param(cordoned(), NODE, [ActionType.UPDATE_NODE_TAINT], id="uncordoned"),
        pytest.param(NODE, cordoned(), [], id="cordoned helps no pod"),
        pytest.param(
            NODE,
            replace(NODE, spec=corev1.NodeSpec(taints=(corev1.Taint("k"),))),
            [ActionType.UPDATE_NODE_TAINT],
            id="taints",
        ),
        pytest.param(ready("False"), ready("True"), [ActionType.UPDATE_NODE_CONDITION], id="conditions"),
    ],
)
def test_node_changes(old: corev1.Node, new: corev1.Node, actions: list[ActionType]) -> None:
    assert [event.action for event in node_scheduling_properties_change(old, new)] == actions
