"""Stories of pods that come singly, through the plugin: where prioritize sends them, and where a member may go at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.snapshot import new_snapshot
from extender.config.types import TopologyLevel
from extender.framework.columnar import table_of
from extender.framework.cycle_state import CycleState
from extender.framework.status import SKIP
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.spec.keys import GROUPS
from extender.plugins.coscheduling.spec.keys import TOPOLOGY_REQUIRED as REQUIRED
from tests.objects import make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, in_rack, node, pod, pod_group

RACKS = planner.Topology((TopologyLevel("rack", "rack"),))
NewWorld = Callable[..., World]


def required(name: str, level: str, min_member: int) -> Any:
    group = pod_group(name, min_member)
    metadata = {"name": name, "namespace": "default", "annotations": {REQUIRED: level}}
    return convert({"metadata": metadata, "spec": {"minMember": group.spec.min_member}}, type(group))


def prioritize(world: World, asked: corev1.Pod, **others: Any) -> Mapping[str, int]:
    """Node -> score; empty where the plugin has nothing to say."""
    state, nodes = CycleState(), world.snapshot().list()
    status = world.plugin.pre_score(state, asked, nodes)
    if status.skip:
        return {}
    return {info.name: world.plugin.score(state, asked, info)[0] for info in nodes}


@pytest.fixture
def racks(world: NewWorld) -> World:
    """Rack 1 with a pod on one of two nodes, rack 2 free."""
    made = world([in_rack("a1", "1"), in_rack("a2", "1"), in_rack("b1", "2"), in_rack("b2", "2")])
    made.connect(topology=RACKS, pack_single_pods=True)
    made.on_nodes["there"] = pod("there", node_name="a1")
    return made


def test_a_single_pod_is_kept_off_a_free_rack(racks: World) -> None:
    found = prioritize(racks, pod("single"))
    assert found["a1"] > found["a2"] > found["b1"] == found["b2"]


def test_rows_of_a_snapshot_that_came_meanwhile_are_scored_by_the_names_of_their_nodes(racks: World) -> None:
    """Another call of kube-scheduler brings it between PreScore and Score; its rows are those of other nodes, or of none."""
    nodes = list(racks.nodes.values())
    snapshot, newer = new_snapshot([], nodes), new_snapshot([], [*nodes, in_rack("c1", "3")])
    scores = racks.plugin.single_pods.scores(pod("single"), snapshot.list(), snapshot)
    table, rows = table_of(snapshot), np.arange(len(snapshot.list()))
    assert table is not None
    found = scores.of_rows(table, rows)
    assert found is not None
    assert found.tolist() == [scores.of(info.name) for info in snapshot.list()]
    table, rows = table_of(newer), np.arange(len(newer.list()))
    assert table is not None
    assert scores.of_rows(table, rows) is None
    assert scores.of("c1") == 0


def test_a_promised_rack_is_not_free(racks: World) -> None:
    """A gang that is planned in rack 2 has it in use before it is there."""
    members = [pod(f"m{i}", "g", cpu="4") for i in range(2)]
    racks.plugin.on_pod_group(None, required("g", "rack", 2))
    racks.create(*members)
    assert racks.filter(members[0], list(racks.nodes)) in ("b1", "b2")
    found = prioritize(racks, pod("single"))
    assert found["b1"] == found["b2"] > found["a1"] > found["a2"]


def test_without_being_asked_to_it_says_nothing(world: NewWorld) -> None:
    made = world([node("n1"), node("n2")])
    assert prioritize(made, pod("single")) == {}


def test_a_choice_of_one_is_none(racks: World) -> None:
    assert racks.plugin.pre_score(CycleState(), pod("single"), racks.snapshot().list()[:1]) == SKIP


def placed(world: World, *node_names: str) -> None:
    """A gang that is to stay in one rack, its quorum running on these nodes."""
    world.plugin.on_pod_group(None, required("g", "rack", len(node_names)))
    for number, name in enumerate(node_names):
        member = pod(f"m{number}", "g", node_name=name)
        world.on_nodes[member.name] = member
        world.create(member)


def test_an_extra_member_is_sent_beside_its_gang(racks: World) -> None:
    placed(racks, "b1", "b2")
    extra = pod("extra", "g")
    racks.create(extra)
    found = prioritize(racks, extra)
    assert min(found["b1"], found["b2"]) > max(found["a1"], found["a2"])


def test_an_extra_member_may_not_leave_the_rack_that_its_gang_has_to_stay_in(racks: World) -> None:
    placed(racks, "b1", "b2")
    extra = pod("extra", "g")
    racks.create(extra)
    nodes = racks.snapshot().list()
    result, status = racks.plugin.pre_filter(CycleState(), extra, nodes)
    assert status.success
    assert result is not None
    assert result.node_names == frozenset({"b1", "b2"})
    result, status = racks.plugin.pre_filter(CycleState(), extra, nodes[:2])
    assert status.message == "node(s) are outside of the rack that the gang is in"


def test_an_extra_member_of_a_gang_that_asks_for_nothing_goes_anywhere(racks: World) -> None:
    racks.plugin.on_pod_group(None, pod_group("g", 1))
    member, extra = pod("m0", "g", node_name="b1"), pod("extra", "g")
    racks.create(member, extra)
    assert racks.plugin.pre_filter(CycleState(), extra, racks.snapshot().list()) == (None, SKIP)


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        pytest.param(
            False, frozenset({"b1", "b2"}), id="until they have started: its rack could draw the others there"
        ),
        pytest.param(True, None, id="then where its own group may"),
    ],
)
def test_an_extra_member_stays_with_the_groups_that_start_together(
    racks: World, started: bool, expected: frozenset[str] | None
) -> None:
    """Its own group asks for nothing; the other one for a rack."""
    for name, asked in (("g", {}), ("h", {REQUIRED: "rack"})):
        group = make_pod_group().name(name).min_member(1).annotation(GROUPS, "g,h")
        for key, value in asked.items():
            group = group.annotation(key, value)
        racks.plugin.on_pod_group(None, group.obj())
    members = [
        pod(f"{name}0", name, cpu="4", node_name=node if started else "") for name, node in (("g", "b1"), ("h", "b2"))
    ]
    extra = pod("extra", "g")
    for each in members if started else ():
        racks.on_nodes[each.name] = each
    racks.create(*members, extra)
    if not started:
        assert {racks.filter(each) for each in members} == {"b1", "b2"}
    result, _ = racks.plugin.pre_filter(CycleState(), extra, racks.snapshot().list())
    assert (result.node_names if result is not None else None) == expected


def test_an_extra_member_goes_beside_its_gang_rather_than_where_more_is_in_use(racks: World) -> None:
    """A pod of no gang goes where more is in use."""
    racks.plugin.on_pod_group(None, pod_group("g", 1))
    member, extra = pod("m0", "g", cpu="0", node_name="b1"), pod("extra", "g")
    racks.on_nodes[member.name] = member
    racks.create(member, extra)
    found = prioritize(racks, extra)
    assert found["b1"] > found["b2"] > found["a1"]
    found = prioritize(racks, pod("single"))
    assert found["a1"] > found["b1"]
