"""Gangs of which members have ended, were scaled away or are lost, on the real control plane; also with a restart of the extender."""

from __future__ import annotations

import pytest

from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair

CPU = {"cpu": "1"}
RESTART = pytest.mark.parametrize(
    "restarts", [pytest.param(False, id="one process"), pytest.param(True, id="the extender restarts in between")]
)


def pods(cluster: Cluster, group: str, *names: str, **more: object) -> list[str]:
    for name in names:
        cluster.pod(name, group=group, requests=CPU, **more)  # type: ignore[arg-type]
    return list(names)


def started(cluster: Cluster, group: str, *names: str) -> None:
    cluster.node("node-1", cpu="8")
    cluster.pod_group(group, len(names))
    cluster.recorder.await_bound(*pods(cluster, group, *names), within=10)


def succeeds(cluster: Cluster, name: str) -> None:
    """As its kubelet says it."""
    path = f"{paths.PODS.format(namespace='default')}/{name}/status"
    cluster.api.patch(path, {"status": {"phase": "Succeeded"}})


def restart(module_programs: Pair) -> None:
    module_programs.extender.kill()
    module_programs.extender.start()


@RESTART
def test_an_evicted_index_is_replaced_after_another_has_succeeded(
    restarts: bool, cluster: Cluster, module_programs: Pair
) -> None:
    started(cluster, "indexed", "index-0", "index-1", "index-2")
    succeeds(cluster, "index-0")
    cluster.delete_pod("index-2")
    if restarts:
        restart(module_programs)
    pods(cluster, "indexed", "index-2-again")
    cluster.recorder.await_bound("index-2-again", within=15)


@RESTART
def test_a_ray_cluster_that_was_scaled_down_gets_its_head_back(
    restarts: bool, cluster: Cluster, module_programs: Pair
) -> None:
    started(cluster, "ray", "head", "worker-0", "worker-1")
    cluster.delete_pod("worker-1")
    cluster.delete_pod("head")
    if restarts:
        restart(module_programs)
    pods(cluster, "ray", "head-again")
    cluster.recorder.await_bound("head-again", within=15)


def test_a_member_that_ended_before_anything_was_seen_of_its_gang_counts(
    cluster: Cluster, module_programs: Pair
) -> None:
    """Bound by another scheduler, with no record of a start: the API server is asked which members have Succeeded."""
    cluster.node("node-1", cpu="8")
    cluster.pod_group("foreign", 3)
    pods(cluster, "foreign", "done", "runs", nodeName="node-1")
    succeeds(cluster, "done")
    pods(cluster, "foreign", "waits")
    cluster.recorder.await_bound("waits", within=15)
    cluster.judged = True  # the fraction that it was until then is the test's own
