"""Gangs whose pods carry the extender's gate: kube-scheduler hears of them when their gang has a plan, and not before."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

GATE = "scheduling.x-k8s.io/gang"
GATED: dict[str, Any] = {"schedulingGates": [{"name": GATE}]}
ZONE = "topology.kubernetes.io/zone"
CPU = {"cpu": "1"}


def gang(cluster: Cluster, name: str, size: int, *, gated: Any = True, **spec: Any) -> list[str]:
    """Its pods' names. gated: True, False, or which of them."""
    names = [f"{name}-{number}" for number in range(size)]
    for number, pod in enumerate(names):
        gate = GATED if gated is True or (gated and number in gated) else {}
        cluster.pod(pod, group=name, requests=CPU, **gate, **spec)
    return names


def filter_calls(extender: Extender) -> int:
    """Verbs answered for filter so far."""
    text = extender.ops("/metrics")[1]
    found = re.findall(r'^gang_extender_request_duration_seconds_count\{[^}]*verb="filter"[^}]*\} (\S+)', text, re.M)
    return int(sum(float(each) for each in found))


def attempts(cluster: Cluster, names: list[str]) -> list[str]:
    """What kube-scheduler has said of these pods."""
    return [event for name in names for event in cluster.events(name) if event.startswith("FailedScheduling")]


def started(cluster: Cluster, nodes: int) -> set[tuple[str, str]]:
    """A gated gang of four, as soon as all are bound: what each was nominated for, and whether that was where it runs."""
    for number in range(nodes):
        cluster.node(f"node-{number}", cpu="2")
    cluster.pod_group("train", min_member=4)
    names = gang(cluster, "train", 4)
    cluster.recorder.await_bound(*names, within=5)
    places = {f"default/{name}": cluster.recorder.node_of(name) for name in names}
    nominations = {(change.pod.name, change.pod.nominated) for change in cluster.recorder.history()}
    nominated = {(name, node) for name, node in nominations if node}
    assert nominated <= places.items()
    return nominated


@pytest.mark.parametrize("nodes", [2, 101])
def test_a_gated_gang_starts_whole(nodes: int, cluster: Cluster, module_programs: Pair) -> None:
    """With one patch a member: kube-scheduler offers all nodes, and our filter says where."""
    assert started(cluster, nodes) == set()
    assert attempts(cluster, [f"train-{number}" for number in range(4)]) == []


