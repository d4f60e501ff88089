"""Pods and PodGroups as the Training Operator and the MPI operator make them with their flag for gangs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api.codec import DecodeError
from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
TEMPLATE = "{spec: {%s containers: [{name: c, resources: {requests: {cpu: %s}, limits: {cpu: 9, memory: 1Gi}}}]}}"
TRAINING = """\
apiVersion: kubeflow.org/v1
kind: %s
metadata: {name: job, annotations: {gang-extender.dev/match-policy: once-satisfied}}
spec:
  runPolicy: {%s}
  %s: {%s}
"""
PREFIX = "training.kubeflow.org/"


def replicas(type_: str, count: int, cpu: str = "1", spec: str = "") -> str:
    return f"{type_}: {{replicas: {count}, template: {TEMPLATE % (spec, cpu)}}}"


def pytorch(policy: str = "", master: str = "") -> str:
    types = [*([master] if master else []), replicas("Worker", 2)]
    return TRAINING % ("PyTorchJob", policy, "pytorchReplicaSpecs", ", ".join(types))


def test_a_training_job_has_a_pod_for_each_replica_and_a_pod_group_with_its_annotations(load: Load) -> None:
    cluster = load(pytorch(master=replicas("Master", 1, "500m")))
    assert list(cluster.pods) == ["job-master-0", "job-worker-0", "job-worker-1"]
    assert cluster.group("job") == (3, {"cpu": "2500m", "memory": "3221225472"}, None)
    worker = cluster.pods["job-worker-1"]
    assert worker.labels == {
        "scheduling.x-k8s.io/pod-group": "job",
        f"{PREFIX}operator-name": "pytorchjob-controller",
        f"{PREFIX}job-name": "job",
        f"{PREFIX}replica-type": "worker",
        f"{PREFIX}replica-index": "1",
    }
    assert cluster.pods["job-master-0"].labels[f"{PREFIX}job-role"] == "master"
    assert {pod.spec.scheduler_name for pod in cluster.pods.values()} == {"our-scheduler"}


def test_without_a_master_the_first_worker_has_its_role(load: Load) -> None:
    roles = {name: pod.labels.get(f"{PREFIX}job-role") for name, pod in load(pytorch()).pods.items()}
    assert roles == {"job-worker-0": "master", "job-worker-1": None}


def test_the_scheduler_that_a_template_names_is_not_overwritten(load: Load) -> None:
    pods = load(pytorch(master=replicas("Master", 1, spec="schedulerName: other,"))).pods
    assert [pod.spec.scheduler_name for pod in pods.values()] == ["other", "our-scheduler", "our-scheduler"]


@pytest.mark.parametrize(
    ("policy", "group"),
    [
        pytest.param("minAvailable: 2", (2, {"cpu": "2", "memory": "2147483648"}, None), id="fewer than all"),
        pytest.param(
            "minResources: {cpu: 7}, scheduleTimeoutSeconds: 30", (3, {"cpu": "7"}, 30), id="as the user says"
        ),
    ],
)
def test_the_scheduling_policy_goes_to_the_pod_group(load: Load, policy: str, group: Any) -> None:
    cluster = load(pytorch(f"schedulingPolicy: {{{policy}}}", replicas("Master", 1)))
    assert cluster.group("job") == group


@pytest.mark.parametrize(
    ("kind", "field", "chief"),
    [
        ("TFJob", "tfReplicaSpecs", "Chief"),
        ("XGBoostJob", "xgbReplicaSpecs", "Master"),
        ("JAXJob", "jaxReplicaSpecs", ""),
    ],
)
def test_the_other_jobs_of_the_operator_are_of_the_same_form(load: Load, kind: str, field: str, chief: str) -> None:
    types = [*([replicas(chief, 1)] if chief else []), replicas("Worker", 1)]
    pods = load(TRAINING % (kind, "", field, ", ".join(types))).pods
    assert list(pods) == [*([f"job-{chief.lower()}-0"] if chief else []), "job-worker-0"]


def test_a_pod_group_of_the_file_is_kept(load: Load) -> None:
    group = (
        "---\napiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata: {name: job}\nspec: {minMember: 1}\n"
    )
    assert load(pytorch() + group).group("job") == (1, {}, None)


MPI = """\
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: solve}
spec:
  %s
  runPolicy: {%s}
  mpiReplicaSpecs: {%s}
"""


def mpi(fields: str = "slotsPerWorker: 1", policy: str = "", launcher: str = "") -> str:
    return MPI % (fields, policy, ", ".join([launcher or replicas("Launcher", 1, "1"), replicas("Worker", 2, "6")]))


def test_an_mpi_job_has_its_workers_a_launcher_s_job_and_a_pod_group_with_a_time_out_of_nought(load: Load) -> None:
    cluster = load(mpi(launcher=replicas("Launcher", 1, "1", "schedulerName: other,")))
    assert list(cluster.pods)[1:] == ["solve-worker-0", "solve-worker-1"]
    launcher = next(iter(cluster.pods.values()))
    assert launcher.name.startswith("solve-launcher-")
    assert cluster.group("solve") == (3, {"cpu": "13", "memory": "3221225472"}, 0)
    assert {pod.spec.scheduler_name for pod in cluster.pods.values()} == {"our-scheduler"}
    roles = [pod.labels[f"{PREFIX}job-role"] for pod in cluster.pods.values()]
    assert roles == ["launcher", "worker", "worker"]
    assert cluster.pods["solve-worker-1"].labels[f"{PREFIX}replica-index"] == "1"
    assert f"{PREFIX}replica-index" not in launcher.labels


def test_a_launcher_that_waits_for_the_workers_comes_later(load: Load) -> None:
    cluster = load(mpi("launcherCreationPolicy: WaitForWorkersReady"))
    assert list(cluster.pods) == ["solve-worker-0", "solve-worker-1"]
    assert list(cluster.later.values()) == [("default/solve-worker-0", "default/solve-worker-1")]


def test_a_launcher_that_works_too_has_the_first_index(load: Load) -> None:
    indices = [pod.labels[f"{PREFIX}replica-index"] for pod in load(mpi("runLauncherAsWorker: true")).pods.values()]
    assert indices == ["0", "1", "2"]


def test_fewer_than_all_are_the_launcher_and_so_many_workers(load: Load) -> None:
    assert load(mpi(policy="schedulingPolicy: {minAvailable: 2}")).group("solve")[:2] == (
        2, {"cpu": "7", "memory": "2147483648"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [pytest.param(mpi(policy="suspend: true"), id="MPIJob"), pytest.param(pytorch("suspend: true"), id="PyTorchJob")],
)
def test_a_suspended_job_has_no_pods_and_a_warning_says_so(load: Load, text: str) -> None:
    cluster = load(text)
    assert cluster.pods == {}
    assert "it is suspended" in cluster.loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: j}\nspec: {}",
            "$.spec.pytorchReplicaSpecs: Required value", id="no replicas"),
        pytest.param(MPI % ("slotsPerWorker: 1", "", ""), "$.spec.mpiReplicaSpecs.Launcher: Required value", id="no launcher"),
        pytest.param(pytorch(master=replicas("Master", 1, "lots")), "resources.cpu: ", id="no quantity"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(load: Load, text: str, said: str) -> None:
    with pytest.raises(DecodeError) as failed:
        load(text)
    assert said in str(failed.value)
