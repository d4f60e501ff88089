"""Settings of kube-scheduler under which the extender cannot work: the pod's own event names the setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from extender.scheduler.scheduling_cycle import NOT_CACHE_CAPABLE
from tests.e2e.api import NODES
from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair

IMAGES = 2000  # of a node whose kubelet was told to report them all


def _without_node_cache_capable(config: dict[str, Any]) -> None:
    for entry in config["extenders"]:
        del entry["nodeCacheCapable"]


def _with_everything_that_a_kubelet_reports(cluster: Cluster, name: str) -> None:
    images = [{"names": [f"registry.example.com/{'i' * 200}:{i}"], "sizeBytes": 2**30} for i in range(IMAGES)]
    cluster.node(name)
    cluster.api.patch(f"{NODES}/{name}/status", {"status": {"images": images}})


def test_node_cache_capable_forgotten(cluster: Cluster, tmp_path: Path) -> None:
    _with_everything_that_a_kubelet_reports(cluster, "node-1")
    _with_everything_that_a_kubelet_reports(cluster, "node-2")
    with Pair.of(cluster.plane, tmp_path, change=_without_node_cache_capable).running() as pair:
        cluster.pod("single")
        cluster.recorder.await_message("single", NOT_CACHE_CAPABLE, within=10)
        assert "internal error" not in pair.extender.log()
        status, checks = pair.extender.ops("/readyz?verbose")
        assert status == 200
        assert "kube-scheduler sends whole nodes in place of names (filter)" in checks
