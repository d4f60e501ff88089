"""kube-scheduler with a sample of the nodes, on the real control plane: a gang starts though a member is offered none of its rack's.

kube-scheduler stops looking at 100 feasible nodes here, and begins where it ended for the pod before; one rack of 3 nodes among 300 has
room for the whole gang. A member takes any free slot among those that it is offered; where there is none its slot is moved to one of them,
or, where a rack is required, it is nominated. In a cluster that is nearly full kube-scheduler finds fewer than 100, and offers them all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from extender.api.schedulingv1alpha1 import GANG_GATE
from tests.e2e.cluster import Cluster
from tests.e2e.control_plane import SCHEDULER_NAME, ControlPlane
from tests.e2e.extender import STARTS_EARLY
from tests.e2e.pair import Pair
from tests.e2e.processes import eventually

RACK = "example.com/rack"
PERCENT = 10
OTHERS = 297  # nodes that any member alone would fit
MEMBERS = 12
SPREAD_OUT = 40  # members of a gang that goes anywhere
FEW_PLANS = 3  # of it: a member that comes while its gang is planned may be planned by itself
# A busy machine makes members with pauses. An early start that ended in one would have the members refused, and then nominated.
OVER_PAUSES = {"name": "Coscheduling", "args": {"earlyStartSilenceSeconds": 60, "earlyStartMaxSeconds": 60}}


def in_samples(config: dict[str, Any]) -> None:
    config["percentageOfNodesToScore"] = PERCENT


@pytest.fixture(scope="module")
def with_samples(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    settings = {
        "percentageOfNodesToScore": PERCENT,
        "topology": [{"name": "rack", "nodeLabel": RACK}],
        "profiles": [{"schedulerName": SCHEDULER_NAME, "pluginConfig": [OVER_PAUSES]}],
    }
    made = Pair.of(plane, tmp_path_factory.mktemp("samples"), settings=settings, change=in_samples)
    with made.running() as pair:
        pair.extender.await_leading()
        yield pair


def nodes(cluster: Cluster) -> None:
    """The rack stands in the middle of the others."""

    def one(number: int) -> None:
        cluster.node(f"other-{number:03}", cpu="1", labels={RACK: f"other-{number}"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(OTHERS)))
    for number in range(3):
        cluster.node(f"other-150-rack-{number}", cpu="4", labels={RACK: "rack"})


@pytest.mark.parametrize("gated", [pytest.param(False, id="plain members"), pytest.param(True, id="gated members")])
def test_a_gang_starts_in_the_rack_that_it_requires_though_samples_leave_it_out(
    cluster: Cluster, with_samples: Pair, gated: bool
) -> None:
    nodes(cluster)
    cluster.pod_group("train", MEMBERS, annotations={"gang-extender.dev/topology-required": "rack"})
    names = [f"train-{number}" for number in range(MEMBERS)]
    extra: dict[str, Any] = {"schedulingGates": [{"name": GANG_GATE}]} if gated else {}
    for name in names:
        cluster.pod(
            name,
            group="train",
            requests={"cpu": "1"},
            **extra,
        )
    cluster.recorder.await_bound(*names, within=20)
    places = {(cluster.recorder.pod(name) or {})["spec"]["nodeName"] for name in names}
    assert places == {f"other-150-rack-{number}" for number in range(3)}


@pytest.mark.parametrize("gated", [pytest.param(False, id="plain members"), pytest.param(True, id="gated members")])
def test_slots_that_no_sample_holds_are_moved_to_offered_nodes_and_nothing_is_planned_again(
    cluster: Cluster, with_samples: Pair, gated: bool
) -> None:
    """The first of them have their slots on the first nodes, and what kube-scheduler offers the later ones begins beyond."""
    nodes(cluster)
    moved, planned = with_samples.extender.metric("gang_extender_moved_slots_total"), plans(with_samples)
    cluster.pod_group("train", SPREAD_OUT)
    eventually(
        lambda: is_known(with_samples),
        within=10,
        what="the extender knows of the group, and no member is refused for the want of it",
    )
    names = [f"train-{number}" for number in range(SPREAD_OUT)]
    extra: dict[str, Any] = {"schedulingGates": [{"name": GANG_GATE}]} if gated else {}
    for name in names:
        cluster.pod(name, group="train", requests={"cpu": "1"}, **extra)
    cluster.recorder.await_bound(*names, within=20)
    if not (gated or STARTS_EARLY):
        return  # they are refused for their number at first, and a nomination says where to go: no slot has to move
    assert not any(change.pod.nominated for change in cluster.recorder.history()), "one patch each, or none"
    places = Counter((cluster.recorder.pod(name) or {})["spec"]["nodeName"] for name in names)
    assert all(number == 1 or "rack" in name for name, number in places.items())
    assert with_samples.extender.metric("gang_extender_moved_slots_total") > moved
    assert plans(with_samples) <= planned + FEW_PLANS


def is_known(pair: Pair) -> bool:
    page = pair.extender.gang("default/train")
    return bool(page) and page["gang"]["minMember"] == SPREAD_OUT


def plans(pair: Pair) -> int:
    """Whole gangs that were planned, or members of one by themselves, so far."""
    name = 'gang_extender_podgroup_schedule_attempts_total{result="planned"}'
    lines = pair.extender.ops("/metrics")[1].splitlines()
    return int(sum(float(line.removeprefix(name)) for line in lines if line.startswith(name)))


def test_a_gang_starts_on_what_a_nearly_full_cluster_has_left(cluster: Cluster, with_samples: Pair) -> None:
    nodes(cluster)

    def fill(number: int) -> None:
        cluster.pod(f"other-{number:03}", requests={"cpu": "1"}, nodeName=f"other-{number:03}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(fill, range(OTHERS)))
    cluster.pod_group("train", MEMBERS)
    names = [f"train-{number}" for number in range(MEMBERS)]
    for name in names:
        cluster.pod(name, group="train", requests={"cpu": "1"})
    cluster.recorder.await_bound(*names, within=20)
