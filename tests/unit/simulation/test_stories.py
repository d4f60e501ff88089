"""Clusters and what becomes of them: placing, gangs, waits, preemption, volumes; all on virtual time."""

from __future__ import annotations

import json

import pytest

from extender.api import codec
from tests.unit.simulation.conftest import World


def test_pods_go_where_there_is_room_and_the_rest_says_why_not(world: World) -> None:
    world.node("small", cpu="1")
    world.node("large", cpu="4")
    world.pod("two", cpu="2")
    world.pod("ten", cpu="10")
    world.run()
    assert (world.of("two").state, world.of("two").node, world.of("two").bound_at) == ("Scheduled", "large", 0.0)
    assert world.of("ten").state == "Pending"
    assert world.of("ten").message == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_pods_that_have_a_node_stay_there(world: World) -> None:
    world.node("n1", cpu="2")
    world.pod("old", cpu="1", nodeName="n1")
    world.pod("new", cpu="1")
    world.pod("late", cpu="1", priority=-1)
    world.run()
    assert [world.of(name).state for name in ("old", "new", "late")] == ["Placed", "Scheduled", "Pending"]


def test_a_gang_starts_whole_or_not_at_all(world: World) -> None:
    world.node("n1", cpu="2")
    world.node("n2", cpu="2")
    world.pod_group("fits", 3)
    world.pod_group("does-not", 2)
    for i in range(3):
        world.pod(f"fits-{i}", group="fits")
    for i in range(2):
        world.pod(f"does-not-{i}", group="does-not")
    world.run()
    assert world.states() == {"Pending": 2, "Scheduled": 3}
    assert (world.gang("fits").state, world.gang("fits").assigned) == ("Bound", 3)
    assert world.gang("does-not").state == "Denied"
    assert "minMember of 2 does not fit" in world.gang("does-not").message


def test_a_gang_without_its_quorum_says_how_many_there_are(world: World) -> None:
    world.node("n1")
    world.pod_group("nginx", 3)
    world.pod("a", group="nginx")
    world.pod("b", group="nginx")
    world.run()
    gang = world.gang("nginx")
    assert (gang.state, gang.members, gang.min_member) == ("Gathering", 2, 3)
    assert gang.message
    assert "cannot find enough sibling pods, current pods number: 2, minMember of group: 3" in world.of("a").message


def _ten_of_which_one_wants_a_device(world: World, seconds: int) -> None:
    """The plan does not look at devices; DynamicResources does, so the tenth never comes."""
    world.node("n1", cpu="64")
    world.pod_group("ten", 10, scheduleTimeoutSeconds=seconds)
    for i in range(9):
        world.pod(f"p{i}", group="ten")
    world.pod("p9", group="ten", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    world.run()
    assert world.states() == {"Pending": 10}
    assert {pod.attempts for pod in world.report.pods} == {3}  # not one for each second of the wait


def test_a_member_that_never_comes_makes_the_others_time_out_in_virtual_time(world: World) -> None:
    """Once: it is known by then that kube-scheduler has refused it, and nothing has changed since."""
    _ten_of_which_one_wants_a_device(world, 20)
    gang = world.gang("ten")
    assert (world.report.settled_at, gang.state) == (20, "Denied")
    assert gang.message.endswith("kube-scheduler says: DynamicResources: resource claims are not modelled: gpu")


def test_holds_that_would_last_longer_than_such_a_member_is_waited_for_end_with_what_kube_scheduler_says(
    world: World,
) -> None:
    _ten_of_which_one_wants_a_device(world, 40)
    gang = world.gang("ten")
    assert gang.state == "Denied"
    assert gang.message.endswith("kube-scheduler says: DynamicResources: resource claims are not modelled: gpu")
    assert all("kube-scheduler's own filters accept" in world.of(f"p{i}").message for i in range(9))


def test_preemption_makes_room_and_names_the_preemptor(world: World) -> None:
    world.node("n1", cpu="2")
    world.priority_class("high", 1000)
    world.pod("low", cpu="2", nodeName="n1")
    world.pod("high", cpu="2", priorityClassName="high")
    world.run()
    assert (world.of("high").state, world.of("high").node) == ("Scheduled", "n1")
    assert (world.of("low").state, world.of("low").preempted_by) == ("Preempted", "default/high")
    assert world.of("high").attempts == 2


def test_a_gated_pod_is_left_alone(world: World) -> None:
    world.node("n1")
    world.pod("gated", schedulingGates=[{"name": "example.com/wait"}])
    world.run()
    pod = world.of("gated")
    assert (pod.state, pod.attempts) == ("Pending", 0)
    assert pod.message == "Scheduling is blocked due to non-empty scheduling gates"


def test_a_gang_behind_our_gate_is_let_through(world: World) -> None:
    world.node("n1")
    world.pod_group("nginx", 2)
    for name in ("a", "b"):
        world.pod(name, group="nginx", schedulingGates=[{"name": "scheduling.x-k8s.io/gang"}])
    world.run()
    assert world.states() == {"Scheduled": 2}


def test_a_claim_that_waits_for_its_first_consumer_gets_a_volume(world: World) -> None:
    world.node("n1")
    storage = {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}
    world.add("StorageClass", "fast", "storage.k8s.io/v1", **storage)
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}
    world.add("PersistentVolumeClaim", "data", spec=spec)
    world.pod("db", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    world.run()
    assert world.of("db").state == "Scheduled", world.of("db").message


def local_disk(world: World, name: str, node: str) -> None:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    world.add("PersistentVolume", name, spec=spec, status={"phase": "Available"})


def gang_with_disks(world: World, members: int) -> None:
    """Six nodes; each member wants a disk of its own."""
    for i in range(6):
        world.node(f"n{i}", labels={"kubernetes.io/hostname": f"n{i}"})
    local = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    world.add("StorageClass", "local", "storage.k8s.io/v1", **local)
    world.pod_group("db", members)
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    for i in range(members):
        world.add("PersistentVolumeClaim", f"data-{i}", spec=spec)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{i}"}}
        world.pod(f"db-{i}", cpu="100m", group="db", volumes=[volume])


def test_a_gang_is_planned_where_its_disks_are(world: World) -> None:
    gang_with_disks(world, 3)
    for node in ("n1", "n3", "n4"):
        local_disk(world, f"disk-of-{node}", node)
    world.run()
    assert {world.of(f"db-{i}").node for i in range(3)} == {"n1", "n3", "n4"}
    assert {world.of(f"db-{i}").attempts for i in range(3)} == {1}


def test_a_gang_with_too_few_disks_waits_and_no_member_takes_one(world: World) -> None:
    gang_with_disks(world, 3)
    for node in ("n1", "n3"):
        local_disk(world, f"disk-of-{node}", node)
    world.run()
    assert world.states() == {"Pending": 3}
    assert world.gang("db").state == "Denied"
    assert "node(s) didn't find available persistent volumes to bind" in world.of("db-0").message


def test_a_gang_with_a_claim_that_is_not_there_is_not_planned(world: World) -> None:
    gang_with_disks(world, 2)
    local_disk(world, "disk", "n1")
    world.pod("db-2", cpu="100m", group="db", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "none"}}])
    world.run()
    assert world.states() == {"Pending": 3}


