"""Pods and PodGroup as Volcano's controller makes them of a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from extender.api.codec import DecodeError
from extender.client.interface import VOLCANO_POD_GROUPS
from tests.unit.client.workloads.conftest import Cluster

Load = Callable[[str], Cluster]
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: vj, annotations: {gang-extender.dev/match-policy: once-satisfied}}
spec: {%s}
"""
TEMPLATE = "template: {spec: {%s containers: [{name: c, resources: {requests: {cpu: 2}}}]}}"


def task(name: str, replicas: int, *more: str, spec: str = "") -> str:
    return "{" + ", ".join([f"name: {name}", f"replicas: {replicas}", *more, TEMPLATE % spec]) + "}"


PS, WORKERS = task("ps", 1), task("worker", 4)


def vcjob(*fields: str, tasks: tuple[str, ...] = (PS, WORKERS)) -> str:
    return JOB % ", ".join([*fields, f"tasks: [{', '.join(tasks)}]"])


def group_of(cluster: Cluster) -> Any:
    [group] = cluster.api.list_page(VOLCANO_POD_GROUPS).items
    return group


def test_a_pod_for_each_replica_of_each_task(load: Load) -> None:
    cluster = load(vcjob("schedulerName: gang-scheduler", "queue: research"))
    assert list(cluster.pods) == ["vj-ps-0", *(f"vj-worker-{index}" for index in range(4))]
    group, pod = group_of(cluster), cluster.pods["vj-worker-2"]
    assert group.metadata.name.startswith("vj-")
    assert group.metadata.annotations == {"gang-extender.dev/match-policy": "once-satisfied"}
    assert pod.metadata.annotations["scheduling.k8s.io/group-name"] == group.metadata.name
    for keys in (pod.labels, pod.metadata.annotations):
        assert (keys["volcano.sh/task-spec"], keys["volcano.sh/task-index"]) == ("worker", "2")
        assert keys["volcano.sh/queue-name"] == group.spec.queue == "research"
    assert {each.spec.scheduler_name for each in cluster.pods.values()} == {"gang-scheduler"}


@pytest.mark.parametrize(
    ("fields", "tasks", "minimum", "minima", "cpu"),
    [
        pytest.param([], (PS, WORKERS), 5, {"ps": 1, "worker": 4}, "10", id="all, if nothing is said"),
        pytest.param(["minAvailable: 3"], (PS, WORKERS), 3, {"ps": 1, "worker": 4}, "6", id="an elastic job"),
        pytest.param(
            ["minAvailable: 4"], (PS, task("worker", 4, "minAvailable: 2")), 4, {"ps": 1, "worker": 2}, "8",
            id="more than the tasks' minima",
        ),
        pytest.param(
            [], (task("", 2, "partitionPolicy: {totalPartitions: 2, partitionSize: 1, minPartitions: 1}"),),
            1, {"default0": 1}, "2", id="partitions, of a task without a name",
        ),
    ],
)  # fmt: skip
def test_the_pod_group_counts_as_the_job_does(
    load: Load, fields: list[str], tasks: tuple[str, ...], minimum: int, minima: Any, cpu: str
) -> None:
    spec = group_of(load(vcjob(*fields, tasks=tasks))).spec
    assert (spec.min_member, dict(spec.min_task_member), str(spec.min_resources["cpu"])) == (minimum, minima, cpu)


def test_resources_are_those_of_the_more_important_tasks(load: Load) -> None:
    large = "priorityClassName: high, nodeSelector: {a: b}, "
    text = vcjob("minAvailable: 1", tasks=(PS, task("worker", 1, spec=large).replace("cpu: 2", "cpu: 7")))
    classes = "---\napiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 10\n"
    assert str(group_of(load(text + classes)).spec.min_resources["cpu"]) == "7"


