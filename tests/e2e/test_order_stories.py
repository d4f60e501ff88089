"""The order of gangs on the real control plane: what has begun is finished first, and the gang that waits longest gets its turn."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from extender.plugins.coscheduling.spec.start_record import start_record
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import Scheduler
from tests.e2e.extender import Extender
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

GATED: dict[str, Any] = {"schedulingGates": [{"name": "scheduling.x-k8s.io/gang"}]}
POD = "/api/v1/namespaces/default/pods/{}"


def bind(cluster: Cluster, name: str, node: str, quorum: int = 0, members: Sequence[str] = ()) -> None:
    """As a scheduler does that dies right after. members: UIDs, of the start of an extender that it is part of."""
    record = start_record(datetime.now(UTC), quorum, members).text()
    metadata = {"name": name, "annotations": {"gang-extender.dev/start": record} if quorum else {}}
    cluster.api.create(POD.format(name) + "/binding", {"metadata": metadata, "target": {"kind": "Node", "name": node}})


def test_what_has_begun_before_a_restart_is_finished_before_any_other_pod_is_answered(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    cluster.killed = True
    cluster.node("node-1", cpu="2")
    cluster.node("node-2", cpu="1")
    cluster.pod_group("high", min_member=2)
    for number in range(2):
        cluster.pod(f"high-{number}", group="high", requests={"cpu": "1"}, priority=1000)
    cluster.pod("single", requests={"cpu": "1"})
    cluster.pod_group("begun", min_member=3)
    names = [f"begun-{number}" for number in range(3)]
    uids = [cluster.pod(name, group="begun", requests={"cpu": "1"}) for name in names]
    bind(cluster, "begun-0", "node-1", 3, uids)
    programs.extend(Pair.of(cluster.plane, tmp_path).start())
    cluster.recorder.await_bound(*names, within=15)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == set(names)


@pytest.mark.parametrize("gated", [pytest.param(True, id="gated"), pytest.param(False, id="plain")])
def test_the_extender_is_killed_in_mid_commit(
    gated: bool, cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """Pods that came since do not get the room of those that are missing."""
    pair = Pair.of(cluster.plane, tmp_path).start()
    programs.extend(pair)
    cluster.killed = True
    for number in range(4):
        cluster.node(f"node-{number}", cpu="6")
    cluster.pod_group("train", min_member=24)
    names = [f"train-{number}" for number in range(24)]
    for name in names:
        cluster.pod(name, group="train", requests={"cpu": "1"}, **(GATED if gated else {}))
    cluster.recorder.wait(lambda: bool(cluster.recorder.bound()), within=30, what="the commit has begun")
    pair.extender.kill()
    pair.extender.start(wait=False)
    for number in range(4):
        cluster.pod(f"greedy-{number}", requests={"cpu": "1"})
    cluster.await_back(pair.extender.await_ready)
    cluster.recorder.await_bound(*names, within=15)


def grown(cluster: Cluster, extender: Extender, to: int, **spec: Any) -> list[str]:
    """A gang of two has started in the normal way; its owner raises minMember and adds the members. Their names."""
    cluster.judged = True  # the owner has made it a fraction
    cluster.pod_group("mine", min_member=2)
    for name in ("mine-0", "mine-1"):
        cluster.pod(name, group="mine", requests={"cpu": "1"})
    cluster.recorder.await_bound("mine-0", "mine-1", within=10)
    cluster.change_min_member("mine", to)
    eventually(lambda: min_member_seen(extender, "mine") == to, within=5, what="the extender has seen it")
    names = [f"mine-{number}" for number in range(2, to)]
    for name in names:
        cluster.pod(name, group="mine", requests={"cpu": "1"}, **spec)
    return names


def min_member_seen(extender: Extender, group: str) -> int | None:
    found: int | None = (extender.gang(f"default/{group}") or {}).get("gang", {}).get("minMember")
    return found


@pytest.mark.parametrize("gated", [pytest.param(True, id="gated"), pytest.param(False, id="plain")])
def test_a_gang_of_higher_priority_comes_before_one_whose_owner_has_raised_min_member(
    gated: bool, cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """Only a start of ours that was cut short comes before every priority."""
    pair = Pair.of(cluster.plane, tmp_path).start()
    programs.extend(pair)
    gate = GATED if gated else {}
    cluster.node("node-1", cpu="6")
    cluster.pod("filler", requests={"cpu": "4"})
    cluster.recorder.await_bound("filler", within=5)
    grown(cluster, pair.extender, 6, **gate)
    await_no_room(cluster, "mine")
    high = [f"high-{number}" for number in range(4)]
    cluster.pod_group("high", min_member=4)
    for name in high:
        cluster.pod(name, group="high", requests={"cpu": "1"}, priority=1000, preempts=False, **gate)
    await_no_room(cluster, "high")
    cluster.delete_pod("filler")
    cluster.recorder.await_bound(*high, within=10)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == {"mine-0", "mine-1", *high}
    assert cluster.violations(known={"default/mine": 2}) == []


def test_places_of_a_gang_whose_owner_has_raised_min_member_keep_out_no_pod_of_higher_priority(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """The kube-scheduler of the new members is down, so that their places stay reservations."""
    settings = {"schedulerNames": ["gang-scheduler", "down"]}
    pair = Pair.of(cluster.plane, tmp_path, settings=settings).start()
    programs.extend(pair)
    cluster.node("node-1", cpu="4")
    names = grown(cluster, pair.extender, 4, scheduler_name="down", **GATED)
    cluster.recorder.wait(lambda: all(freed(cluster, name) for name in names), within=10, what="the gang is planned")
    cluster.pod("equal", requests={"cpu": "1"})
    cluster.recorder.await_message("equal", "node(s) had their room reserved for a gang", within=5)
    cluster.pod("important", requests={"cpu": "1"}, priority=1000, preempts=False)
    cluster.recorder.await_bound("important", within=5)
    cluster.recorder.await_bound("equal", within=10)  # what is left is too little for the gang, which keeps none of it
    assert cluster.recorder.bound() == {"mine-0", "mine-1", "important", "equal"}
    assert cluster.violations(known={"default/mine": 2}) == []


def await_no_room(cluster: Cluster, group: str) -> None:
    """And no attempt of a member is under way: one that began before room came speaks of the nodes as they were."""

    def reason() -> str:
        return cluster.condition_of_group(group)[0]

    eventually(lambda: reason() == "InsufficientResources", within=10, what=f"{group} has no room: {reason()}")
    cluster.recorder.settle()


def test_a_pod_that_was_refused_for_a_reservation_is_woken_when_it_ends(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """The deletion of a pod that waits wakes no pod in kube-scheduler, and its next look is five minutes off.

    The gang's kube-scheduler is down, so that its places stay reservations.
    """
    programs.extend(Pair.of(cluster.plane, tmp_path, settings={"schedulerNames": ["gang-scheduler", "down"]}).start())
    cluster.node("node-1", cpu="2")
    cluster.pod_group("train", min_member=2)
    for number in range(2):
        cluster.pod(f"train-{number}", group="train", requests={"cpu": "1"}, scheduler_name="down", **GATED)
    cluster.recorder.wait(lambda: freed(cluster, "train-1"), within=5, what="the gang is planned")
    cluster.pod("single", requests={"cpu": "1"})
    cluster.recorder.await_message("single", "node(s) had their room reserved for a gang", within=5)
    cluster.recorder.settle()
    cluster.delete_pod("train-0")
    cluster.recorder.await_bound("single", within=5)


def freed(cluster: Cluster, name: str) -> bool:
    pod = cluster.recorder.pod(name)
    return pod is not None and not pod["spec"].get("schedulingGates")


def kept_free(extender: Extender, group: str) -> list[str]:
    page = extender.gang(f"default/{group}") or {}
    return list((page.get("keptFree") or {}).get("nodes", ()))


def test_a_gang_that_waits_long_has_room_kept_for_it_and_small_pods_pass_it_elsewhere(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    settings = {"shadowAfterSeconds": 1, "shadowMaxSeconds": 60, "shadowMaxNodesPercent": 50}
    pair = Pair.of(cluster.plane, tmp_path, settings=settings).start()
    programs.extend(pair)
    for number in range(4):
        cluster.node(f"node-{number}", cpu="2")
        here = {"kubernetes.io/hostname": f"node-{number}"}
        cluster.pod(f"running-{number}", requests={"cpu": "2"}, nodeSelector=here)
    cluster.recorder.await_bound(*(f"running-{number}" for number in range(4)), within=5)
    cluster.pod_group("patient", min_member=2)
    for number in range(2):
        cluster.pod(f"patient-{number}", group="patient", requests={"cpu": "2"}, **GATED)
    eventually(
        lambda: kept_free(pair.extender, "patient") == ["node-0", "node-1"], within=10, what="the gang has a shadow"
    )
    eventually(
        lambda: any(event.startswith("GangShadow: the gang is first in line") for event in cluster.events("patient")),
        within=5,
        what="an event says so",
    )

    cluster.delete_pod("running-3")
    cluster.pod("passes", requests={"cpu": "2"})
    cluster.recorder.await_bound("passes", within=5)
    cluster.delete_pod("running-0")
    cluster.pod("waits", requests={"cpu": "2"})
    cluster.recorder.await_message("waits", "node(s) were kept free for a gang that waits for room", within=5)
    cluster.delete_pod("running-1")
    cluster.recorder.await_bound("patient-0", "patient-1", within=5)
    eventually(lambda: pair.extender.metric("gang_extender_shadow_nodes") == 0, within=5, what="the shadow is gone")
    cluster.delete_pod("running-2")
    cluster.recorder.await_bound("waits", within=5)


def place_in_line(extender: Extender, group: str) -> int:
    page = extender.gang(f"default/{group}") or {}
    return int(page.get("gang", page).get("place") or 0)


def test_a_gang_that_has_given_up_steps_back_behind_a_younger_one(
    cluster: Cluster, tmp_path: Path, programs: list[Extender | Scheduler]
) -> None:
    """Also after a restart of the extender: the PodGroup and the pods say how long it has waited."""
    pair = Pair.of(cluster.plane, tmp_path).start()
    programs.extend(pair)
    cluster.node("node-1", cpu="1")
    for name, asks in (("old", {"gang-extender.dev/give-up-after": "2s"}), ("young", {})):
        cluster.pod_group(name, min_member=2, annotations=asks)
        for number in range(2):
            cluster.pod(f"{name}-{number}", group=name, requests={"cpu": "1"}, **GATED)
        await_no_room(cluster, name)
        if name == "old":
            eventually(
                lambda: any(event.startswith("GangGaveUp") for event in cluster.events("old")),
                within=15,
                what="it gives up",
            )
    cluster.killed = True
    pair.extender.kill()
    pair.extender.start()
    eventually(lambda: place_in_line(pair.extender, "young") == 1, within=15, what="it is first in line")
    cluster.node("node-2", cpu="1")
    cluster.recorder.await_bound("young-0", "young-1", within=15)
    cluster.recorder.settle()
    assert cluster.recorder.bound() == {"young-0", "young-1"}
