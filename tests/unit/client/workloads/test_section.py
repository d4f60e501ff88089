"""What is wrong in a workload ends with file, line and field, and costs no memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api.codec import DecodeError
from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
VERSIONS = {
    "Job": "batch/v1",
    "StatefulSet": "apps/v1",
    "JobSet": "jobset.x-k8s.io/v1alpha2",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "MPIJob": "kubeflow.org/v2beta1",
    "RayCluster": "ray.io/v1",
}
MANY = "2147483648"


@pytest.mark.parametrize(
    ("kind", "spec", "said"),
    [
        pytest.param("Job", f"parallelism: {MANY}", f".parallelism: {MANY} is more than the 150000 pods", id="Job"),
        pytest.param("StatefulSet", f"replicas: {MANY}", ".replicas: ", id="StatefulSet"),
        pytest.param("JobSet", f"replicatedJobs: [{{replicas: {MANY}}}]", ".replicatedJobs[0].replicas: ", id="JobSet"),
        pytest.param(
            "JobSet",
            f"replicatedJobs: [{{template: {{spec: {{parallelism: {MANY}}}}}}}]",
            ".replicatedJobs[0].template.spec.parallelism: ",
            id="a Job of a JobSet",
        ),
        pytest.param(
            "LeaderWorkerSet", f"leaderWorkerTemplate: {{size: {MANY}}}", ".leaderWorkerTemplate.size: ", id="LWS"
        ),
        pytest.param(
            "PyTorchJob",
            f"pytorchReplicaSpecs: {{Worker: {{replicas: {MANY}}}}}",
            ".pytorchReplicaSpecs.Worker.replicas: ",
            id="PyTorchJob",
        ),
        pytest.param(
            "MPIJob",
            f"mpiReplicaSpecs: {{Launcher: {{}}, Worker: {{replicas: {MANY}}}}}",
            ".mpiReplicaSpecs.Worker.replicas: ",
            id="MPIJob",
        ),
        pytest.param(
            "RayCluster",
            f"workerGroupSpecs: [{{replicas: {MANY}}}]",
            ".workerGroupSpecs[0].replicas: ",
            id="RayCluster",
        ),
        pytest.param("Job", "parallelism: -1", ".parallelism: a number of 0 or more is wanted, got -1", id="too few"),
        pytest.param(
            "Job", "parallelism: true", ".parallelism: a number of 0 or more is wanted, got True", id="no number"
        ),
        pytest.param("JobSet", "replicatedJobs: 3", ".replicatedJobs: a list is wanted, got 3", id="no list"),
        pytest.param("JobSet", "replicatedJobs: [3]", ".replicatedJobs[0]: an object is wanted", id="no object"),
        pytest.param("Job", "template: x", ".template: an object is wanted, got 'x'", id="no template"),
        pytest.param("Job", "completionMode: {}", ".completionMode: a text is wanted, got {}", id="no text"),
        pytest.param("Job", "suspend: 'yes'", ".suspend: true or false is wanted, got 'yes'", id="neither yes nor no"),
    ],
)
def test_a_field_that_is_wrong_is_named(load: Load, kind: str, spec: str, said: str) -> None:
    with pytest.raises(DecodeError) as failed:
        load(f"apiVersion: {VERSIONS[kind]}\nkind: {kind}\nmetadata: {{name: w}}\nspec: {{{spec}}}")
    assert f"objects.yaml:1: $.spec{said}" in str(failed.value)


def test_more_pods_than_a_cluster_may_have_are_not_made(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each number is within its bound; their product is not."""
    monkeypatch.setattr("extender.client.embedded.load.MOST_PODS", 10)
    with pytest.raises(DecodeError, match=r"objects.yaml:1: \$.spec: more than the 10 pods"):
        load(
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: w}\n"
            "spec: {replicatedJobs: [{name: a, replicas: 150000, template: {spec: {parallelism: 150000}}}]}"
        )


def test_a_workload_without_a_name_is_refused(load: Load) -> None:
    with pytest.raises(DecodeError, match=r"objects.yaml:1: \$.metadata.name: Required value"):
        load("apiVersion: batch/v1\nkind: Job\nspec: {}")


def test_misspelt_fields_of_a_template_are_told_once(load: Load) -> None:
    loaded = load(
        "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {name: w}\n"
        "spec: {workerGroupSpecs: [{groupName: g, replicas: 3, template: {spec: {contaners: []}}}]}"
    ).loaded
    [told] = loaded.misspelt
    assert told.endswith("objects.yaml:1: in its pods: $.spec.contaners: unknown field; did you mean containers?")
