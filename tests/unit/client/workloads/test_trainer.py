"""Pods and PodGroup as Trainer makes them by a runtime of the files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
TEMPLATE = "template: {spec: {containers: [{name: %s, resources: {requests: {cpu: 1}, limits: {memory: 1Gi}}}]}}"
RUNTIME = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: %s
metadata: {name: torch}
spec:
  mlPolicy: {numNodes: 2, %s}
  %s
  template: {spec: {replicatedJobs: [%s]}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: tune}
spec: {runtimeRef: {kind: %s, name: torch}, %s}
"""
GANG = "podGroupPolicy: {coscheduling: {scheduleTimeoutSeconds: 100}}"


def job(name: str, step: str = "", more: str = "", container: str = "node") -> str:
    labels = f"metadata: {{labels: {{trainer.kubeflow.org/trainjob-ancestor-step: {step}}}}}, " if step else ""
    return f"{{name: {name}, {more} template: {{{labels} spec: {{{TEMPLATE % container}}}}}}}"


NODE = job("node", "trainer")


def runtime(
    jobs: str = NODE,
    kind: str = "TrainingRuntime",
    policy: str = GANG,
    of_job: str = "suspend: false",
    ml: str = "torch: {}",
) -> str:
    return RUNTIME % (kind, ml, policy, jobs, kind, of_job)


@pytest.mark.parametrize("kind", ["TrainingRuntime", "ClusterTrainingRuntime"])
def test_a_train_job_has_the_nodes_of_its_runtime_and_a_pod_group_of_its_name(load: Load, kind: str) -> None:
    cluster = load(runtime(kind=kind))
    assert [name.rsplit("-", 1)[0] for name in cluster.pods] == ["tune-node-0-0", "tune-node-0-1"]
    assert cluster.group("tune") == (2, {"cpu": "2", "memory": "2147483648"}, 100)
    for pod in cluster.pods.values():
        assert pod.labels["scheduling.x-k8s.io/pod-group"] == pod.labels["jobset.sigs.k8s.io/jobset-name"] == "tune"
        assert pod.spec.scheduler_name == "default-scheduler"
    assert (cluster.loaded.unknown, cluster.loaded.warnings) == ({}, [])


def test_the_job_s_nodes_and_resources_come_before_those_of_the_runtime(load: Load) -> None:
    cluster = load(runtime(of_job="trainer: {numNodes: 3, resourcesPerNode: {requests: {cpu: 4}}}"))
    assert cluster.group("tune")[:2] == (3, {"cpu": "12", "memory": "3221225472"})
    requests = [pod.spec.containers[0].resources.requests["cpu"].milli_value for pod in cluster.pods.values()]
    assert requests == [4000] * 3


def test_members_of_all_steps_count_and_the_nodes_come_after_the_initializers(load: Load) -> None:
    depends = "dependsOn: [{name: dataset-initializer, status: Complete}],"
    jobs = ", ".join([job("dataset-initializer", "dataset-initializer"), job("node", "trainer", depends)])
    cluster = load(runtime(jobs))
    assert (len(cluster.pods), len(cluster.later), cluster.group("tune")[0]) == (1, 2, 3)


def test_a_launcher_that_is_a_node_is_one_of_them(load: Load) -> None:
    jobs = ", ".join([job("launcher", "trainer"), job("node")])
    cluster = load(runtime(jobs, of_job="trainer: {numNodes: 4}", ml="mpi: {runLauncherAsNode: true}"))
    assert [name.rsplit("-", 1)[0] for name in cluster.pods] == [
        "tune-launcher-0-0",
        *(f"tune-node-0-{n}" for n in range(3)),
    ]


def test_without_a_policy_there_is_no_pod_group(load: Load) -> None:
    cluster = load(runtime(policy="x: 1"))
    assert cluster.loaded.created == {"Pod": 2}
    assert all("scheduling.x-k8s.io/pod-group" not in pod.labels for pod in cluster.pods.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(runtime(of_job="suspend: true"), "it is suspended", id="suspended"),
        pytest.param(
            runtime().replace("{name: torch}", "{name: x}"),
            "its TrainingRuntime 'torch' is not in the files",
            id="none",
        ),
    ],
)
def test_what_is_not_simulated_is_said(load: Load, text: str, said: str) -> None:
    cluster = load(text)
    assert cluster.pods == {}
    assert said in cluster.loaded.warnings[0]
