"""Racks on the real control plane: a gang, or each slice of one, goes to one that holds it; single pods leave free ones alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e import api as paths
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import SCHEDULER_NAME, ControlPlane
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

RACK = "example.com/rack"
TOPOLOGY = [{"name": "rack", "nodeLabel": RACK}]
LWS = {"name": "Coscheduling", "args": {"groupSources": [{"preset": "lws"}]}}
SLICE = "gang-extender.dev/topology-slice"
INDEX = "batch.kubernetes.io/job-completion-index"


def packing_decides(config: dict[str, Any]) -> None:
    config["extenders"][0]["weight"] = 5


@pytest.fixture(scope="module")
def with_racks(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    settings = {"topology": TOPOLOGY, "profiles": [{"schedulerName": SCHEDULER_NAME, "pluginConfig": [LWS]}]}
    made = Pair.of(plane, tmp_path_factory.mktemp("racks"), settings=settings, change=packing_decides)
    with made.running() as pair:
        yield pair


def racks(cluster: Cluster, **sizes: tuple[int, int]) -> None:
    """Rack -> (nodes, CPUs of each); node r1-0 is in rack r1."""
    for rack, (nodes, cpus) in sizes.items():
        for number in range(nodes):
            cluster.node(f"{rack}-{number}", cpu=str(cpus), labels={RACK: rack})


def gang(cluster: Cluster, name: str, count: int, **annotations: str) -> list[str]:
    said = {f"gang-extender.dev/topology-{word}": level for word, level in annotations.items()}
    cluster.pod_group(name, count, annotations=said)
    names = [f"{name}-{number}" for number in range(count)]
    for member in names:
        cluster.pod(member, group=name, requests={"cpu": "1"})
    return names


def racks_of(cluster: Cluster, *names: str) -> set[str]:
    nodes = [(cluster.recorder.pod(name) or {})["spec"]["nodeName"] for name in names]
    return {node.partition("-")[0] for node in nodes}


def test_a_rack_that_holds_the_gang_is_chosen_before_two_that_do(cluster: Cluster, with_racks: Pair) -> None:
    """kube-scheduler alone would take the emptiest nodes, one in each rack."""
    racks(cluster, r1=(2, 2), r2=(2, 3), r3=(2, 4))
    names = gang(cluster, "train", 5)
    cluster.recorder.await_bound(*names, within=5)
    assert racks_of(cluster, *names) == {"r2"}


def test_what_no_rack_holds_waits_if_it_is_required_and_goes_to_two_if_it_is_not(
    cluster: Cluster, with_racks: Pair
) -> None:
    racks(cluster, r1=(2, 2), r2=(2, 2))
    waits = gang(cluster, "required", 6, required="rack")
    cluster.recorder.await_message(waits[-1], "no single rack takes it: Insufficient cpu", within=5)
    eventually(
        lambda: cluster.verdict_on_group("required") == ("False", "TopologyUnsatisfiable"),
        within=5,
        what="the condition",
    )
    assert cluster.recorder.bound() == set()
    goes = gang(cluster, "preferred", 6, preferred="rack")
    cluster.recorder.await_bound(*goes, within=5)
    assert racks_of(cluster, *goes) == {"r1", "r2"}


def test_a_level_that_is_not_configured_is_said_and_may_be_put_right(cluster: Cluster, with_racks: Pair) -> None:
    racks(cluster, r1=(2, 2))
    names = gang(cluster, "typo", 2, required="rak")
    cluster.recorder.await_message(names[-1], 'topology level "rak" is not configured', within=5)
    path = paths.POD_GROUPS.format(namespace="default") + "/typo"
    cluster.api.patch(path, {"metadata": {"annotations": {"gang-extender.dev/topology-required": "rack"}}})
    cluster.recorder.await_bound(*names, within=5)


def test_single_pods_and_extra_members_leave_a_free_rack_alone(cluster: Cluster, with_racks: Pair) -> None:
    racks(cluster, r1=(2, 8), r2=(2, 8))
    names = gang(cluster, "train", 2, required="rack")
    cluster.recorder.await_bound(*names, within=5)
    (rack,) = racks_of(cluster, *names)
    singles = [f"single-{number}" for number in range(4)]
    for name in singles:
        cluster.pod(name, requests={"cpu": "1"})
    cluster.pod("train-extra", group="train", requests={"cpu": "1"})
    cluster.recorder.await_bound(*singles, "train-extra", within=5)
    assert racks_of(cluster, *singles, "train-extra") == {rack}
    free = 'gang_extender_largest_gang_members{level="rack"}'
    eventually(lambda: with_racks.extender.metric(free) == 16, within=5, what="one rack is free as a whole")


def rack_of(cluster: Cluster, name: str) -> str:
    (rack,) = racks_of(cluster, name)
    return rack


def test_ranks_of_an_indexed_job_are_in_slices_and_a_replaced_one_goes_back_to_its_rack(
    cluster: Cluster, with_racks: Pair
) -> None:
    """r3 has the most room, and none of it is a whole slice's."""
    racks(cluster, r1=(2, 2), r2=(2, 3), r3=(3, 1))
    cluster.pod_group("ranks", 8, annotations={SLICE: "rack=4"})
    for rank in (5, 2, 7, 0, 3, 6, 1, 4):
        cluster.pod(f"ranks-{rank}", group="ranks", labels={INDEX: str(rank)}, requests={"cpu": "1"})
    names = [f"ranks-{rank}" for rank in range(8)]
    cluster.recorder.await_bound(*names, within=5)
    assert [rack_of(cluster, name) for name in names] == ["r1"] * 4 + ["r2"] * 4
    cluster.delete_pod("ranks-5")
    cluster.recorder.wait(lambda: cluster.recorder.pod("ranks-5") is None, within=5, what="the pod is gone")
    cluster.pod("ranks-5-again", group="ranks", labels={INDEX: "5"}, requests={"cpu": "1"})
    cluster.recorder.await_bound("ranks-5-again", within=5)
    assert rack_of(cluster, "ranks-5-again") == "r2"


