"""Members that look at each other: placed one by one, each judged with those before it in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from extender.config.types import Packing
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.status import SUCCESS, Status
from extender.plugins.coscheduling.planner import Cause, Topology
from extender.plugins.coscheduling.planner.constrained import Arrangement, Preference
from extender.plugins.coscheduling.planner.domains import coarse_groups
from extender.plugins.coscheduling.planner.members import MemberClass, Shape
from extender.plugins.coscheduling.planner.request import Added, Deadline, Trial
from extender.plugins.coscheduling.planner.room import Room
from tests.objects import HOSTNAME, ZONE, PodBuilder
from tests.unit.plugins.coscheduling.planning import GANG, JUDGE, gang, member, node, placed, plan, refused

NODES = [node("n1", zone="a").info(), node("n2", zone="a").info(), node("n3", zone="b").info()]


@pytest.mark.parametrize(
    ("of", "count", "domains"),
    [
        pytest.param(member().pod_anti_affinity(HOSTNAME, GANG), 3, 3, id="no two on one node"),
        pytest.param(member().pod_affinity(HOSTNAME, GANG), 4, 1, id="all on one node"),
        pytest.param(member().host_port(80), 3, 3, id="a port is taken once on a node"),
    ],
)
def test_on_how_many_nodes(of: PodBuilder, count: int, domains: int) -> None:
    assert len(set(placed(plan(NODES, gang(count, of))).values())) == domains


@pytest.mark.parametrize(
    ("of", "count", "cause", "found"),
    [
        pytest.param(
            member().pod_anti_affinity(HOSTNAME, GANG), 4, Cause.AFFINITY, 3, id="one more than there are nodes"
        ),
        pytest.param(member().pod_anti_affinity(ZONE, GANG), 3, Cause.AFFINITY, 2, id="one more than there are zones"),
        pytest.param(member().pod_affinity(HOSTNAME, GANG), 5, Cause.ROOM, 4, id="all on one node, which is too small"),
    ],
)
def test_what_does_not_fit_says_why_and_how_many_would(of: PodBuilder, count: int, cause: Cause, found: int) -> None:
    verdict = refused(plan(NODES, gang(count, of)))
    assert (verdict.cause, verdict.placed) == (cause, found)


@pytest.mark.parametrize("of", [member(), member().pod_anti_affinity(HOSTNAME, GANG)], ids=["by room", "one by one"])
@pytest.mark.parametrize("needed", [0, 1, 2])
def test_in_a_cluster_without_nodes_none_has_a_place(of: PodBuilder, needed: int) -> None:
    """A gang that asks for no member, as one whose PodGroup has gone, is asked about by users too."""
    answer = plan([], gang(2, of), needed)
    assert (placed(answer) == {}) if not needed else (refused(answer).cause is Cause.NODES)


def shape(info: PodInfo, nodes: Sequence[NodeInfo]) -> Shape:
    trial = JUDGE.begin(info.pod, nodes)
    passing = np.array([status.success for status in trial.filter_all()])
    everywhere = np.ones(len(nodes), dtype=np.bool_)
    return Shape(MemberClass((info,), info.pod.name), trial, passing, everywhere, everywhere)


def test_a_member_that_finds_no_node_is_tried_again_once_the_one_that_it_needs_is_there() -> None:
    leader = member().label("role", "leader").name("leader").info()
    follower = member(cpu=2).pod_affinity(HOSTNAME, {"matchLabels": {"role": "leader"}}).name("follower").info()
    shapes = [shape(follower, NODES), shape(leader, NODES)]
    room = Room.of(HypotheticalSnapshot(NODES), ["cpu", "memory"])
    anywhere = [np.ones(len(NODES), dtype=np.bool_)] * 2
    groups = coarse_groups(HypotheticalSnapshot(NODES), [HOSTNAME])
    attempt = Arrangement(shapes, list(NODES), room, anywhere, groups, Preference.FEW, Deadline(lambda: 0.0, 0.0, 1.0))
    attempt.run([(0, follower), (1, leader)])
    assert [info.pod.name for _, info, _ in attempt.sequence] == ["leader", "follower"]
    assert len({at for _, _, at in attempt.sequence}) == 1
    assert attempt.unplaced == []


def test_shapes_of_one_amount_share_a_column_of_how_many_fit() -> None:
    """Members with a claim each are a shape each: 512 columns that every member changes took seconds at 5,000 nodes."""
    members = [member(cpu=cpu).name(name).info() for name, cpu in (("a", 1), ("b", 1), ("c", 2), ("d", 1))]
    shapes = [shape(info, NODES) for info in members]
    room = Room.of(HypotheticalSnapshot(NODES), ["cpu", "memory"])
    anywhere = [np.ones(len(NODES), dtype=np.bool_)] * len(shapes)
    groups = np.zeros(len(NODES), dtype=np.int64)
    attempt = Arrangement(shapes, list(NODES), room, anywhere, groups, Preference.FEW, Deadline(lambda: 0.0, 0.0, 1.0))
    assert len({id(column) for column in attempt._capacity}) == 2
    attempt.run([(0, members[0]), (2, members[2])])
    other = attempt.on(anywhere[0])
    other.run([(1, members[1]), (3, members[3])])
    for each in (attempt, other):
        counted = [each.room.capacity(each.shapes[number].asked).tolist() for number in range(len(shapes))]
        assert [each.capacity(number).tolist() for number in range(len(shapes))] == counted
    assert attempt.capacity(0).sum() == other.capacity(0).sum() + 2


class Listening:
    """Takes every node, and notes of what members it was told when it was asked. Fulfils Trial."""

    def __init__(self, asked: list[list[str]], told: Sequence[str] = ()) -> None:
        self.asked, self.told = asked, list(told)

    def filter(self, node: NodeInfo) -> Status:
        self.asked.append(list(self.told))
        return SUCCESS

    def filter_all(self) -> Sequence[Status]:
        return ()

    def volumes_on(self, node_name: str) -> Mapping[str, str]:
        return {}

    def add_pods(self, added: Sequence[Added]) -> None:
        self.told += [info.pod.name for info, *_ in added]

    def clone(self) -> Trial:
        return Listening(self.asked, self.told)


def test_a_trial_that_is_asked_knows_each_member_before_once() -> None:
    asked: list[list[str]] = []
    everywhere = np.ones(len(NODES), dtype=np.bool_)
    members = [[member().name(f"{name}{i}").info() for i in range(2)] for name in "ab"]
    shapes = [
        Shape(MemberClass(tuple(two), ""), Listening(asked), everywhere, everywhere, everywhere) for two in members
    ]
    room = Room.of(HypotheticalSnapshot(NODES), ["cpu", "memory"])
    regions, groups = [everywhere] * 2, np.zeros(len(NODES), dtype=np.int64)
    attempt = Arrangement(shapes, list(NODES), room, regions, groups, Preference.FEW, Deadline(lambda: 0.0, 0.0, 1.0))
    attempt.run([(0, members[0][0]), (1, members[1][0])])
    others = [attempt.on(everywhere) for _ in range(2)]
    for other in others:
        other.run([(1, members[1][1]), (0, members[0][1])])
    before = [[], ["a0"]]
    after = [["a0", "b0"], ["a0", "b0", "b1"]]
    assert asked == [*before, *after, *after]


@pytest.mark.parametrize(
    ("packing", "most"),
    [
        pytest.param(Packing.FEWEST_NODES, 2, id="as few nodes as can be"),
        pytest.param(Packing.MOST_EVEN, 1, id="as evenly as can be"),
    ],
)
def test_the_preference_chooses_among_nodes_that_take_a_member(packing: Packing, most: int) -> None:
    """Spread with a skew of two leaves the choice."""
    spread = member().spread_constraint(2, HOSTNAME, "DoNotSchedule", GANG)
    nodes = list(placed(plan(NODES, gang(3, spread), topology=Topology(packing=packing))).values())
    assert max(map(nodes.count, nodes)) == most


SOME = [node(f"n{i:02}", cpu=1, zone=zone).info() for i, zone in enumerate("abcdefghijabcde")]
"""Ten zones of fifteen nodes: the values of such a label are neither few nor shared by most."""


@pytest.mark.parametrize(
    ("of", "count", "domains"),
    [
        pytest.param(member().pod_anti_affinity(ZONE, GANG), 10, 10, id="each in a zone of its own"),
        pytest.param(member().spread_constraint(1, ZONE, "DoNotSchedule", GANG), 10, 10, id="spread over all zones"),
        pytest.param(member().pod_affinity(ZONE, GANG), 2, 1, id="together"),
    ],
)
def test_where_many_zones_have_one_node(of: PodBuilder, count: int, domains: int) -> None:
    nodes = placed(plan(SOME, gang(count, of)))
    zones = {info.name: info.node.metadata.labels[ZONE] for info in SOME if info.node is not None}
    assert len({zones[name] for name in nodes.values()}) == domains
