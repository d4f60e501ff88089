"""Pods and PodGroup as KubeRay makes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray, labels: {%s}}
spec:
  %s
  headGroupSpec: {template: {spec: {containers: [{name: head, resources: {limits: {cpu: 1}}}]}}}
  workerGroupSpecs:
  - {groupName: small, %s, template: {spec: {containers: [{name: worker, resources: {requests: {cpu: 100m}}}]}}}
"""
GANG = "ray.io/gang-scheduling-enabled: 'true'"


def ray(group: str = "replicas: 2", labels: str = GANG, spec: str = "rayVersion: x") -> str:
    return RAY % (labels, spec, group)


def test_a_gang_is_the_head_and_all_hosts_for_a_scheduler_of_a_constant_name(load: Load) -> None:
    cluster = load(ray("replicas: 2, numOfHosts: 2"))
    assert [name.rsplit("-", 1)[0] for name in cluster.pods] == ["ray-head", *["ray-small-worker"] * 4]
    assert cluster.group("ray") == (5, {"cpu": "1400m"}, None)
    pods = list(cluster.pods.values())
    assert {pod.spec.scheduler_name for pod in pods} == {"scheduler-plugins-scheduler"}
    assert {pod.labels["scheduling.x-k8s.io/pod-group"] for pod in pods} == {"ray"}
    assert [pod.labels["ray.io/node-type"] for pod in pods] == ["head", *["worker"] * 4]
    assert pods[1].spec.init_containers[0].resources.requests["cpu"].milli_value == 200


def test_without_the_label_it_is_no_gang(load: Load) -> None:
    cluster = load(ray(labels=""))
    assert {pod.spec.scheduler_name for pod in cluster.pods.values()} == {"default-scheduler"}
    assert cluster.loaded.created == {"Pod": 3}


@pytest.mark.parametrize(
    ("group", "workers"),
    [
        pytest.param("numOfHosts: 2", 0, id="none is asked for"),
        pytest.param("replicas: 1, minReplicas: 2", 2, id="no fewer than the least"),
        pytest.param("replicas: 9, maxReplicas: 3", 3, id="no more than the most"),
        pytest.param("replicas: 1, maxReplicas: 2147483647", 1, id="as many as one likes"),
        pytest.param("replicas: 9, suspend: true", 0, id="a suspended group"),
    ],
)
def test_a_group_has_its_replicas_within_their_bounds(load: Load, group: str, workers: int) -> None:
    cluster = load(ray(group))
    assert len(cluster.pods) == cluster.group("ray")[0] == workers + 1


def test_the_autoscaler_asks_for_room_beside_the_head(load: Load) -> None:
    head = next(iter(load(ray(spec="enableInTreeAutoscaling: true")).pods.values()))
    assert [container.name for container in head.spec.containers] == ["head", "autoscaler"]


def test_a_suspended_cluster_has_no_pods_and_a_warning_says_so(load: Load) -> None:
    cluster = load(ray(spec="suspend: true"))
    assert cluster.pods == {}
    assert "it is suspended" in cluster.loaded.warnings[0]