def test_where_not_all_nodes_are_offered_gated_members_are_nominated_first(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """kube-scheduler asks about that node alone then."""
    settings = {"percentageOfNodesToScore": 0}
    programs.extend(Pair.of(cluster.plane, tmp_path, settings=settings, change=sampled).start())
    assert {name for name, _ in started(cluster, 101)} == {f"default/train-{number}" for number in range(4)}
    assert attempts(cluster, [f"train-{number}" for number in range(4)]) == []


def test_an_extender_that_is_told_too_much_nominates_members_that_were_refused(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """It believes that all nodes are offered, and a third of them are."""
    programs.extend(Pair.of(cluster.plane, tmp_path, change=sampled).start())
    started(cluster, 300)


def sampled(config: dict[str, Any]) -> None:
    """kube-scheduler stops looking at 100 nodes that would do."""
    config["percentageOfNodesToScore"] = 1


def test_gated_and_plain_members_work_side_by_side(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("mixed", min_member=4)
    names = gang(cluster, "mixed", 4, gated={1, 3})
    cluster.recorder.await_bound(*names, within=3)


def test_a_pod_group_created_after_its_gated_pods(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    names = gang(cluster, "late", 3)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    cluster.pod_group("late", min_member=3)
    cluster.recorder.await_bound(*names, within=3)


def test_a_refused_gang_stays_gated_without_one_attempt_and_starts_when_room_comes(
    cluster: Cluster, module_programs: Pair
) -> None:
    cluster.node("node-1", cpu="2")
    cluster.pod_group("big", min_member=3)
    before = filter_calls(module_programs.extender)
    names = gang(cluster, "big", 3)
    eventually(
        lambda: cluster.condition_of_group("big")[0] == "InsufficientResources", within=5, what="the group says why"
    )
    assert cluster.condition_of_group("big")[1] == "minMember of 3 does not fit: Insufficient cpu"
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    assert attempts(cluster, names) == []
    assert filter_calls(module_programs.extender) == before
    cluster.node("node-2", cpu="2")
    cluster.recorder.await_bound(*names, within=3)
    assert attempts(cluster, names) == []


def test_a_gang_whose_members_are_missing_says_so(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("few", min_member=3)
    names = gang(cluster, "few", 2)
    eventually(
        lambda: cluster.condition_of_group("few") == ("QuorumMissing", "fewer pods exist than minMember of 3"),
        within=14,
        what="the group says that members are missing",
    )
    cluster.pod("few-2", group="few", requests=CPU, **GATED)
    cluster.recorder.await_bound(*names, "few-2", within=3)


def test_a_foreign_gate_holds_the_gang_back_and_is_left_alone(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("held", min_member=2)
    names = gang(cluster, "held", 1)
    both: dict[str, Any] = {"schedulingGates": [{"name": "example.com/quota"}, {"name": GATE}]}
    cluster.pod("held-1", group="held", requests=CPU, **both)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
    pod: Any = cluster.recorder.pod("held-1")
    assert pod["spec"]["schedulingGates"] == both["schedulingGates"]
    cluster.api.call(
        "PATCH",
        "/api/v1/namespaces/default/pods/held-1",
        {"spec": {"schedulingGates": [{"$patch": "delete", "name": "example.com/quota"}]}},
        "application/strategic-merge-patch+json",
    )
    cluster.recorder.await_bound(*names, "held-1", within=3)


def test_of_two_interleaved_gated_gangs_the_older_runs_and_the_other_follows(
    cluster: Cluster, module_programs: Pair
) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("older", min_member=4)
    cluster.pod_group("younger", min_member=4)
    gangs = {name: [f"{name}-{number}" for number in range(4)] for name in ("older", "younger")}
    for number in range(4):
        for name in gangs:
            cluster.pod(f"{name}-{number}", group=name, requests=CPU, **GATED)
    cluster.recorder.await_bound(*gangs["older"], within=3)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set(gangs["older"])
    assert attempts(cluster, gangs["younger"]) == []
    for name in gangs["older"]:
        cluster.delete_pod(name)
    cluster.recorder.await_bound(*gangs["younger"], within=3)


def zones(cluster: Cluster, count: int, cpu: str = "2") -> None:
    for number in range(count):
        cluster.node(f"node-{number}", cpu=cpu, labels={ZONE: f"zone-{number}"})


@pytest.mark.parametrize(
    "gated",
    [
        pytest.param(True, id="all gated"),
        pytest.param(False, id="all plain"),
        pytest.param({0, 2, 5}, id="some gated"),
    ],
)
def test_six_members_with_a_zone_spread(gated: Any, cluster: Cluster, module_programs: Pair) -> None:
    zones(cluster, 3)
    cluster.pod_group("spread", min_member=6)
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"scheduling.x-k8s.io/pod-group": "spread"}},
    }
    names = gang(cluster, "spread", 6, gated=gated, topologySpreadConstraints=[spread])
    cluster.recorder.await_bound(*names, within=5)


def near(role: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"role": role}}, "topologyKey": ZONE}
    return {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def test_gated_workers_with_affinity_to_a_master_that_is_created_last(cluster: Cluster, module_programs: Pair) -> None:
    zones(cluster, 2, cpu="4")
    cluster.pod_group("job", min_member=4)
    workers = [f"worker-{number}" for number in range(3)]
    for name in workers:
        cluster.pod(name, group="job", requests=CPU, **GATED, **near("master"))
    cluster.pod("master", group="job", labels={"role": "master"}, requests=CPU, **GATED)
    cluster.recorder.await_bound(*workers, "master", within=5)
    assert attempts(cluster, workers) == []


def test_plain_workers_with_affinity_to_a_master_are_told_to_be_gated(cluster: Cluster, module_programs: Pair) -> None:
    """The master comes last: one that came first may be held for an early start, and workers that come then pass in-tree."""
    zones(cluster, 2, cpu="4")
    cluster.pod_group("job", min_member=4)
    for number in range(3):
        cluster.pod(f"worker-{number}", group="job", requests=CPU, **near("master"))
    cluster.pod("master", group="job", labels={"role": "master"}, requests=CPU)
    eventually(lambda: GATE in cluster.condition_of_group("job")[1], within=20, what="the group says what it needs")
    cluster.recorder.settle(within=20)
    assert cluster.recorder.bound() == set()


def test_a_restart_between_plan_and_bind(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """Some members were freed of their gate when the extender died, and kube-scheduler was not there."""
    pair = Pair.of(cluster.plane, tmp_path).start()
    programs.extend(pair)
    pair.scheduler.stop()
    cluster.killed = True
    cluster.node("node-1", cpu="6")
    cluster.pod_group("train", min_member=6)
    names = gang(cluster, "train", 6)

    def ungated() -> int:
        pods: list[Any] = [cluster.recorder.pod(name) for name in names]
        return sum(pod is not None and not pod["spec"].get("schedulingGates") for pod in pods)

    cluster.recorder.wait(lambda: ungated() > 0, within=5, what="the first gate is gone")
    pair.extender.kill()
    pair.scheduler.start()
    cluster.await_back(pair.extender.start)
    cluster.recorder.await_bound(*names, within=15)


def test_a_planned_node_is_deleted_before_the_members_bind(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """Its members alone are sent elsewhere, before kube-scheduler is back, and the gang starts whole."""
    pair = Pair.of(cluster.plane, tmp_path).start()
    programs.extend(pair)
    pair.scheduler.stop()
    for number in range(3):
        cluster.node(f"node-{number}", cpu="2")
    cluster.pod_group("train", min_member=4)
    recorder, names = cluster.recorder, gang(cluster, "train", 4)

    def places() -> dict[str, str]:
        return pair.extender.places("default/train")

    eventually(lambda: len(places()) == 4 and all(places().values()), within=5, what="every member has a place")
    planned = places()
    lost = planned[names[0]]
    good = {name: node for name, node in planned.items() if node != lost}
    cluster.api.delete(f"/api/v1/nodes/{lost}")
    eventually(lambda: not {"", lost} & set(places().values()), within=5, what="every member has a place elsewhere")
    assert {name: places()[name] for name in good} == good, "a member with a good place keeps it"
    pair.scheduler.start()
    recorder.await_bound(*names, within=10)
    assert lost not in {change.pod.node for change in recorder.history()}
