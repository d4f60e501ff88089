"""What wakes a pod that found its ports taken. kube-scheduler: .../plugins/nodeports/node_ports_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.plugins.node_ports import NodePorts
from tests.objects import make_node, make_pod
from tests.unit.plugins.wakes import wakes

POD = make_pod().name("refused").host_port(80)
GONE = make_pod().name("gone").node("n")


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(GONE.host_port(80), None, True, id="a pod with the port left its node"),
        pytest.param(
            make_pod().name("gone").nominated_node_name("n").host_port(80), None, True, id="a nominated pod went"
        ),
        pytest.param(make_pod().name("gone").host_port(80), None, False, id="a pod that waited went"),
        pytest.param(GONE.host_port(81), None, False, id="a pod with another port went"),
        pytest.param(GONE.host_port(80, "UDP"), None, False, id="a pod with the port of another protocol went"),
        pytest.param(GONE, None, False, id="a pod without ports went"),
        pytest.param(None, make_node().name("n"), True, id="a new node"),
        pytest.param(None, GONE.host_port(80), False, id="a pod came"),
    ],
)
def test_wakes(old: Any, new: Any, woken: bool) -> None:
    assert wakes(NodePorts(), POD.obj(), old and old.obj(), new and new.obj()) is woken
