"""What wakes a pod refused for its neighbours. kube-scheduler: .../plugins/interpodaffinity/plugin_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.config.plugin_args import InterPodAffinityArgs
from extender.plugins.inter_pod_affinity import InterPodAffinity
from tests.objects import ZONE, make_node, make_pod, selector
from tests.unit.plugins.wakes import wakes

DB = selector({"app": "db"})
HOT = selector({"heat": "hot"})
WANTS = make_pod().name("refused").pod_affinity(ZONE, DB)
WANTS_BOTH = WANTS.pod_affinity(ZONE, HOT)
HATES = make_pod().name("refused").label("app", "web").pod_anti_affinity(ZONE, DB)
PLAIN = make_pod().name("refused").label("app", "web")
OTHER = make_pod().name("other").node("n")
WAITING = make_pod().name("other")
NODE = make_node().name("n")


@pytest.mark.parametrize(
    ("pod", "old", "new", "woken"),
    [
        pytest.param(WANTS, None, OTHER.label("app", "db"), True, id="a wanted neighbour came"),
        pytest.param(WANTS, None, OTHER.label("app", "web"), False, id="a stranger came"),
        pytest.param(WANTS, None, WAITING.label("app", "db"), False, id="a wanted neighbour has no node yet"),
        pytest.param(
            WANTS, None, OTHER.label("app", "db").namespace("else"), False, id="its like came to another namespace"
        ),
        pytest.param(WANTS_BOTH, None, OTHER.label("app", "db"), False, id="a neighbour meets one term of two"),
        pytest.param(
            WANTS_BOTH, None, OTHER.label("app", "db").label("heat", "hot"), True, id="a neighbour meets all terms"
        ),
        pytest.param(HATES, None, OTHER.label("app", "db"), False, id="a hated neighbour came"),
        pytest.param(HATES, OTHER.label("app", "db"), None, True, id="a hated neighbour went"),
        pytest.param(HATES, WAITING.label("app", "db"), None, False, id="a hated pod without a node went"),
        pytest.param(HATES, WAITING.label("app", "db").nominated_node_name("n"), None, True, id="a nominated one went"),
        pytest.param(HATES, OTHER.label("app", "web"), None, False, id="a neighbour of no account went"),
        pytest.param(
            PLAIN,
            OTHER.pod_anti_affinity(ZONE, selector({"app": "web"})),
            None,
            True,
            id="a neighbour that hates the pod went",
        ),
        pytest.param(WANTS, OTHER.label("app", "web"), OTHER.label("app", "db"), True, id="a neighbour became wanted"),
        pytest.param(WANTS, OTHER.label("app", "db"), OTHER.label("app", "web"), False, id="one is no longer wanted"),
        pytest.param(HATES, OTHER.label("app", "db"), OTHER.label("app", "web"), True, id="one is no longer hated"),
        pytest.param(HATES, OTHER.label("app", "web"), OTHER.label("app", "db"), False, id="a neighbour became hated"),
        pytest.param(
            WANTS, WAITING.label("app", "web"), WAITING.label("app", "db"), False, id="a pod that waits became wanted"
        ),
        pytest.param(PLAIN, PLAIN, PLAIN.label("app", "db"), True, id="the pod's own labels changed"),
        pytest.param(WANTS, None, NODE.zone("a"), True, id="a new node in a domain"),
        pytest.param(WANTS, None, NODE, False, id="a new node in no domain, for one that wants neighbours"),
        pytest.param(HATES, None, NODE, True, id="a new node in no domain, for one that wants none"),
        pytest.param(PLAIN, None, NODE.zone("a"), False, id="a new node, for one without terms"),
        pytest.param(WANTS, NODE, NODE.zone("a"), True, id="a node entered a domain"),
        pytest.param(WANTS, NODE.zone("a"), NODE.zone("b"), True, id="a node changed domains, for one that wants"),
        pytest.param(WANTS, NODE.zone("a"), NODE, False, id="a node left its domain, for one that wants"),
        pytest.param(HATES, NODE.zone("a"), NODE, True, id="a node left its domain, for one that wants none"),
        pytest.param(HATES, NODE.zone("a"), NODE.zone("b"), True, id="a node changed domains, for one that wants none"),
        pytest.param(HATES, NODE, NODE.zone("a"), False, id="a node entered a domain, for one that wants none"),
        pytest.param(WANTS, NODE.zone("a"), NODE.zone("a").label("x", "y"), False, id="a label of no interest"),
    ],
)
def test_wakes(pod: Any, old: Any, new: Any, woken: bool) -> None:
    handle: Any = None  # hints look nothing up
    plugin = InterPodAffinity(InterPodAffinityArgs(), handle)
    assert wakes(plugin, pod.obj(), old and old.obj(), new and new.obj()) is woken
