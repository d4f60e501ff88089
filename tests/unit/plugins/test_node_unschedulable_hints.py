"""What wakes a pod that found only cordoned nodes. kube-scheduler: .../plugins/nodeunschedulable/node_unschedulable_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.plugins.node_unschedulable import NodeUnschedulable
from tests.objects import make_node, make_pod
from tests.unit.plugins.wakes import wakes

CORDON = "node.kubernetes.io/unschedulable"
POD = make_pod().name("refused")
OPEN = make_node().name("n")
CORDONED = OPEN.unschedulable()


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, OPEN, True, id="a new node"),
        pytest.param(None, CORDONED, False, id="a new node that is cordoned"),
        pytest.param(CORDONED, OPEN, True, id="a node was uncordoned"),
        pytest.param(OPEN, CORDONED.taint(CORDON), False, id="a node was cordoned"),
        pytest.param(OPEN, OPEN.taint("k"), False, id="another taint of an open node"),
        pytest.param(POD, POD.toleration(CORDON, operator="Exists"), True, id="the pod tolerates the cordon now"),
        pytest.param(POD, POD.toleration("k", operator="Exists"), False, id="the pod tolerates something else now"),
        pytest.param(
            make_pod().name("other"),
            make_pod().name("other").toleration(CORDON, operator="Exists"),
            False,
            id="another pod tolerates the cordon now",
        ),
    ],
)
def test_wakes(old: Any, new: Any, woken: bool) -> None:
    assert wakes(NodeUnschedulable(), POD.obj(), old and old.obj(), new and new.obj()) is woken
