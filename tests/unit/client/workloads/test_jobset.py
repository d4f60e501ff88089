"""Pods as JobSet's Jobs make them, and in which order."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.api.codec import DecodeError
from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
HEAD = "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: js}\nspec:\n"
JOB = "{name: %s, replicas: %d, %s template: {spec: {parallelism: 2, completions: 2, template: {spec: {}}}}}"


def replicated(name: str, replicas: int = 1, more: str = "") -> str:
    return JOB % (name, replicas, more)


def test_each_pod_has_the_labels_of_its_job(load: Load) -> None:
    jobs = ", ".join([replicated("driver", more="groupName: g,"), replicated("workers", 2)])
    pods = load(HEAD + f"  replicatedJobs: [{jobs}]").pods
    assert [name.rsplit("-", 1)[0] for name in pods] == [
        "js-driver-0-0", "js-driver-0-1", "js-workers-0-0", "js-workers-0-1", "js-workers-1-0", "js-workers-1-1",
    ]  # fmt: skip
    last = list(pods.values())[-1]
    keys = {key.removeprefix("jobset.sigs.k8s.io/"): value for key, value in last.labels.items() if "jobset" in key}
    assert keys.pop("jobset-uid")
    assert len(keys.pop("job-key")) == 40
    assert keys == {
        "jobset-name": "js",
        "replicatedjob-name": "workers",
        "restart-attempt": "0",
        "replicatedjob-replicas": "2",
        "global-replicas": "3",
        "group-name": "default",
        "group-replicas": "2",
        "job-index": "1",
        "job-global-index": "2",
        "job-group-index": "1",
    }
    assert last.metadata.annotations["batch.kubernetes.io/job-completion-index"] == "1"
    assert last.metadata.annotations["jobset.sigs.k8s.io/job-global-index"] == "2"
    owner = last.metadata.controller
    assert owner is not None
    assert owner.name == "js-workers-1"


def test_a_job_that_depends_on_another_comes_once_that_one_runs_or_has_ended(load: Load) -> None:
    depends = "dependsOn: [{name: %s, status: %s}],"
    jobs = [
        replicated("init"),
        replicated("node", more=depends % ("init", "Complete")),
        replicated("launcher", more=depends % ("node", "Ready")),
    ]
    cluster = load(HEAD + f"  replicatedJobs: [{', '.join(jobs)}]")
    first = {f"default/{name}" for name in cluster.pods}
    assert {name.rsplit("-", 1)[0] for name in cluster.pods} == {"js-init-0-0", "js-init-0-1"}
    waits = [each.after for each in cluster.loaded.later]
    assert [after is not None and after.ended for after in waits] == [True, True, False, False]
    assert [set(pods) == first for pods in cluster.later.values()] == [True, True, False, False]


def test_in_order_each_replicated_job_waits_for_the_one_before(load: Load) -> None:
    cluster = load(
        HEAD
        + f"  startupPolicy: {{startupPolicyOrder: InOrder}}\n  replicatedJobs: [{replicated('a')}, {replicated('b')}]"
    )
    assert [name[:6] for name in cluster.pods] == ["js-a-0", "js-a-0"]
    assert [name[:6] for name in cluster.later] == ["js-b-0", "js-b-0"]


def test_what_comes_later_and_depends_on_nothing_that_is_there_is_refused(load: Load) -> None:
    with pytest.raises(
        DecodeError, match=r"objects.yaml:1: \$.spec.replicatedJobs\[0\].dependsOn\[0\].name: no replicated job"
    ):
        load(HEAD + f"  replicatedJobs: [{replicated('a', more='dependsOn: [{name: b, status: Ready}],')}]")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("  suspend: true\n", "is suspended", id="a suspended one"),
        pytest.param(
            "  replicatedJobs: [{name: a, template: {metadata: {annotations: "
            "{alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}}}]",
            "alpha.jobset.sigs.k8s.io/exclusive-topology is not simulated",
            id="a domain for each Job",
        ),
        pytest.param(
            "  replicatedJobs: [{name: a, template: {spec: {scheduling: {schedulingPolicy: {gang: {}}}}}}]",
            "spec.scheduling of its Jobs makes no PodGroup",
            id="PodGroups of its Jobs",
        ),
    ],
)
def test_what_is_not_simulated_is_said(load: Load, text: str, said: str) -> None:
    [warning] = load(HEAD + text).loaded.warnings
    assert said in warning
