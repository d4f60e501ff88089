"""NodeDeclaredFeatures by its rules. kube-scheduler: pkg/scheduler/framework/plugins/nodedeclaredfeatures"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.interface import QueueingHint
from extender.framework.status import SKIP, SUCCESS, Status, error
from extender.plugins.node_declared_features import REFUSED, NodeDeclaredFeatures
from tests.objects import PodBuilder, make_node, make_pod

RESTART, USER_NAMESPACE = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"
HANDLE: Any = None
PLAIN = make_pod().name("p").container()
RESTARTS = make_pod().name("p").container(restartPolicyRules=[{"action": "RestartAllContainers"}])
ON_HOST = make_pod().name("p")._in("spec", "hostNetwork", True)
BOTH = RESTARTS._in("spec", "hostNetwork", True)._in("spec", "hostUsers", False)


def _plugin() -> NodeDeclaredFeatures:
    return NodeDeclaredFeatures.create(None, HANDLE)


def _node(*features: str) -> corev1.Node:
    return make_node().name("n")._in("status", "declaredFeatures", list(features)).obj()


@pytest.mark.parametrize(
    ("pod", "features", "expected"),
    [
        pytest.param(PLAIN, [], None, id="a plain pod needs nothing"),
        pytest.param(
            make_pod().name("p").container(restartPolicyRules=[{"action": "Restart"}]), [], None, id="one restarts"
        ),
        pytest.param(ON_HOST, [], None, id="host network alone"),
        pytest.param(ON_HOST._in("spec", "hostUsers", True), [], None, id="host network and the host's users"),
        pytest.param(make_pod().name("p")._in("spec", "hostUsers", False), [], None, id="a user namespace alone"),
        pytest.param(RESTARTS, [], REFUSED, id="all containers restart: the node does not declare it"),
        pytest.param(RESTARTS, [RESTART], SUCCESS, id="all containers restart: the node declares it"),
        pytest.param(
            make_pod().name("p")._init({"restartPolicyRules": [{"action": "RestartAllContainers"}]}),
            [USER_NAMESPACE],
            REFUSED,
            id="an init container's rule counts",
        ),
        pytest.param(BOTH, [RESTART], REFUSED, id="one of two features"),
        pytest.param(BOTH, ["Unknown", RESTART, USER_NAMESPACE], SUCCESS, id="both, and one that is unknown"),
    ],
)
def test_filter(pod: PodBuilder, features: list[str], expected: Status | None) -> None:
    plugin, state = _plugin(), CycleState()
    status = plugin.pre_filter(state, pod.obj(), [])[1]
    if expected is None:
        assert status == SKIP
        return
    assert status == SUCCESS
    node = make_node().name("n").info()
    node.set_node(_node(*features))
    assert plugin.filter(state, pod.obj(), node) == expected


def test_without_pre_filter_there_is_an_error() -> None:
    status = _plugin().filter(CycleState(), RESTARTS.obj(), make_node().name("n").info())
    assert status == error('error reading "PreFilterNodeDeclaredFeatures" from cycle-state: not found')


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, _node(), QueueingHint.QUEUE, id="a new node"),
        pytest.param(_node(), _node("a"), QueueingHint.QUEUE, id="one more feature"),
        pytest.param(_node("a"), _node("a"), QueueingHint.SKIP, id="as before"),
    ],
)
def test_a_node_changes(old: corev1.Node | None, new: corev1.Node, expected: QueueingHint) -> None:
    assert _plugin().after_node_change(RESTARTS.obj(), old, new) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(RESTARTS, PLAIN, QueueingHint.QUEUE, id="it needs less now"),
        pytest.param(RESTARTS, RESTARTS.label("a", "b"), QueueingHint.SKIP, id="it needs the same"),
        pytest.param(RESTARTS.name("other"), PLAIN.name("other"), QueueingHint.SKIP, id="another pod"),
    ],
)
def test_the_pod_changes(old: PodBuilder, new: PodBuilder, expected: QueueingHint) -> None:
    assert _plugin().after_pod_update(RESTARTS.obj(), old.obj(), new.obj()) is expected