def test_topology_and_class_go_to_the_pod_group_and_partitions_are_sub_groups(load: Load) -> None:
    classes = "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 10\n---\n"
    topology = "networkTopology: {mode: hard, highestTierAllowed: 2}"
    partitions = "partitionPolicy: {totalPartitions: 2, partitionSize: 2}"
    cluster = load(classes + vcjob(topology, "priorityClassName: high", tasks=(task("w", 4, partitions),)))
    spec = group_of(cluster).spec
    assert (spec.network_topology.highest_tier_allowed, spec.priority_class_name) == (2, "high")
    assert [each.name for each in spec.sub_group_policy] == ["w"]
    assert {pod.priority for pod in cluster.pods.values()} == {10}


def test_a_task_that_depends_on_others_comes_once_as_many_of_these_run_as_they_need(load: Load) -> None:
    tasks = (
        task("a", 3, "minAvailable: 2"),
        task("b", 1),
        task("both", 1, "dependsOn: {name: [a, b]}"),
        task("any", 1, "dependsOn: {name: [b, a], iteration: any}"),
    )
    cluster = load(vcjob(tasks=tasks))
    assert list(cluster.pods) == ["vj-a-0", "vj-a-1", "vj-a-2", "vj-b-0"]
    assert cluster.later == {
        "vj-both-0": ("default/vj-a-0", "default/vj-a-1", "default/vj-b-0"),
        "vj-any-0": ("default/vj-b-0",),
    }


def test_claims_of_the_job_are_its_pods_volumes(load: Load) -> None:
    volumes = "volumes: [{mountPath: /a, volumeClaimName: data}, {mountPath: /b, volumeClaim: {}}]"
    cluster = load(vcjob(volumes))
    [volume] = cluster.pods["vj-ps-0"].spec.volumes
    claim = volume.persistent_volume_claim
    assert claim is not None
    assert claim.claim_name == "data"
    assert "spec.volumes[1].volumeClaim is not simulated" in cluster.loaded.warnings[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(JOB % "queue: q", ".tasks: Required value", id="no tasks"),
        pytest.param(vcjob(tasks=(PS, PS)), ".tasks: two tasks have one name", id="one name"),
        pytest.param(vcjob(tasks=(task("a", -1),)), ".tasks[0].replicas: a number of 0 or more", id="too few"),
        pytest.param(vcjob(tasks=(task("a", 2**31),)), ".tasks[0].replicas: 2147483648 is more than", id="too many"),
        pytest.param(
            vcjob(tasks=(task("a", 1, "minAvailable: 2"),)), ".tasks[0].minAvailable: 2 is more than replicas", id="minimum"
        ),
        pytest.param(vcjob("minAvailable: 6"), ".minAvailable: 6 is more than the replicas of all tasks", id="the job's"),
        pytest.param(
            vcjob(tasks=(task("a", 1, "dependsOn: {name: [z]}"),)), ".tasks[0].dependsOn.name: no task of that name: 'z'",
            id="no such task",
        ),
        pytest.param(
            vcjob(tasks=(task("a", 1, "dependsOn: {name: z}"),)), ".tasks[0].dependsOn.name: a list is wanted", id="no list"
        ),
        pytest.param(vcjob("minAvailable: x"), ".minAvailable: a number of 0 or more is wanted, got 'x'", id="no number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(load: Load, text: str, said: str) -> None:
    with pytest.raises(DecodeError) as failed:
        load(text)
    assert f"objects.yaml:1: $.spec{said}" in str(failed.value)


def test_what_tasks_wait_for_is_bounded(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extender.client.embedded.workloads.volcano_job.MOST_PODS", 10)
    needs = ["[a]", "[a, b]", "[b, a]"]
    tasks = (
        task("a", 4),
        task("b", 4),
        *(task(f"t{n}", 1, f"dependsOn: {{name: {each}}}") for n, each in enumerate(needs)),
    )
    with pytest.raises(DecodeError, match=r"\.tasks\[3\]\.dependsOn: the job's tasks wait for more than 10 pods"):
        load(vcjob(tasks=tasks))
