"""What users try first: a gang short of a member, a gang too big, two gangs for one place, objects in the wrong order."""

from __future__ import annotations

from functools import partial

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

TOO_FEW = "cannot find enough sibling pods, current pods number: 2, minMember of group: 3"


def test_two_of_three_wait_and_say_why_then_the_third_starts_them_all(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    cluster.pod_group("nginx", min_member=3)
    for name in ("nginx-a", "nginx-b"):
        cluster.pod(name, group="nginx")
    for name, text in (("nginx-a", "cannot find enough sibling pods"), ("nginx-b", TOO_FEW)):
        refused = partial(_is_refused, cluster, name, f"pre-filter pod {name} {text}")
        eventually(refused, within=8, what=f"{name} is refused by filter, after its early start if it had one")
    assert cluster.recorder.bound() == set()
    cluster.pod("nginx-c", group="nginx")
    cluster.recorder.await_bound("nginx-a", "nginx-b", "nginx-c", within=5)


def _is_refused(cluster: Cluster, name: str, text: str) -> bool:
    condition = cluster.recorder.condition(name)
    said = (condition.get("status"), condition.get("reason"))
    return said == ("False", "Unschedulable") and text in condition.get("message", "")


def test_a_member_that_waits_says_how_many_there_are_by_now(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    cluster.pod_group("slow", min_member=3)
    cluster.pod("slow-a", group="slow")
    cluster.recorder.await_message("slow-a", "current pods number: 1", within=5)
    cluster.recorder.settle()
    cluster.pod("slow-b", group="slow")
    for name in ("slow-a", "slow-b"):
        cluster.recorder.await_message(name, "current pods number: 2", within=5)


def test_a_pod_group_that_cannot_be_read_stops_no_other_gang(cluster: Cluster, module_programs: Pair) -> None:
    """The pattern of the CRD allows what is no quantity."""
    cluster.node("node-1")
    cluster.pod_group("odd", min_member=2, minResources={"cpu": "1e1.5"})
    cluster.pod("odd-a", group="odd")
    cluster.recorder.await_message("odd-a", "odd is invalid: ", within=5)
    cluster.pod_group("fine", min_member=2)
    for name in ("fine-a", "fine-b"):
        cluster.pod(name, group="fine")
    cluster.recorder.await_bound("fine-a", "fine-b", within=5)


@pytest.mark.parametrize(
    ("min_member", "expected"),
    [
        pytest.param(3, 3, id="the gang of three starts, and no more than that"),
        pytest.param(4, 0, id="the gang of four does not start at all"),
    ],
)
def test_six_pods_with_room_for_three(min_member: int, expected: int, cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="3")
    cluster.pod_group("web", min_member=min_member)
    for number in range(6):
        cluster.pod(f"web-{number}", group="web", requests={"cpu": "1"})
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) >= expected, within=5, what=f"{expected} bound")
    cluster.recorder.settle()
    assert len(cluster.recorder.bound()) == expected


def test_of_two_interleaved_gangs_one_runs_and_the_other_follows(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="4")
    cluster.pod_group("older", min_member=4)
    cluster.pod_group("younger", min_member=4)
    gangs = {name: {f"{name}-{number}" for number in range(4)} for name in ("older", "younger")}
    for number in range(4):
        for name in gangs:
            cluster.pod(f"{name}-{number}", group=name, requests={"cpu": "1"})
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 4, within=5, what="one gang is bound")
    cluster.recorder.settle()
    assert cluster.recorder.bound() == gangs["older"]
    assert cluster.recorder.were_promised(*gangs["younger"]) == set()
    for name in gangs["older"]:
        cluster.delete_pod(name)
    cluster.recorder.await_bound(*gangs["younger"], within=5)


def test_a_pod_group_that_is_created_after_its_pods(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    names = [f"late-{number}" for number in range(3)]
    for name in names:
        cluster.pod(name, group="late")
    cluster.recorder.await_message(names[0], "PodGroup not found", within=5)
    cluster.pod_group("late", min_member=3)
    cluster.recorder.await_bound(*names, within=2)


def test_members_beyond_the_minimum_come_later_one_by_one(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    cluster.pod_group("elastic", min_member=2)
    cluster.pod("elastic-0", group="elastic")
    cluster.pod("elastic-1", group="elastic")
    cluster.recorder.await_bound("elastic-0", "elastic-1", within=2)
    cluster.pod("elastic-2", group="elastic")
    cluster.recorder.await_bound("elastic-2", within=2)


def test_lowering_min_member_starts_the_gang_that_waits(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1")
    cluster.pod_group("web", min_member=3)
    for name in ("web-0", "web-1"):
        cluster.pod(name, group="web")
    cluster.recorder.await_message("web-1", TOO_FEW, within=5)
    cluster.api.patch("/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/web", {"spec": {"minMember": 2}})
    cluster.recorder.await_bound("web-0", "web-1", within=2)


def test_a_gang_too_big_for_the_cluster_starts_when_a_node_is_added(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-1", cpu="2")
    cluster.pod_group("web", min_member=4)
    names = [f"web-{number}" for number in range(4)]
    for name in names:
        cluster.pod(name, group="web", requests={"cpu": "1"})
    for name in names:
        cluster.recorder.await_message(name, "nodes are available", within=5)
    cluster.node("node-2", cpu="2")
    cluster.recorder.await_bound(*names, within=5)


def test_nothing_is_left_of_a_gang_that_was_deleted_while_it_started(cluster: Cluster, module_programs: Pair) -> None:
    """As its members go, the room that they free starts others that are about to go as well."""
    cluster.node("node-1", cpu="3")
    names = [f"web-{number}" for number in range(6)]
    for _ in range(4):
        cluster.pod_group("web", min_member=3)
        for name in names:
            cluster.pod(name, group="web", requests={"cpu": "1"})
        cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 3, within=5, what="three are bound")
        cluster.delete_all_pods()
        cluster.delete_pod_group("web")
    cluster.pod_group("web", min_member=4)
    for name in names:
        cluster.pod(name, group="web", requests={"cpu": "1"})
    cluster.recorder.await_message("web-5", "nodes are available", within=5)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set()
