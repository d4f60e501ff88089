"""What wakes a pod that found no room. kube-scheduler: pkg/scheduler/framework/plugins/noderesources/fit_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.config.plugin_args import NodeResourcesFitArgs
from extender.plugins.node_resources_fit import NodeResourcesFit
from tests.objects import make_node, make_pod
from tests.unit.plugins.wakes import wakes

REFUSED = make_pod().name("refused").req(cpu="2", memory="1Gi")
OTHER = make_pod().name("other").req(cpu="2", memory="1Gi")
PLACED = OTHER.node("n")
SMALLER = make_pod().name("other").node("n").req(cpu="1", memory="1Gi")
NODE = make_node().name("n")
BARE = make_pod().name("refused")


@pytest.mark.parametrize(
    ("pod", "old", "new", "woken"),
    [
        pytest.param(REFUSED, PLACED, None, True, id="a pod left its node"),
        pytest.param(REFUSED, OTHER.nominated_node_name("n"), None, True, id="a nominated pod went"),
        pytest.param(REFUSED, OTHER, None, False, id="a pod that waited went"),
        pytest.param(REFUSED, None, PLACED, False, id="a pod came to a node"),
        pytest.param(REFUSED, PLACED, SMALLER, True, id="a pod gave back cpu, which is asked for"),
        pytest.param(make_pod().name("refused").req(memory="1Gi"), PLACED, SMALLER, False, id="cpu is not asked for"),
        pytest.param(BARE.req(cpu="0"), PLACED, SMALLER, False, id="no cpu is asked for, in words"),
        pytest.param(
            make_pod().name("refused").req({"example.org/gpu": 1}),
            make_pod().name("other").node("n").req({"example.org/gpu": 2}),
            make_pod().name("other").node("n").req({"example.org/gpu": 1}),
            True,
            id="a pod gave back an extended resource",
        ),
        pytest.param(REFUSED, SMALLER, PLACED, False, id="a pod asks for more"),
        pytest.param(
            REFUSED,
            OTHER,
            make_pod().name("other").req(cpu="1", memory="1Gi"),
            False,
            id="a pod that waits asks for less",
        ),
        pytest.param(REFUSED, REFUSED, BARE.req(cpu="1", memory="1Gi"), True, id="the pod itself asks for less"),
        pytest.param(REFUSED, None, NODE.capacity(cpu="2", memory="1Gi"), True, id="a new node with room"),
        pytest.param(REFUSED, None, NODE.capacity(cpu="1", memory="1Gi"), False, id="a new node that is too small"),
        pytest.param(
            REFUSED, None, NODE.capacity(cpu="2", memory="1Gi", pods=0), False, id="a new node that takes no pods"
        ),
        pytest.param(
            REFUSED,
            NODE.capacity(cpu="1", memory="1Gi"),
            NODE.capacity(cpu="2", memory="1Gi"),
            True,
            id="a node that was too small has grown",
        ),
        pytest.param(
            REFUSED,
            NODE.capacity(cpu="1", memory="512Mi"),
            NODE.capacity(cpu="2", memory="512Mi"),
            False,
            id="a node has grown, and is still too small",
        ),
        pytest.param(
            REFUSED,
            NODE.capacity(cpu="4", memory="1Gi"),
            NODE.capacity(cpu="3", memory="1Gi"),
            False,
            id="a node with room has shrunk",
        ),
        pytest.param(
            REFUSED,
            NODE.capacity(cpu="4", memory="1Gi"),
            NODE.capacity({"example.org/gpu": 8}, cpu="4", memory="1Gi"),
            False,
            id="a node has more of what is not asked for",
        ),
        pytest.param(
            REFUSED,
            NODE.capacity(cpu="4", memory="1Gi", pods=1),
            NODE.capacity(cpu="4", memory="1Gi", pods=2),
            True,
            id="a node takes more pods",
        ),
        pytest.param(BARE, NODE.capacity(pods=1), NODE.capacity(pods=2), True, id="room for one more pod of nothing"),
        pytest.param(
            BARE, NODE.capacity(cpu="1"), NODE.capacity(cpu="2"), False, id="more cpu for a pod that asks for nothing"
        ),
        pytest.param(REFUSED, NODE.capacity(cpu="9"), None, False, id="a node went"),
    ],
)
def test_wakes(pod: Any, old: Any, new: Any, woken: bool) -> None:
    plugin = NodeResourcesFit(NodeResourcesFitArgs())
    assert wakes(plugin, pod.obj(), old and old.obj(), new and new.obj()) is woken


def test_ignored_resources_count_in_hints() -> None:
    """As in kube-scheduler: only the flush helps such a pod on a node without the resource."""
    plugin = NodeResourcesFit(NodeResourcesFitArgs(ignored_resources=frozenset({"example.org/gpu"})))
    pod = make_pod().name("refused").req({"example.org/gpu": 1}).obj()
    assert not wakes(plugin, pod, None, NODE.capacity(cpu="1").obj())
