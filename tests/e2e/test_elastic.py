"""Gangs that change, and groups that belong together, on the real control plane."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

CPU = {"cpu": "1"}
GROUPS = "gang-extender.dev/groups"
ROLES = "gang-extender.dev/roles"
MATCH_POLICY = "gang-extender.dev/match-policy"
START = "gang-extender.dev/start"
ROLE = "gang-extender.dev/role"


def pods(cluster: Cluster, group: str, *names: str, **more: object) -> list[str]:
    for name in names:
        cluster.pod(name, group=group, requests=CPU, **more)  # type: ignore[arg-type]
    return list(names)


def test_two_groups_start_together_though_the_second_comes_later(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("server", 1, annotations={GROUPS: "clients"})
    server = pods(cluster, "server", "server-0")
    cluster.recorder.await_message(
        "server-0", "PodGroup default/clients, which it is to start together with, is not found", within=5
    )
    cluster.pod_group("clients", 3)
    clients = pods(cluster, "clients", "client-0", "client-1")
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    clients += pods(cluster, "clients", "client-2")
    cluster.recorder.await_bound(*server, *clients, within=10)


def test_a_group_that_does_not_fit_keeps_its_companion_waiting_and_both_say_so(
    cluster: Cluster, module_programs: Pair
) -> None:
    cluster.node("node-1", cpu="3")
    for name, other in (("a", "b"), ("b", "a")):
        cluster.pod_group(name, 2, annotations={GROUPS: other})
    names = [*pods(cluster, "a", "a-0", "a-1"), *pods(cluster, "b", "b-0", "b-1")]
    text = "PodGroups that start together (default/a, default/b) do not fit: Insufficient cpu"
    for name in names:
        cluster.recorder.await_message(name, text, within=10)
    assert cluster.recorder.bound() == set()
    cluster.node("node-2", cpu="1")
    cluster.recorder.await_bound(*names, within=10)
    eventually(
        lambda: cluster.condition_of_group("b")[0] == "GangScheduled",
        within=5,
        what="b's condition says that it starts",
    )


def test_workers_wait_for_their_master(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("train", 4, annotations={ROLES: "master=1,worker=3"})
    workers = pods(cluster, "train", *(f"worker-{number}" for number in range(4)), labels={ROLE: "worker"})
    cluster.recorder.await_message(
        "worker-3", "cannot find enough sibling pods of role master, current pods number: 0", within=5
    )
    assert cluster.recorder.bound() == set()
    pods(cluster, "train", "master-0", labels={ROLE: "master"})
    cluster.recorder.wait(
        lambda: "master-0" in cluster.recorder.bound() and len(cluster.recorder.bound() & set(workers)) == 3,
        within=10,
        what="the master and three workers are bound",
    )


def test_a_member_of_a_gang_that_has_been_whole_is_replaced_at_once(cluster: Cluster, module_programs: Pair) -> None:
    """Two of its three are gone, and one comes back: the quorum is not asked for again."""
    cluster.node("node-1", cpu="3")
    cluster.pod_group("serve", 3, annotations={MATCH_POLICY: "once-satisfied"})
    names = pods(cluster, "serve", "serve-0", "serve-1", "serve-2")
    cluster.recorder.await_bound(*names, within=10)
    for name in names[:2]:
        cluster.delete_pod(name)
    pods(cluster, "serve", "again")
    cluster.recorder.await_bound("again", within=5)


def test_a_batch_that_a_restart_cut_short_is_completed(cluster: Cluster, module_programs: Pair) -> None:
    """With only-waiting further members start in batches: a new leader knows a fraction of one by the record of its start."""
    extender = module_programs.extender
    cluster.node("node-1", cpu="4")
    cluster.pod_group("train", 2, annotations={MATCH_POLICY: "only-waiting"})
    cluster.recorder.await_bound(*pods(cluster, "train", "train-0", "train-1"), within=10)
    first = {cluster.recorder.annotations(name)[START] for name in ("train-0", "train-1")}
    assert len(first) == 1, "members that start together have one record"
    extender.kill()
    now = datetime.now(UTC).isoformat()
    pods(cluster, "train", "train-2", nodeName="node-1", annotations={START: f"{now} 2"})
    pods(cluster, "train", "train-3")
    extender.start()
    cluster.recorder.await_bound("train-3", within=20)
    began, quorum = cluster.recorder.annotations("train-3")[START].split()
    assert (datetime.fromisoformat(began), quorum) == (datetime.fromisoformat(now), "2")
