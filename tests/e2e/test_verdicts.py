"""What was decided of a gang stands on its PodGroup, and in its events."""

from __future__ import annotations

from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def test_a_gang_is_rejected_for_want_of_room_and_starts_when_there_is_some(
    cluster: Cluster, module_programs: Pair
) -> None:
    cluster.node("node-1", cpu="2")
    cluster.pod_group("train", min_member=3)
    names = [f"train-{number}" for number in range(3)]
    for name in names:
        cluster.pod(name, group="train", requests={"cpu": "1"})
    recorder = cluster.recorder
    recorder.await_message(names[0], "minMember of 3 does not fit: Insufficient cpu", within=5)
    eventually(
        lambda: cluster.verdict_on_group("train") == ("False", "InsufficientResources"),
        within=5,
        what="the condition says no",
    )

    cluster.node("node-2", cpu="2")
    recorder.await_bound(*names, within=5)
    eventually(
        lambda: cluster.verdict_on_group("train") == ("True", "GangScheduled"), within=5, what="the condition says yes"
    )

    def reasons() -> set[str]:
        return {event["reason"] for event in cluster.api.items(EVENTS) if event["regarding"]["kind"] == "PodGroup"}

    eventually(lambda: {"GangRejected", "GangScheduled"} <= reasons(), within=5, what="events say both")


def test_kubectl_get_podgroup_tells_of_a_gang_from_its_start_to_its_end(
    cluster: Cluster, module_programs: Pair
) -> None:
    """A start, a member that is lost, a preemption, a finish, and a gang that something else has bound in part: each within five seconds.
    That members are missing is told later, since for some seconds they may still be being made."""

    def line(name: str) -> tuple[str, ...]:
        columns = cluster.plane.kubectl("get", "podgroups.scheduling.x-k8s.io", name, "--no-headers").split()
        return tuple(columns[1:-1])

    def says(name: str, *columns: str, within: float = 5) -> None:
        try:
            eventually(lambda: line(name) == columns, within=within, what=f"{name} says {columns}")
        except AssertionError:
            assert line(name) == columns

    def conditions(name: str) -> dict[str, str]:
        path = f"{paths.POD_GROUPS.format(namespace='default')}/{name}"
        found = cluster.api.get(path).get("status", {}).get("conditions", [])
        return {each["type"]: f"{each['status']} {each['reason']}" for each in found}

    def phase(name: str, phase: str) -> None:
        cluster.api.patch(f"{paths.PODS.format(namespace='default')}/{name}/status", {"status": {"phase": phase}})

    cluster.node("node-1", cpu="3")
    cluster.pod_group("job", min_member=3)
    names = [f"job-{number}" for number in range(3)]
    for name in names[:2]:
        cluster.pod(name, group="job", requests={"cpu": "1"})
    says("job", "Pending", "0/3", "QuorumMissing", within=15)
    cluster.pod(names[2], group="job", requests={"cpu": "1"})
    cluster.recorder.await_bound(*names, within=5)
    says("job", "Scheduled", "3/3", "GangScheduled")
    for name in names:
        phase(name, "Running")
    says("job", "Running", "3/3", "GangScheduled")

    cluster.delete_pod(names[2])
    eventually(lambda: line("job")[1:] == ("2/3", "BelowMinMember"), within=5, what="its line says so")
    assert conditions("job")["Degraded"] == "True BelowMinMember"
    cluster.pod("job-3", group="job", requests={"cpu": "1"})
    cluster.recorder.await_bound("job-3", within=15)
    eventually(lambda: conditions("job").get("Degraded") == "False MinMember", within=5, what="it is whole again")

    cluster.pod_group("urgent", min_member=3)
    urgent = [f"urgent-{number}" for number in range(3)]
    for name in urgent:
        cluster.pod(name, group="urgent", requests={"cpu": "1"}, priority=1000)
    cluster.recorder.await_bound(*urgent, within=30)
    says("job", "Pending", "0/3", "GangPreempted")
    assert conditions("job")["DisruptionTarget"] == "True PreemptionByScheduler"

    for name in urgent:
        phase(name, "Succeeded")
    says("urgent", "Finished", "3/3", "Succeeded")
    assert conditions("urgent")["Finished"] == "True Succeeded"

    cluster.pod_group("part", min_member=3)
    cluster.pod("part-0", group="part", requests={"cpu": "1"})
    cluster.pod("part-1", group="part", requests={"cpu": "1"}, scheduler_name="elsewhere")
    says("part", "Pending", "0/3", "ForeignScheduler")
    assert conditions("part")["Degraded"] == "True ForeignScheduler"
