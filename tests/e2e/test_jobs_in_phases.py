"""Jobs whose members come in phases, made as their controllers make them, with the extender killed in the middle of each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.history import violations
from tests.e2e.pair import Pair

REPLICATED_JOB = "jobset.sigs.k8s.io/replicatedjob-name"
ROLE = "training.kubeflow.org/job-role"
RESTARTED = 30.0  # seconds in which an extender that was killed serves again
Kill = Callable[[], None]


@pytest.fixture
def pair(cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]) -> Pair:
    made = Pair.of(cluster.plane, tmp_path)
    programs.extend(made)
    return made.start()


@pytest.fixture(params=["once", "killed in the middle"])
def middle(request: pytest.FixtureRequest, cluster: Cluster, pair: Pair) -> Iterator[Kill]:
    """What happens between two phases."""
    cluster.judged = True  # a phase is less than minMember: each test looks at its own members

    def kill() -> None:
        if request.param != "once":
            cluster.killed = True
            pair.extender.kill()
            cluster.await_back(pair.extender.start)

    yield kill
    assert cluster.violations(dict.fromkeys(cluster.min_members(), 1)) == [], "no node carries more than it has"


def started_whole(cluster: Cluster, *names: str) -> None:
    """These members, which make one phase, were never bound in part for longer than a commit takes."""
    keys = {f"default/{name}" for name in names}
    history = [change for change in cluster.recorder.history() if change.pod.name in keys]
    groups = {change.pod.group: len(names) for change in history}
    assert not violations(history, groups, {}, ended=time.monotonic(), killed=cluster.killed)


def kept(pair: Pair, group: str) -> int:
    """For how many members to come, or pieces of what they ask for, room is kept."""
    room = pair.extender.gang(group).get("roomKept")
    return len(room["nodes"]) if room else 0


def test_trainer_s_initializers_run_before_its_nodes_which_start_whole(
    cluster: Cluster, pair: Pair, middle: Kill
) -> None:
    """minMember counts them all; the nodes are made once the initializers are complete."""
    for number in range(3):
        cluster.node(f"n{number}", cpu="4")
    cluster.pod_group("beta", 5, minResources={"cpu": "11", "memory": "5Gi"}, scheduleTimeoutSeconds=100)
    initializers = [f"beta-{name}-initializer-0" for name in ("dataset", "model")]
    for name in initializers:
        label = {REPLICATED_JOB: name.removeprefix("beta-").removesuffix("-0")}
        cluster.pod(name, group="beta", labels=label, requests={"cpu": "1", "memory": "1Gi"})
    cluster.recorder.await_bound(*initializers, within=15)
    cluster.recorder.wait(lambda: cluster.verdict_on_group("beta")[1] == "MembersToCome", within=10, what="it is told")
    cluster.pod("single", requests={"cpu": "3"})
    cluster.recorder.await_message("single", "had their room reserved for a gang", within=15)
    middle()
    cluster.recorder.wait(lambda: kept(pair, "default/beta") == 3, within=RESTARTED, what="the room is kept")
    for name in initializers:
        succeed(cluster, name)
    nodes = [f"beta-node-0-{number}" for number in range(3)]
    for name in nodes[:2]:
        cluster.pod(name, group="beta", labels={REPLICATED_JOB: "node"}, requests={"cpu": "3", "memory": "1Gi"})
    cluster.recorder.settle()
    assert not set(nodes) & cluster.recorder.bound(), "the nodes start whole"
    cluster.pod(nodes[2], group="beta", labels={REPLICATED_JOB: "node"}, requests={"cpu": "3", "memory": "1Gi"})
    cluster.recorder.await_bound(*nodes, within=RESTARTED)
    started_whole(cluster, *nodes)
    assert not cluster.recorder.node_of("single")
    cluster.recorder.wait(lambda: cluster.verdict_on_group("beta")[0] == "True", within=10, what="it is told")


def test_an_extender_that_was_away_while_the_initializers_ended_knows_of_them_and_keeps_their_room(
    cluster: Cluster, pair: Pair
) -> None:
    cluster.judged = cluster.killed = True
    cluster.node("n0", cpu="8")
    cluster.pod_group("beta", 4, minResources={"cpu": "5"})
    initializers = [f"beta-{name}-initializer-0" for name in ("dataset", "model")]
    for name in initializers:
        cluster.pod(name, group="beta", labels={REPLICATED_JOB: "initializer"}, requests={"cpu": "1"})
    cluster.recorder.await_bound(*initializers, within=15)
    cluster.recorder.wait(lambda: cluster.verdict_on_group("beta")[1] == "MembersToCome", within=10, what="it is told")
    pair.extender.kill()
    for name in initializers:
        succeed(cluster, name)
    cluster.pod("single", requests={"cpu": "6"})
    cluster.await_back(pair.extender.start)
    cluster.recorder.wait(lambda: kept(pair, "default/beta") == 2, within=RESTARTED, what="the room is kept again")
    cluster.recorder.await_message("single", "had their room reserved for a gang", within=15)
    nodes = [f"beta-node-0-{number}" for number in range(2)]
    cluster.pod(nodes[0], group="beta", labels={REPLICATED_JOB: "node"}, requests={"cpu": "1"})
    cluster.recorder.settle()
    assert not cluster.recorder.node_of(nodes[0])
    cluster.pod(nodes[1], group="beta", labels={REPLICATED_JOB: "node"}, requests={"cpu": "1"})
    cluster.recorder.await_bound(*nodes, within=RESTARTED)
    started_whole(cluster, *nodes)


def test_a_train_job_s_nodes_start_and_the_launcher_that_waits_for_them_has_room(
    cluster: Cluster, pair: Pair, middle: Kill
) -> None:
    """dependsOn of the JobSet: the launcher's Job is made once the nodes are ready; each pod says that there are two Jobs."""
    for number in range(2):
        cluster.node(f"n{number}", cpu="4")
    cluster.pod_group("gamma", 3, minResources={"cpu": "7", "memory": "3Gi"})
    nodes = [f"gamma-node-0-{number}" for number in range(2)]
    for name in nodes:
        cluster.recorder.settle()
        assert not cluster.recorder.bound(), "one of two nodes waits"
        labels = {REPLICATED_JOB: "node", "jobset.sigs.k8s.io/global-replicas": "2"}
        cluster.pod(name, group="gamma", labels=labels, requests={"cpu": "3", "memory": "1Gi"})
    cluster.recorder.await_bound(*nodes, within=15)
    started_whole(cluster, *nodes)
    middle()
    cluster.recorder.wait(lambda: kept(pair, "default/gamma") == 1, within=RESTARTED, what="the room is kept")
    for number in range(2):
        cluster.pod(f"single-{number}", requests={"cpu": "1"})
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 3, within=15, what="one single pod is bound")
    cluster.pod("gamma-launcher", group="gamma", labels={REPLICATED_JOB: "launcher"}, requests={"cpu": "1"})
    cluster.recorder.await_bound("gamma-launcher", within=15)
    assert len(cluster.recorder.bound()) == 4


