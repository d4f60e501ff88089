"""Preemption beside a real kube-scheduler: whole gangs get their room or no pod goes, and no fraction of a gang is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.fault_run.budgets import Budget, remove_all
from tests.e2e.intercepting_proxy import InterceptingProxy
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

GATED: dict[str, Any] = {"schedulingGates": [{"name": "scheduling.x-k8s.io/gang"}]}
CPU = {"cpu": "1"}
RACK = "example.com/rack"
PATH = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/"


def full(cluster: Cluster, *priorities: int, **spec: Any) -> list[str]:
    """A node for each, with one pod that fills it; bound, and free to be evicted without the checker's complaint."""
    names = []
    for number, priority in enumerate(priorities):
        cluster.node(f"node-{number}", cpu="1")
        names.append(f"low-{number}")
        cluster.pod(names[-1], requests=CPU, priority=priority, nodeName=f"node-{number}", **spec)
    cluster.recorder.await_bound(*names, within=5)
    return names


def gang(
    cluster: Cluster, name: str, size: int, *, priority: int = 0, gated: bool = False, rack: bool = False, **spec: Any
) -> list[str]:
    """rack: all of it has to be in one."""
    annotations = {"gang-extender.dev/topology-required": "rack"} if rack else None
    cluster.pod_group(name, min_member=size, annotations=annotations)
    names = [f"{name}-{number}" for number in range(size)]
    for pod in names:
        cluster.pod(pod, group=name, requests=CPU, priority=priority, **(GATED if gated else {}), **spec)
    return names


def gone(cluster: Cluster, *names: str, within: float = 3) -> None:
    cluster.recorder.wait(
        lambda: all(cluster.recorder.pod(name) is None for name in names), within=within, what=f"{names} are gone"
    )


def there(cluster: Cluster, *names: str) -> bool:
    cluster.recorder.catch_up()
    return all(
        (pod := cluster.recorder.pod(name)) is not None and not pod["metadata"].get("deletionTimestamp")
        for name in names
    )


def reason(cluster: Cluster, group: str) -> str:
    return said(cluster, group, "reason")


def message(cluster: Cluster, group: str) -> str:
    return said(cluster, group, "message")


def said(cluster: Cluster, group: str, what: str) -> str:
    """By its condition Scheduled."""
    for entry in cluster.api.get(PATH + group).get("status", {}).get("conditions", []):
        if entry["type"] == "Scheduled":
            return str(entry[what])
    return ""


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_a_gang_of_three_takes_three_nodes_and_not_one_more(
    cluster: Cluster, module_programs: Pair, gated: bool
) -> None:
    low = full(cluster, 0, 0, 0, 0)
    names = gang(cluster, "vip", 3, priority=100, gated=gated)
    cluster.recorder.await_bound(*names, within=3)
    gone_ones = [name for name in low if cluster.recorder.pod(name) is None]
    assert len(gone_ones) == 3
    said = "Preempted: Preempted by PodGroup default/vip on node"
    eventually(
        lambda: any(event.startswith(said) for event in cluster.events(gone_ones[0])), within=5, what="an event says so"
    )


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_not_one_eviction_where_one_node_is_held_by_an_equal(
    cluster: Cluster, module_programs: Pair, gated: bool
) -> None:
    low = full(cluster, 0, 0, 100)
    gang(cluster, "vip", 3, priority=100, gated=gated)
    eventually(
        lambda: reason(cluster, "vip") == "InsufficientResources", within=5, what="the gang hears that it does not fit"
    )
    cluster.recorder.settle()
    assert there(cluster, *low)
    assert cluster.recorder.bound() == set(low)


def test_a_single_pod_takes_the_lone_pod_and_not_a_member_of_a_running_gang(
    cluster: Cluster, module_programs: Pair
) -> None:
    for number in range(3):
        cluster.node(f"node-{number}", cpu="1")
    names = gang(cluster, "running", 2)
    cluster.recorder.await_bound(*names, within=5)
    cluster.pod("lone", requests=CPU)
    cluster.recorder.await_bound("lone", within=5)
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.await_bound("vip", within=5)
    assert there(cluster, *names)
    assert cluster.recorder.pod("lone") is None


