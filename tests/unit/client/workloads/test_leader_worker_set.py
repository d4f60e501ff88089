"""Pods as LeaderWorkerSet's controller and webhook make them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
SET = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: lws, annotations: {%s}}
spec:
  replicas: 2
  startupPolicy: %s
  leaderWorkerTemplate:
    size: 3
    %s
    workerTemplate: {spec: {containers: [{name: worker}]}}
"""
LEADER = "leaderTemplate: {spec: {containers: [{name: leader}]}}"
KEYS = "leaderworkerset.sigs.k8s.io/"


def test_each_replica_is_a_leader_and_its_workers(load: Load) -> None:
    pods = load(SET % ("", "LeaderCreated", LEADER)).pods
    assert list(pods) == ["lws-0", "lws-0-1", "lws-0-2", "lws-1", "lws-1-1", "lws-1-2"]
    assert [pod.spec.containers[0].name for pod in pods.values()] == ["leader", "worker", "worker"] * 2
    assert [pod.labels[f"{KEYS}worker-index"] for pod in pods.values()] == ["0", "1", "2"] * 2
    assert {pod.metadata.annotations[f"{KEYS}size"] for pod in pods.values()} == {"3"}
    keys = [pod.labels[f"{KEYS}group-key"] for pod in pods.values()]
    assert keys == [hashlib.sha1(f"default/lws-{index // 3}".encode()).hexdigest() for index in range(6)]
    assert pods["lws-1-2"].labels[f"{KEYS}group-index"] == "1"
    assert pods["lws-1-2"].metadata.annotations[f"{KEYS}leader-name"] == "lws-1"
    owners = [owner.name for pod in pods.values() for owner in pod.metadata.owner_references]
    assert owners == ["lws", "lws-0", "lws-0", "lws", "lws-1", "lws-1"]


def test_without_a_template_of_its_own_a_leader_is_as_a_worker(load: Load) -> None:
    assert load(SET % ("", "LeaderCreated", "")).pods["lws-0"].spec.containers[0].name == "worker"


def test_with_leader_ready_the_workers_of_a_replica_wait_for_its_leader(load: Load) -> None:
    cluster = load(SET % ("", "LeaderReady", ""))
    assert list(cluster.pods) == ["lws-0", "lws-1"]
    assert cluster.later == {
        f"lws-{index}-{worker}": (f"default/lws-{index}",) for index in (0, 1) for worker in (1, 2)
    }


def test_a_domain_for_each_replica_is_not_simulated_and_said(load: Load) -> None:
    [warning] = load(SET % (f"{KEYS}exclusive-topology: rack", "LeaderCreated", "")).loaded.warnings
    assert "exclusive-topology is not simulated: replicas may share a domain" in warning
