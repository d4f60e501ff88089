"""Pods as the controllers of apps/v1 and batch/v1 make them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: train, namespace: team}\nspec: {%s}\n"


def test_pods_of_an_indexed_job_have_their_index_in_name_label_and_annotation(load: Load) -> None:
    pods = load(JOB % "parallelism: 2, completions: 2, completionMode: Indexed, template: {spec: {hostname: h}}").pods
    assert [name.rsplit("-", 1)[0] for name in pods] == ["train-0", "train-1"]
    for index, pod in enumerate(pods.values()):
        key = "batch.kubernetes.io/job-completion-index"
        assert (pod.labels[key], pod.metadata.annotations[key], pod.labels["job-name"]) == (
            str(index),
            str(index),
            "train",
        )
        owner = pod.metadata.controller
        assert owner is not None
        assert (owner.api_version, owner.kind, owner.name) == ("batch/v1", "Job", "train")
        assert pod.labels["batch.kubernetes.io/controller-uid"] == owner.uid


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param("", 1, id="one, if nothing is said"),
        pytest.param("parallelism: 4", 4, id="a work queue"),
        pytest.param("parallelism: 4, completions: 2", 2, id="no more than are to complete"),
        pytest.param("parallelism: 2, completions: 4", 2, id="no more than run side by side"),
        pytest.param("parallelism: 0", 0, id="none"),
    ],
)
def test_a_job_has_as_many_pods_as_run_side_by_side_at_first(load: Load, spec: str, count: int) -> None:
    assert len(load(JOB % spec).pods) == count


def test_a_suspended_job_has_no_pods_and_a_warning_says_so(load: Load) -> None:
    cluster = load(JOB % "parallelism: 4, suspend: true")
    assert cluster.pods == {}
    [warning] = cluster.loaded.warnings
    assert warning.endswith("objects.yaml:1: Job team/train: it is suspended: its pods are not simulated")


def test_pods_of_a_stateful_set_are_numbered_from_its_first_ordinal(load: Load) -> None:
    spec = "{replicas: 2, ordinals: {start: 3}, podManagementPolicy: Parallel}"
    pods = load(f"apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {{name: db}}\nspec: {spec}").pods
    assert list(pods) == ["db-3", "db-4"]
    assert [pod.labels["apps.kubernetes.io/pod-index"] for pod in pods.values()] == ["3", "4"]
    assert {owner.kind for pod in pods.values() for owner in pod.metadata.owner_references} == {"StatefulSet"}


def test_pods_of_a_stateful_set_come_one_after_the_other_unless_it_says_otherwise(load: Load) -> None:
    cluster = load("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\nspec: {replicas: 3}")
    assert list(cluster.pods) == ["db-0"]
    assert cluster.later == {"db-1": ("default/db-0",), "db-2": ("default/db-1",)}


@pytest.mark.parametrize(
    ("kind", "stem"),
    [pytest.param("Deployment", "web-", id="by way of one"), pytest.param("ReplicaSet", "web", id="itself")],
)
def test_pods_of_a_deployment_belong_to_a_replica_set(load: Load, kind: str, stem: str) -> None:
    pods = load(f"apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: web}}\nspec: {{replicas: 2}}").pods
    [owner] = {(owner.kind, owner.name) for pod in pods.values() for owner in pod.metadata.owner_references}
    assert owner[0] == "ReplicaSet"
    assert owner[1].startswith(stem)
    assert all(name.startswith(f"{owner[1]}-") for name in pods)


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(
            "metadata: {name: p, ownerReferences: [{kind: Job, name: train, uid: u}], namespace: team}",
            id="a pod of it",
        ),
    ],
)
def test_a_job_of_which_there_are_pods_is_left_to_them(load: Load, pod: str) -> None:
    assert list(load(JOB % "parallelism: 2" + f"---\napiVersion: v1\nkind: Pod\n{pod}\n").pods) == ["p"]
