"""Pods as KubeRay makes them of a RayJob and of a RayService."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api.codec import DecodeError
from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
CLUSTER = (
    "{headGroupSpec: {template: {spec: {containers: [{name: head, image: ray}]}}}, workerGroupSpecs: "
    "[{groupName: w, replicas: %s, template: {spec: {containers: [{name: worker}]}}}]}"
)
GANG = "ray.io/gang-scheduling-enabled: 'true'"


def ray(kind: str, *fields: str, labels: str = "") -> str:
    head = f"apiVersion: ray.io/v1\nkind: {kind}\nmetadata: {{name: eval, labels: {{{labels}}}}}\n"
    return head + f"spec: {{{', '.join(fields)}}}\n"


def ray_job(*fields: str, labels: str = "", replicas: int = 2) -> str:
    return ray("RayJob", f"rayClusterSpec: {CLUSTER % replicas}", *fields, labels=labels)


def test_the_submitter_comes_once_the_cluster_runs(load: Load) -> None:
    cluster = load(ray_job())
    stems = [name.rsplit("-", 1)[0] for name in cluster.pods]
    assert [stem[:5] for stem in stems] == ["eval-"] * 3
    assert [stem[10:] for stem in stems] == ["-head", "-w-worker", "-w-worker"]
    [(name, pods)] = cluster.later.items()
    assert name.startswith("eval-")
    assert pods == tuple(f"default/{each}" for each in cluster.pods)
    [submitter] = [each.object for each in cluster.loaded.later]
    assert submitter["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "200Mi"}
    assert submitter["spec"]["containers"][0]["image"] == "ray"
    owners = {each.metadata.controller.name for each in cluster.pods.values() if each.metadata.controller is not None}
    assert owners == {stems[0].removesuffix("-head")}


def test_a_submitter_s_own_template_counts(load: Load) -> None:
    own = "submitterPodTemplate: {spec: {schedulerName: mine, containers: [{name: s}]}}"
    [made] = load(ray_job(own)).loaded.later
    assert (made.object["spec"]["schedulerName"], made.object["spec"]["containers"]) == ("mine", [{"name": "s"}])


@pytest.mark.parametrize("mode", ["HTTPMode", "InteractiveMode", "SidecarMode"])
def test_other_modes_have_no_pod_of_their_own(load: Load, mode: str) -> None:
    cluster = load(ray_job(f"submissionMode: {mode}"))
    assert (len(cluster.pods), cluster.later) == (3, {})
    containers = [each.name for each in next(iter(cluster.pods.values())).spec.containers]
    assert containers == ["head", *(["ray-job-submitter"] if mode == "SidecarMode" else [])]


def test_kuberay_makes_no_gang_of_a_ray_job_and_a_warning_says_so(load: Load) -> None:
    cluster = load(ray_job(labels=GANG))
    assert cluster.loaded.created == {"Pod": 3}
    assert "KubeRay with --batch-scheduler=scheduler-plugins makes nothing of a RayJob" in cluster.loaded.warnings[0]


def test_a_job_for_a_cluster_that_is_there_has_a_submitter_alone(load: Load) -> None:
    cluster = load(ray("RayJob", "clusterSelector: {ray.io/cluster: other}"))
    assert len(cluster.pods) == 1
    assert "its submitter is simulated as if that one ran" in cluster.loaded.warnings[0]


def test_the_cluster_of_a_service_is_a_gang_by_the_service_s_label(load: Load) -> None:
    cluster = load(ray("RayService", f"rayClusterConfig: {CLUSTER % 2}", labels=GANG))
    names = {pod.labels["ray.io/cluster"] for pod in cluster.pods.values()}
    [name] = names
    assert cluster.group(name)[0] == 3
    assert {pod.spec.scheduler_name for pod in cluster.pods.values()} == {"scheduler-plugins-scheduler"}


@pytest.mark.parametrize("kind", ["RayJob", "RayService"])
def test_a_suspended_one_has_no_pods_and_a_warning_says_so(load: Load, kind: str) -> None:
    cluster = load(ray(kind, "suspend: true"))
    assert cluster.pods == {}
    assert "it is suspended" in cluster.loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(ray("RayJob", "entrypoint: x"), ".rayClusterSpec: Required value", id="no cluster"),
        pytest.param(ray("RayService", "serveConfigV2: x"), ".rayClusterConfig: Required value", id="nor of a service"),
        pytest.param(ray_job("submissionMode: Mail"), ".submissionMode: one of K8sJobMode, SidecarMode,", id="a mode"),
        pytest.param(
            ray_job(replicas=2**31), ".rayClusterSpec.workerGroupSpecs[0].replicas: 2147483648 is more", id="too many"
        ),
        pytest.param(ray_job(replicas=-1), ".rayClusterSpec.workerGroupSpecs[0].replicas: a number of 0", id="too few"),
        pytest.param(
            ray_job("submitterPodTemplate: x"), ".submitterPodTemplate: an object is wanted", id="no template"
        ),
    ],
)
def test_what_is_wrong_is_named(load: Load, text: str, said: str) -> None:
    with pytest.raises(DecodeError) as failed:
        load(text)
    assert f"objects.yaml:1: $.spec{said}" in str(failed.value)