def test_a_gang_of_low_priority_goes_before_a_lone_pod_of_a_higher_one(cluster: Cluster, module_programs: Pair) -> None:
    for number in range(3):
        cluster.node(f"node-{number}", cpu="1")
    names = gang(cluster, "running", 2)
    cluster.recorder.await_bound(*names, within=5)
    cluster.excused |= {f"default/{name}" for name in names}
    cluster.pod("lone", requests=CPU, priority=90)
    cluster.recorder.await_bound("lone", within=5)
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.await_bound("vip", within=5)
    gone(cluster, *names)
    assert there(cluster, "lone")


def test_one_important_member_shields_no_gang(cluster: Cluster, module_programs: Pair) -> None:
    for number in range(2):
        cluster.node(f"node-{number}", cpu="1")
    cluster.pod_group("mixed", min_member=2)
    names = ["mixed-0", "mixed-1"]
    for name, priority in zip(names, (0, 1000), strict=True):
        cluster.pod(name, group="mixed", requests=CPU, priority=priority)
    cluster.recorder.await_bound(*names, within=5)
    remark = "its members' priorities differ"
    eventually(lambda: remark in message(cluster, "mixed"), within=5, what="its condition says so")
    cluster.excused |= {f"default/{name}" for name in names}
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.await_bound("vip", within=5)
    gone(cluster, *names)