def test_mpi_s_workers_start_and_its_launcher_has_room(cluster: Cluster, pair: Pair, middle: Kill) -> None:
    """launcherCreationPolicy WaitForWorkersReady: the launcher is made once the workers are ready."""
    for number in range(2):
        cluster.node(f"n{number}", cpu="7")
    cluster.pod_group("test", 3, minResources={"cpu": "13", "memory": "18Gi"}, scheduleTimeoutSeconds=0)
    workers = ["test-worker-0", "test-worker-1"]
    cluster.pod(workers[0], group="test", labels={ROLE: "worker"}, requests={"cpu": "6", "memory": "8Gi"})
    cluster.recorder.settle()
    assert not cluster.recorder.bound(), "one of two workers waits"
    cluster.pod(workers[1], group="test", labels={ROLE: "worker"}, requests={"cpu": "6", "memory": "8Gi"})
    cluster.recorder.await_bound(*workers, within=15)
    started_whole(cluster, *workers)
    middle()
    cluster.recorder.wait(lambda: kept(pair, "default/test") == 1, within=RESTARTED, what="the room is kept")
    for number in range(2):
        cluster.pod(f"single-{number}", requests={"cpu": "1"})
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 3, within=15, what="one single pod is bound")
    cluster.pod("test-launcher", group="test", labels={ROLE: "launcher"}, requests={"cpu": "1", "memory": "2Gi"})
    cluster.recorder.await_bound("test-launcher", within=15)
    assert len(cluster.recorder.bound()) == 4


def test_two_spark_applications_of_which_one_fits_start_one_after_the_other(
    cluster: Cluster, pair: Pair, middle: Kill
) -> None:
    """The operator's PodGroup has minMember 1, and minResources for the driver and all executors."""
    for number in range(2):
        cluster.node(f"n{number}", cpu="4")
    for name in ("first", "second"):
        cluster.pod_group(f"{name}-pg", 1, minResources={"cpu": "7", "memory": "7Gi"})
        cluster.pod(
            f"{name}-driver",
            group=f"{name}-pg",
            labels={"spark-role": "driver"},
            requests={"cpu": "1", "memory": "1Gi"},
        )
        if name == "first":
            cluster.recorder.await_bound("first-driver", within=15)
    cluster.recorder.await_message("second-driver", "Insufficient cpu", within=15)
    middle()
    cluster.recorder.wait(lambda: kept(pair, "default/first-pg") > 0, within=RESTARTED, what="the room is kept")
    cluster.recorder.settle()
    assert cluster.recorder.bound() == {"first-driver"}
    executors = [f"first-exec-{number}" for number in range(2)]
    for name in executors:
        labels = {"spark-role": "executor"}
        cluster.pod(name, group="first-pg", labels=labels, requests={"cpu": "3", "memory": "3Gi"})
    cluster.recorder.await_bound(*executors, within=15)
    assert kept(pair, "default/first-pg") == 0
    assert not cluster.recorder.node_of("second-driver")
    for name in (*executors, "first-driver"):
        cluster.delete_pod(name)
    cluster.recorder.await_bound("second-driver", within=RESTARTED)


def succeed(cluster: Cluster, name: str) -> None:
    """As its kubelet says it."""
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    cluster.api.patch(path, {"status": {"phase": "Succeeded"}})