def test_an_empty_cluster_ends(world: World) -> None:
    world.pod("lonely")
    world.run()
    assert world.of("lonely").message == "no nodes available to schedule pods"


def test_nothing_to_do(world: World) -> None:
    world.node("n1")
    assert (world.run().pods, world.report.settled_at) == ([], 0.0)


def test_claims_of_devices_are_refused_by_name(world: World) -> None:
    world.node("n1")
    world.pod("gpu", resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    world.run()
    assert world.of("gpu").state == "Pending"
    assert any("resource claims are not modelled: default/gpu" in warning for warning in world.report.warnings)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seed_gives_the_same_report(world: World, seed: int) -> None:
    for i in range(20):
        world.node(f"n{i}")
    for i in range(40):
        world.pod(f"p{i}")
    first, second = (json.dumps(codec.to_builtins(world.run(seed))) for _ in range(2))
    assert first == second


def test_another_seed_chooses_otherwise_among_equals(world: World) -> None:
    for i in range(20):
        world.node(f"n{i}")
    world.pod("one")
    chosen = set()
    for seed in range(8):
        world.run(seed)
        chosen.add(world.of("one").node)
    assert len(chosen) > 1


def test_virtual_time_can_be_limited(world: World) -> None:
    world.node("n1")
    world.pod_group("ten", 10, scheduleTimeoutSeconds=40)
    world.pod("lonely", schedulerName="default-scheduler")
    for i in range(10):
        devices = [{"name": "gpu", "resourceClaimName": "gpu"}] if i == 9 else []
        world.pod(f"p{i}", cpu="100m", group="ten", resourceClaims=devices)
    assert not world.run(until=5).quiet
    assert "WaitingOnPermit" in world.states()


def test_a_gang_preempts_as_a_whole_and_its_victims_name_it(world: World) -> None:
    for i in range(3):
        world.node(f"n{i}", cpu="1")
        world.pod(f"low{i}", cpu="1", nodeName=f"n{i}")
    world.priority_class("high", 1000)
    world.pod_group("vip", 2)
    for i in range(2):
        world.pod(f"vip{i}", group="vip", cpu="1", priorityClassName="high")
    world.run()
    assert world.gang("vip").state == "Bound"
    states = [world.of(f"low{i}") for i in range(3)]
    assert sorted(pod.state for pod in states) == ["Placed", "Preempted", "Preempted"]
    assert {pod.preempted_by for pod in states} == {"", "default/vip"}


def test_no_pod_is_preempted_for_a_gang_that_does_not_fit_even_then(world: World) -> None:
    world.node("n1", cpu="1")
    world.pod("low", cpu="1", nodeName="n1")
    world.priority_class("high", 1000)
    world.pod_group("vip", 2)
    for i in range(2):
        world.pod(f"vip{i}", group="vip", cpu="1", priorityClassName="high")
    world.run()
    assert world.of("low").state == "Placed"
    assert world.states() == {"Placed": 1, "Pending": 2}


def test_a_single_pod_preempts_a_lone_pod_rather_than_a_member_of_a_gang(world: World) -> None:
    world.node("n1", cpu="1")
    world.node("n2", cpu="1")
    world.node("n3", cpu="1")
    world.pod_group("running", 2)
    world.pod("r0", group="running", cpu="1", nodeName="n1")
    world.pod("r1", group="running", cpu="1", nodeName="n2")
    world.pod("lone", cpu="1", nodeName="n3")
    world.priority_class("high", 1000)
    world.pod("vip", cpu="1", priorityClassName="high")
    world.run()
    assert (world.of("lone").state, world.of("vip").node) == ("Preempted", "n3")


def test_with_no_lone_pod_a_gang_goes_whole(world: World) -> None:
    world.node("n1", cpu="1")
    world.node("n2", cpu="1")
    world.pod_group("running", 2)
    world.pod("r0", group="running", cpu="1", nodeName="n1")
    world.pod("r1", group="running", cpu="1", nodeName="n2")
    world.priority_class("high", 1000)
    world.pod("vip", cpu="1", priorityClassName="high")
    world.run()
    assert [world.of(name).state for name in ("r0", "r1", "vip")] == ["Preempted", "Preempted", "Scheduled"]
