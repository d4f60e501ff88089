"""What wakes a pod whose node was not there, or one that was gated."""

from __future__ import annotations

from typing import Any

import pytest

from extender.plugins.node_name import NodeName
from extender.plugins.scheduling_gates import SchedulingGates
from tests.objects import make_node, make_pod
from tests.unit.plugins.wakes import wakes

POD = make_pod().name("refused")
NODE = make_node().name("n")
GATED = POD.scheduling_gates("a", "b")


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, NODE, True, id="a new node, whatever its name"),
        pytest.param(NODE, NODE.label("a", "b"), False, id="a node's label"),
        pytest.param(make_pod().name("other").node("n"), None, False, id="a pod went"),
    ],
)
def test_node_name(old: Any, new: Any, woken: bool) -> None:
    assert wakes(NodeName(), POD.obj(), old and old.obj(), new and new.obj()) is woken


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(GATED, POD, True, id="the last of its gates is gone"),
        pytest.param(GATED, POD.scheduling_gates("a"), False, id="one of two gates is gone"),
        pytest.param(
            make_pod().name("other").scheduling_gates("a"), make_pod().name("other"), False, id="another pod's gate"
        ),
        pytest.param(None, NODE, False, id="a new node"),
    ],
)
def test_scheduling_gates(old: Any, new: Any, woken: bool) -> None:
    assert wakes(SchedulingGates(), POD.obj(), old and old.obj(), new and new.obj()) is woken
