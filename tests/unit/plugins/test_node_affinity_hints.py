"""What wakes a pod that no node matched. kube-scheduler: .../plugins/nodeaffinity/node_affinity_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.config.plugin_args import NodeAffinityArgs
from extender.plugins.node_affinity import NodeAffinity
from tests.objects import make_node, make_pod
from tests.unit.plugins.wakes import wakes

POD = make_pod().name("refused").node_selector({"disk": "ssd"})
SSD = make_node().name("n").label("disk", "ssd")
HDD = make_node().name("n").label("disk", "hdd")
BLUE_ONLY = NodeAffinityArgs(
    added_affinity=convert(
        {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["blue"]}]}]
            }
        },
        corev1.NodeAffinity,
    )
)


@pytest.mark.parametrize(
    ("args", "old", "new", "woken"),
    [
        pytest.param(NodeAffinityArgs(), None, SSD, True, id="a new node that matches"),
        pytest.param(NodeAffinityArgs(), None, HDD, False, id="a new node that does not match"),
        pytest.param(NodeAffinityArgs(), HDD, SSD, True, id="a node has come to match"),
        pytest.param(NodeAffinityArgs(), SSD, HDD, False, id="a node no longer matches"),
        pytest.param(NodeAffinityArgs(), SSD, SSD.label("pool", "red"), False, id="a node matched already"),
        pytest.param(NodeAffinityArgs(), HDD, HDD.label("pool", "red"), False, id="another label of no interest"),
        pytest.param(BLUE_ONLY, None, SSD, False, id="a new node that the scheduler's own affinity refuses"),
        pytest.param(BLUE_ONLY, None, SSD.label("pool", "blue"), True, id="a new node that both take"),
        pytest.param(
            BLUE_ONLY, HDD.label("pool", "blue"), SSD.label("pool", "blue"), True, id="a node has come to match both"
        ),
        pytest.param(NodeAffinityArgs(), SSD, None, False, id="a node went"),
    ],
)
def test_wakes(args: NodeAffinityArgs, old: Any, new: Any, woken: bool) -> None:
    assert wakes(NodeAffinity(args), POD.obj(), old and old.obj(), new and new.obj()) is woken