def test_slices_of_which_one_finds_no_rack_wait_until_there_is_one(cluster: Cluster, with_racks: Pair) -> None:
    racks(cluster, r1=(2, 2), r2=(2, 1))
    cluster.pod_group("ranks", 8, annotations={SLICE: "rack=4"})
    names = [f"ranks-{rank}" for rank in range(8)]
    for rank, name in enumerate(names):
        cluster.pod(name, group="ranks", labels={INDEX: str(rank)}, requests={"cpu": "1"})
    cluster.recorder.await_message(names[-1], "no single rack takes a slice of 4: Insufficient cpu", within=5)
    assert cluster.recorder.bound() == set()
    racks(cluster, r3=(1, 4))
    cluster.recorder.await_bound(*names, within=10)
    assert [rack_of(cluster, name) for name in names] == ["r1"] * 4 + ["r3"] * 4


def test_a_leader_and_its_workers_are_in_slices_by_their_index(cluster: Cluster, with_racks: Pair) -> None:
    """As LeaderWorkerSet makes them, without a PodGroup."""
    racks(cluster, r1=(2, 1), r2=(2, 2))
    lws = "leaderworkerset.sigs.k8s.io"
    for index, cpu in ((3, "1"), (1, "1"), (2, "1"), (0, "2")):
        cluster.pod(
            f"serve-{index}",
            labels={f"{lws}/group-key": "abc", f"{lws}/worker-index": str(index)},
            annotations={f"{lws}/size": "4", SLICE: "rack=2"},
            requests={"cpu": cpu},
        )
    names = [f"serve-{index}" for index in range(4)]
    cluster.recorder.await_bound(*names, within=5)
    assert [rack_of(cluster, name) for name in names] == ["r2", "r2", "r1", "r1"]


def test_a_gang_in_slices_preempts_where_whole_slices_cost_least(cluster: Cluster, with_racks: Pair) -> None:
    """Each rack has a node with a single pod; r1's other node has two."""
    racks(cluster, r1=(2, 2), r2=(2, 2), r3=(2, 2))
    for rack, counts in {"r1": (1, 2), "r2": (1, 1), "r3": (1, 1)}.items():
        for node, count in enumerate(counts):
            for number in range(count):
                name, cpu = f"low-{rack}-{node}-{number}", str(2 // count)
                cluster.pod(name, requests={"cpu": cpu}, nodeName=f"{rack}-{node}")
    cluster.recorder.wait(lambda: len(cluster.recorder.bound()) == 7, within=5, what="the racks are full")
    cluster.pod_group("ranks", 4, annotations={SLICE: "rack=2"})
    names = [f"ranks-{rank}" for rank in range(4)]
    for rank, name in enumerate(names):
        cluster.pod(name, group="ranks", labels={INDEX: str(rank)}, requests={"cpu": "2"}, priority=100)
    cluster.recorder.await_bound(*names, within=15)
    assert [rack_of(cluster, name) for name in names] == ["r2", "r2", "r3", "r3"]
    assert {name for name in cluster.recorder.bound() if name.startswith("low")} == {
        f"low-r1-{rest}" for rest in ("0-0", "1-0", "1-1")
    }
