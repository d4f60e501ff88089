"""Events that cannot help leave a gang that waits alone: its denial stands, and nothing is planned again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.api.corev1.toleration import Taint
from extender.api.metav1 import Condition
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group

Make = Callable[..., World]
FULL = node("n1", "1")
TAINTED = structs.replace(FULL, spec=structs.replace(FULL.spec, taints=(Taint(key="a", effect="NoSchedule"),)))
OTHERWISE = structs.replace(FULL, spec=structs.replace(FULL.spec, taints=(Taint(key="a", effect="NoExecute"),)))
LABELLED = structs.replace(FULL, metadata=structs.replace(FULL.metadata, labels={"zone": "a"}))
BEATING = structs.replace(FULL, metadata=structs.replace(FULL.metadata, resource_version="7", annotations={"a": "b"}))
FEATURED = structs.replace(FULL, status=structs.replace(FULL.status, declared_features=("a",)))
RUNNING = pod("other", node_name="n1")
ENDED = structs.replace(RUNNING, status=structs.replace(RUNNING.status, phase="Succeeded"))
GOING = pod("other", node_name="n1", deleting=True)
WAITING = pod("other")


def broken() -> corev1.Node:
    condition = Condition(type="Ready", status="False")
    return structs.replace(FULL, status=structs.replace(FULL.status, conditions=(condition,)))


@pytest.fixture
def denied(world: Make) -> World:
    """A gang that finds no room, and has been told so."""
    w = world([FULL])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"p{number}", "g") for number in range(2)]
    w.create(*members)
    w.plugin.on_pod(None, RUNNING)
    w.run_tasks()
    w.filter(members[0])
    w.run_tasks()
    assert "default/g" in w.plugin.manager.denied
    return w


NODES = [
    pytest.param(FULL, BEATING, False, id="a heartbeat"),
    pytest.param(FULL, node("n1", "1", unschedulable=True), False, id="a cordon"),
    pytest.param(node("n1", "1", unschedulable=True), FULL, True, id="an uncordon"),
    pytest.param(FULL, TAINTED, False, id="a taint more"),
    pytest.param(TAINTED, FULL, True, id="a taint less"),
    pytest.param(TAINTED, OTHERWISE, True, id="another taint"),
    pytest.param(FULL, node("n1", "500m"), False, id="less to give"),
    pytest.param(FULL, node("n1", "2"), True, id="more to give"),
    pytest.param(node("n1", "1", pods=3), node("n1", "500m", pods=4), True, id="less of one thing, more of another"),
    pytest.param(FULL, LABELLED, True, id="a label"),
    pytest.param(FULL, broken(), False, id="not ready any more"),
    pytest.param(broken(), FULL, True, id="ready again"),
    pytest.param(FULL, FEATURED, True, id="a feature more"),
    pytest.param(FEATURED, FULL, False, id="a feature less"),
    pytest.param(None, node("n2"), True, id="a new node"),
]
PODS = [
    pytest.param(RUNNING, None, True, id="a pod goes from its node"),
    pytest.param(RUNNING, ENDED, True, id="a pod ends"),
    pytest.param(ENDED, None, False, id="a pod that had ended is cleaned up"),
    pytest.param(ENDED, ENDED, False, id="the status of an ended pod"),
    pytest.param(RUNNING, GOING, False, id="a pod is told to go, and is there still"),
    pytest.param(RUNNING, pod("other", cpu="500m", node_name="n1"), True, id="a pod asks for less"),
    pytest.param(RUNNING, pod("other", cpu="2", node_name="n1"), False, id="a pod asks for more"),
    pytest.param(WAITING, None, False, id="a pod goes that was on no node"),
    pytest.param(None, pod("another", node_name="n1"), False, id="a pod comes"),
]


@pytest.mark.parametrize(("old", "new", "helps"), [*NODES, *PODS])
def test_what_helps_voids_verdicts_and_nothing_else_does(denied: World, old: Any, new: Any, helps: bool) -> None:
    manager = denied.plugin.manager
    before = manager.epoch, manager.cluster_epoch
    (denied.plugin.on_node if isinstance(new or old, corev1.Node) else denied.plugin.on_pod)(old, new)
    assert ("default/g" not in manager.denied) is helps
    assert ((manager.epoch, manager.cluster_epoch) != before) is helps
    assert ("plan" in denied.tasks) is helps
