"""What was decided of a gang stands on its PodGroup, and in its events."""

from __future__ import annotations

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
