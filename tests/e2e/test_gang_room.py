"""Which gang gets the room: fragmented nodes, a member that fits nowhere, members that change in number, names that are alike."""

from __future__ import annotations

from typing import Any

import pytest

from extender.scheduler.actions.verdicts import WAITING_SECONDS
from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually
from tests.e2e.test_gated_gangs import CPU, GATED

BOTH_WAYS = pytest.mark.parametrize("gate", [pytest.param(GATED, id="gated"), pytest.param({}, id="plain")])


def await_reason(cluster: Cluster, group: str, reason: str) -> str:
    """The message of the group's condition, once it has this reason; that a gang waits for members is written late."""
    within = WAITING_SECONDS + 6.0
    eventually(lambda: cluster.condition_of_group(group)[0] == reason, within=within, what=f"{group} says {reason}")
    return cluster.condition_of_group(group)[1]


def min_member_seen(pair: Pair, group: str) -> int:
    return int(pair.extender.gang(f"default/{group}")["gang"]["minMember"])


@BOTH_WAYS
def test_fragmented_nodes(gate: Any, cluster: Cluster, module_programs: Pair) -> None:
    """There is room for the gang in all, and on no node for one member: others have it until a node comes free."""
    names = [f"web-{number}" for number in range(2)]
    for number in range(4):
        cluster.node(f"node-{number}", cpu="3")
        cluster.pod(f"filler-{number}", requests={"cpu": "2"}, nodeName=f"node-{number}")
    cluster.pod_group("web", min_member=2)
    for name in names:
        cluster.pod(name, group="web", requests={"cpu": "2"}, **gate)
    assert await_reason(cluster, "web", "InsufficientResources") == "minMember of 2 does not fit: Insufficient cpu"
    others = [f"small-{number}" for number in range(4)]
    for name in others:
        cluster.pod(name, requests=CPU)
    cluster.recorder.await_bound(*others, within=5)
    assert cluster.recorder.were_promised(*names) == set()
    for number in range(2):
        cluster.delete_pod(f"filler-{number}")
    cluster.recorder.await_bound(*names, within=5)


@BOTH_WAYS
def test_a_member_that_fits_nowhere(gate: Any, cluster: Cluster, module_programs: Pair) -> None:
    """Nothing is held for its gang: a younger one has the room at once."""
    cluster.node("node-1", cpu="4")
    cluster.pod_group("older", min_member=3)
    older = [f"older-{number}" for number in range(3)]
    for name, cpu in zip(older, ("1", "1", "100"), strict=True):
        cluster.pod(name, group="older", requests={"cpu": cpu}, **gate)
    await_reason(cluster, "older", "InsufficientResources")
    cluster.pod_group("younger", min_member=4)
    younger = [f"younger-{number}" for number in range(4)]
    for name in younger:
        cluster.pod(name, group="younger", requests=CPU, **gate)
    cluster.recorder.await_bound(*younger, within=5)
    cluster.recorder.settle()
    assert cluster.recorder.were_promised(*older) == set()
    assert module_programs.extender.held() == 0


@BOTH_WAYS
def test_min_member_raised_and_lowered_while_the_gang_waits(gate: Any, cluster: Cluster, module_programs: Pair) -> None:
    cluster.pod_group("web", min_member=2)
    names = [f"web-{number}" for number in range(4)]
    cluster.node("full", cpu="1")
    for name in names[:2]:
        cluster.pod(name, group="web", requests=CPU, **gate)
    await_reason(cluster, "web", "InsufficientResources")
    cluster.change_min_member("web", 4)
    await_reason(cluster, "web", "QuorumMissing")
    cluster.node("empty", cpu="4")
    cluster.recorder.settle()
    assert cluster.recorder.were_promised(*names) == set(), "two of four start nothing"
    cluster.change_min_member("web", 3)
    cluster.pod(names[2], group="web", requests=CPU, **gate)
    cluster.recorder.await_bound(*names[:3], within=5)


def test_min_member_raised_while_the_gang_runs_and_lowered_again(cluster: Cluster, module_programs: Pair) -> None:
    """Those that run go on; members that come then wait for the new number."""
    cluster.node("node-1", cpu="4")
    cluster.pod_group("web", min_member=2)
    for name in ("web-0", "web-1"):
        cluster.pod(name, group="web", requests=CPU)
    cluster.recorder.await_bound("web-0", "web-1", within=5)
    cluster.change_min_member("web", 4)
    eventually(lambda: min_member_seen(module_programs, "web") == 4, within=5, what="the extender has seen it")
    cluster.pod("web-2", group="web", requests=CPU)
    cluster.recorder.await_message("web-2", "current pods number: 3, minMember of group: 4", within=5)
    assert cluster.recorder.bound() == {"web-0", "web-1"}
    cluster.change_min_member("web", 2)
    cluster.recorder.await_bound("web-2", within=5)


@BOTH_WAYS
def test_groups_of_the_same_name_in_two_namespaces(gate: Any, cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="8")
    for namespace, members in (("team-a", 3), ("team-b", 2)):
        cluster.namespace(namespace)
        cluster.pod_group("web", min_member=3, namespace=namespace)
        for number in range(members):
            cluster.pod(f"web-{number}", group="web", namespace=namespace, requests=CPU, **gate)
    cluster.recorder.await_bound(*(f"team-a/web-{number}" for number in range(3)), within=5)
    cluster.recorder.settle()
    assert cluster.recorder.were_promised("team-b/web-0", "team-b/web-1") == set(), "two of three are two of three"
    cluster.pod("web-2", group="web", namespace="team-b", requests=CPU, **gate)
    cluster.recorder.await_bound(*(f"team-b/web-{number}" for number in range(3)), within=5)


def test_plain_workers_before_their_master_start_once_they_are_gated(cluster: Cluster, module_programs: Pair) -> None:
    """kube-scheduler's own filters refuse a worker whose master is only held: the group says so, and holds nothing."""
    cluster.node("node-1", cpu="4", labels={"topology.kubernetes.io/zone": "a"})
    term = {"labelSelector": {"matchLabels": {"role": "master"}}, "topologyKey": "topology.kubernetes.io/zone"}
    near: dict[str, Any] = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    cluster.pod_group("job", min_member=3)
    for name in ("worker-0", "worker-1"):
        cluster.pod(name, group="job", requests=CPU, **near)
    cluster.pod("master", group="job", labels={"role": "master"}, requests=CPU)
    assert "scheduling gate" in await_reason(cluster, "job", "NeedsGate")
    cluster.recorder.settle()
    assert cluster.recorder.were_promised("worker-0", "worker-1", "master") == set()
    for name in ("worker-0", "worker-1"):
        cluster.delete_pod(name)
        cluster.pod(f"gated-{name}", group="job", requests=CPU, **GATED, **near)
    cluster.recorder.await_bound("gated-worker-0", "gated-worker-1", "master", within=8)
