"""What wakes a pod refused for its spread. kube-scheduler: .../plugins/podtopologyspread/plugin_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.config.plugin_args import PodTopologySpreadArgs, PodTopologySpreadDefaulting
from extender.plugins.pod_topology_spread import PodTopologySpread
from tests.objects import ZONE, make_node, make_pod, selector
from tests.unit.plugins.wakes import wakes

WEB = selector({"app": "web"})
PLAIN = make_pod().name("refused").label("app", "web")
POD = PLAIN.spread_constraint(1, ZONE, label_selector=WEB)
TWO = POD.spread_constraint(1, "rack", label_selector=selector({"tier": "front"}))
HONORING = PLAIN.spread_constraint(1, ZONE, label_selector=WEB, nodeTaintsPolicy="Honor")
OTHER = make_pod().name("other").node("n")
WAITING = make_pod().name("other")
NODE = make_node().name("n")


@pytest.mark.parametrize(
    ("pod", "old", "new", "woken"),
    [
        pytest.param(POD, None, OTHER.label("app", "web"), True, id="a pod that counts came"),
        pytest.param(POD, None, OTHER.label("app", "db"), False, id="a pod that does not count came"),
        pytest.param(POD, None, WAITING.label("app", "web"), False, id="a pod without a node came"),
        pytest.param(POD, None, OTHER.label("app", "web").namespace("else"), False, id="one came to another namespace"),
        pytest.param(TWO, None, OTHER.label("tier", "front"), True, id="a pod came that counts for one of two"),
        pytest.param(POD, OTHER.label("app", "web"), None, True, id="a pod that counts went"),
        pytest.param(POD, OTHER, None, False, id="a pod that does not count went"),
        pytest.param(POD, OTHER, OTHER.label("app", "web"), True, id="a pod has come to count"),
        pytest.param(POD, OTHER.label("app", "web"), OTHER, True, id="a pod no longer counts"),
        pytest.param(
            POD, OTHER.label("app", "web"), OTHER.label("app", "web").label("x", "y"), False, id="it counts as before"
        ),
        pytest.param(POD, POD, POD.label("app", "db"), True, id="the pod itself no longer counts"),
        pytest.param(POD, POD, POD.toleration("k"), False, id="the pod tolerates more, and taints do not matter"),
        pytest.param(HONORING, HONORING, HONORING.toleration("k"), True, id="the pod tolerates more, where taints do"),
        pytest.param(POD, None, NODE.zone("a"), True, id="a new node in a domain"),
        pytest.param(POD, None, NODE, False, id="a new node in no domain"),
        pytest.param(TWO, None, NODE.zone("a"), False, id="a new node in one domain of two"),
        pytest.param(TWO, None, NODE.zone("a").label("rack", "1"), True, id="a new node in both domains"),
        pytest.param(POD, NODE.zone("a"), None, True, id="a node in a domain went"),
        pytest.param(POD, NODE, None, False, id="a node in no domain went"),
        pytest.param(POD, NODE, NODE.zone("a"), True, id="a node entered a domain"),
        pytest.param(POD, NODE.zone("a"), NODE, True, id="a node left its domain"),
        pytest.param(POD, NODE.zone("a"), NODE.zone("b"), True, id="a node changed domains"),
        pytest.param(POD, NODE.zone("a"), NODE.zone("a").label("x", "y"), False, id="a label of no interest"),
        pytest.param(POD, NODE.zone("a").taint("k"), NODE.zone("a"), True, id="taints changed in a domain"),
        pytest.param(POD, NODE.taint("k"), NODE, False, id="taints changed in no domain"),
    ],
)
def test_wakes(pod: Any, old: Any, new: Any, woken: bool) -> None:
    handle: Any = None  # a pod with constraints of its own needs no defaults
    plugin = PodTopologySpread(PodTopologySpreadArgs(), handle)
    assert wakes(plugin, pod.obj(), old and old.obj(), new and new.obj()) is woken


SERVICE = convert({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}}, corev1.Service)


class Services:
    """A handle whose lister has one service, app=web."""

    def lister(self, type_: type[object]) -> Services:
        return self

    def by_namespace(self, namespace: str) -> list[corev1.Service]:
        return [SERVICE]


@pytest.mark.parametrize(
    ("label", "woken"),
    [
        pytest.param("web", True, id="a pod of the same service came"),
        pytest.param("db", False, id="a pod of no service came"),
    ],
)
def test_default_constraints(label: str, woken: bool) -> None:
    handle: Any = Services()
    rule = corev1.TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule")
    args = PodTopologySpreadArgs(defaulting_type=PodTopologySpreadDefaulting.LIST, default_constraints=(rule,))
    plugin = PodTopologySpread(args, handle)
    assert wakes(plugin, PLAIN.obj(), None, OTHER.label("app", label).obj()) is woken