def test_with_no_lone_pod_both_members_go_and_never_one(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-0", cpu="1")
    cluster.node("node-1", cpu="1")
    names = gang(cluster, "running", 2)
    cluster.recorder.await_bound(*names, within=5)
    cluster.excused |= {f"default/{name}" for name in names}
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.await_bound("vip", within=5)
    gone(cluster, *names)


def test_a_gang_s_surplus_goes_and_not_the_gang(cluster: Cluster, module_programs: Pair) -> None:
    for number in range(3):
        cluster.node(f"node-{number}", cpu="1")
    cluster.pod_group("running", min_member=2)
    names = [f"running-{number}" for number in range(3)]
    for name in names:
        cluster.pod(name, group="running", requests=CPU)
    cluster.recorder.await_bound(*names, within=5)
    cluster.excused |= {f"default/{name}" for name in names}
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.await_bound("vip", within=5)
    assert sum(cluster.recorder.pod(name) is None for name in names) == 1


def test_two_gangs_of_one_priority_do_not_evict_each_other(cluster: Cluster, module_programs: Pair) -> None:
    cluster.node("node-0", cpu="2")
    first = gang(cluster, "first", 2, priority=100)
    cluster.recorder.await_bound(*first, within=5)
    gang(cluster, "second", 2, priority=100)
    eventually(lambda: reason(cluster, "second") != "", within=5, what="the second is told")
    cluster.recorder.settle()
    assert there(cluster, *first)
    assert cluster.recorder.bound() == set(first)


def test_victims_with_time_to_go_are_waited_for_and_the_place_is_not_lost(
    cluster: Cluster, module_programs: Pair
) -> None:
    low = full(cluster, 0, 0, terminationGracePeriodSeconds=60)
    names = gang(cluster, "vip", 2, priority=100)
    eventually(lambda: reason(cluster, "vip") == "Preempting", within=5, what="the gang waits")
    cluster.recorder.wait(
        lambda: all((cluster.recorder.pod(name) or {}).get("metadata", {}).get("deletionTimestamp") for name in low),
        within=5,
        what="both are told to go",
    )
    force(cluster, low[0])
    gone(cluster, low[0])
    cluster.pod("third", requests=CPU, priority=100)
    cluster.recorder.wait(  # by our filter, or by kube-scheduler's own where a member is nominated there already
        lambda: cluster.recorder.condition("third").get("reason") == "Unschedulable", within=5, what="it is kept out"
    )
    assert cluster.recorder.bound() <= set(low)
    force(cluster, low[1])
    cluster.recorder.await_bound(*names, within=5)


def test_a_preemptor_that_is_deleted_leaves_nothing_reserved(cluster: Cluster, module_programs: Pair) -> None:
    low = full(cluster, 0, 0, terminationGracePeriodSeconds=60)
    names = gang(cluster, "vip", 2, priority=100)
    eventually(lambda: reason(cluster, "vip") == "Preempting", within=5, what="the gang waits")
    for name in names:
        cluster.delete_pod(name)
    for name in low:
        force(cluster, name)
    cluster.pod("other", requests=CPU)
    cluster.recorder.await_bound("other", within=5)


@pytest.mark.parametrize(
    ("cordoned", "told"),
    [
        pytest.param(True, "1 node(s) were unschedulable, 2 Insufficient cpu", id="no node has passed"),
        pytest.param(False, "1 planned node was not among the nodes that passed", id="another node has passed"),
    ],
)
def test_the_place_is_not_lost_where_kube_scheduler_has_tried_a_member_on_the_nodes_as_they_were(
    cluster: Cluster, programs: list[Extender | Scheduler], tmp_path: Path, cordoned: bool, told: str
) -> None:
    """Its scheduling cycle has begun before the victims have ended, and ends after the gang has been sent. The room that comes free on a
    third node, which the gang may not use, has the member tried."""
    for number in range(2):
        cluster.node(f"a-{number}", cpu="1", labels={RACK: "a"})
        cluster.pod(f"low-{number}", requests=CPU, nodeName=f"a-{number}", terminationGracePeriodSeconds=60)
    cluster.node("b-0", cpu="1", labels={RACK: "b"})
    cluster.pod("goes", requests=CPU, priority=100, nodeName="b-0")
    proxy = InterceptingProxy(timeout_seconds=30).start()
    try:
        settings = {"topology": [{"name": "rack", "nodeLabel": RACK}]}
        pair = Pair.of(cluster.plane, tmp_path, settings=settings, change=proxy.put_in_front).start()
        programs.extend(pair)
        names = gang(cluster, "vip", 2, priority=100, rack=True)
        eventually(lambda: reason(cluster, "vip") == "Preempting", within=5, what="the gang waits")
        cluster.recorder.wait(
            lambda: all(cluster.recorder.condition(name).get("reason") == "Unschedulable" for name in names),
            within=5,
            what="both members have been refused",
        )
        proxy.keep_waiting(["vip-1"])
        cluster.api.patch("/api/v1/nodes/b-0", {"spec": {"unschedulable": cordoned}})
        force(cluster, "goes")
        proxy.await_call("vip-1", within=5)
        for name in ("low-0", "low-1"):
            force(cluster, name)
        cluster.recorder.wait(lambda: bool(nominated(cluster, "vip-1")), within=5, what="the members are sent")
        proxy.open()
        cluster.recorder.await_bound(*names, within=5)
        assert f'pod="default/vip-1" err="0/3 nodes are available: {told}' in pair.scheduler.log()
        assert "gang_extender_plan_refuted_total{" not in pair.extender.ops("/metrics")[1]
    finally:
        proxy.stop()


def test_room_that_is_kept_for_a_preemptor_which_cannot_go_there_any_more_is_given_up(
    cluster: Cluster, programs: list[Extender | Scheduler], tmp_path: Path
) -> None:
    """kube-scheduler keeps the nomination of a pod for which our verb leaves no candidate."""
    low = full(cluster, 0, terminationGracePeriodSeconds=60)
    cluster.pod_group("running", min_member=2)
    for index in (1, 2):
        cluster.node(f"node-{index}", cpu="1")
        cluster.pod(f"running-{index}", group="running", requests=CPU, nodeName=f"node-{index}")
    programs.extend(Pair.of(cluster.plane, tmp_path, settings={"gangVictims": "surplusOnly"}).start())
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.wait(lambda: nominated(cluster, "vip") == "node-0", within=5, what="room is made for it")
    taint = {"key": "example.com/broken", "effect": "NoSchedule"}
    cluster.api.patch("/api/v1/nodes/node-0", {"spec": {"taints": [taint]}})
    force(cluster, low[0])
    cluster.recorder.wait(lambda: not nominated(cluster, "vip"), within=5, what="its nomination is taken back")
    cluster.pod("other", requests=CPU, priority=50, tolerations=[{"operator": "Exists"}])
    cluster.recorder.await_bound("other", within=5)


def test_an_extra_member_that_came_before_its_gang_had_started_preempts_once_it_has(
    cluster: Cluster, module_programs: Pair
) -> None:
    """kube-scheduler has parked it for its own filters' reasons, and hears of its gang's start as little as of most patches."""
    cluster.node("node-0", cpu="3")
    cluster.node("node-1", cpu="2")
    cluster.pod("low", requests={"cpu": "3"}, nodeName="node-0")
    cluster.pod_group("vip", min_member=2)
    cluster.pod("vip-2", group="vip", requests={"cpu": "3"}, priority=100)
    cluster.recorder.await_message("vip-2", "no candidate node for preemption", within=5)
    assert there(cluster, "low")
    for name in ("vip-0", "vip-1"):
        cluster.pod(name, group="vip", requests=CPU, priority=100)
    cluster.recorder.await_bound("vip-0", "vip-1", "vip-2", within=10)


def test_a_preemptor_gets_its_victim_once_a_gang_can_spare_one(
    cluster: Cluster, programs: list[Extender | Scheduler], tmp_path: Path
) -> None:
    """Nothing that changes a gang's need is an event for kube-scheduler."""
    cluster.pod_group("running", min_member=2)
    for index in range(2):
        cluster.node(f"node-{index}", cpu="1")
        cluster.pod(f"running-{index}", group="running", requests=CPU, nodeName=f"node-{index}")
    programs.extend(Pair.of(cluster.plane, tmp_path, settings={"gangVictims": "surplusOnly"}).start())
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.await_message("vip", "no candidate node for preemption", within=5)
    cluster.change_min_member("running", 1)
    cluster.recorder.await_bound("vip", within=10)
    assert there(cluster, "running-0") != there(cluster, "running-1"), "one has gone"


def test_a_budget_makes_no_gang_immune_that_kube_scheduler_would_evict(
    cluster: Cluster, programs: list[Extender | Scheduler], tmp_path: Path
) -> None:
    """kube-scheduler deletes the pods that it preempts, whatever a budget says, and the rest goes the same way: whole or not at all."""
    cluster.pod_group("running", min_member=2)
    for index in range(2):
        cluster.node(f"node-{index}", cpu="1")
        cluster.pod(
            f"running-{index}", group="running", requests=CPU, nodeName=f"node-{index}", labels={"gang": "running"}
        )
    Budget("default", "running", {"gang": "running"}).make(cluster.api)
    try:
        programs.extend(Pair.of(cluster.plane, tmp_path, settings={"evictThrough": "eviction"}).start())
        cluster.excused |= {"default/running-0", "default/running-1"}
        cluster.pod("vip", requests=CPU, priority=100)
        cluster.recorder.await_bound("vip", within=10)
        gone(cluster, "running-0", "running-1")
    finally:
        remove_all(cluster.api)


def test_a_preemptor_whose_call_met_no_extender_is_tried_again_once_it_is_there(
    cluster: Cluster, programs: list[Extender | Scheduler], tmp_path: Path
) -> None:
    """kube-scheduler parks it for its own filters' reasons, for five minutes if nothing happens."""
    full(cluster, 0)
    pair = Pair.of(cluster.plane, tmp_path).start()
    programs.extend(pair)
    pair.extender.stop()
    cluster.pod("vip", requests=CPU, priority=100)
    cluster.recorder.await_message("vip", 'preemption: Post "', within=5)
    pair.extender.start()
    cluster.recorder.await_bound("vip", within=10)


def nominated(cluster: Cluster, name: str) -> str:
    """The node that kube-scheduler keeps room on for it."""
    return str((cluster.recorder.pod(name) or {}).get("status", {}).get("nominatedNodeName", ""))


def force(cluster: Cluster, name: str) -> None:
    """What a kubelet does once the containers have ended."""
    cluster.excused.add(f"default/{name}")
    cluster.api.delete(f"/api/v1/namespaces/default/pods/{name}", gracePeriodSeconds=0)
