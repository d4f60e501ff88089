"""Whatever the cluster and the gang: a placement is one that kube-scheduler accepts member by member, or there is a verdict."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from tests.objects import HOSTNAME, ZONE, PodBuilder, selector
from tests.unit.plugins.coscheduling.planning import (
    GANG,
    RACK,
    existing,
    gang,
    member,
    node,
    plan,
    refused_in_turn,
    topology,
)

KINDS: dict[str, PodBuilder] = {
    "plain": member(),
    "large": member(2).label("role", "large"),
    "spread over zones": member().spread_constraint(1, ZONE, label_selector=GANG),
    "spread over zones, loosely": member().spread_constraint(2, ZONE, label_selector=GANG),
    "spread over hosts and zones": member()
    .spread_constraint(1, HOSTNAME, label_selector=GANG)
    .spread_constraint(1, ZONE, label_selector=GANG),
    "one a host": member().pod_anti_affinity(HOSTNAME, GANG),
    "spread over zones by three": member().spread_constraint(1, ZONE, label_selector=GANG, minDomains=3),
    "spread of masters": member().spread_constraint(1, ZONE, label_selector=selector({"role": "master"})),
    "spread by index": member().spread_constraint(1, RACK, label_selector=GANG, matchLabelKeys=["index"]),
    "together, yet spread": member()
    .pod_affinity(ZONE, GANG)
    .spread_constraint(1, HOSTNAME, label_selector=GANG)
    .pod_anti_affinity(HOSTNAME, selector({"role": "master"})),
    "together in zone and rack": member().pod_affinity(ZONE, GANG).pod_affinity(RACK, GANG),
    "on one host": member().pod_affinity(HOSTNAME, GANG),
    "beside the web": member().pod_affinity(ZONE, selector({"app": "web"})),
    "one a rack": member().pod_anti_affinity(RACK, GANG),
    "together in a zone": member().pod_affinity(ZONE, GANG),
    "beside the master": member().pod_affinity(RACK, selector({"role": "master"})),
    "the master": member(2).label("role", "master"),
    "away from the web": member().pod_anti_affinity(ZONE, selector({"app": "web"})),
    "away from all masters": member().pod_anti_affinity(
        ZONE, selector({"role": "master"}), namespaceSelector=selector({})
    ),
    "with a port": member().host_port(80),
    "large with a port": member(2).host_port(80),
    "in zone a": member().node_selector({ZONE: "a"}),
}


@st.composite
def clusters(draw: st.DrawFn, most: int = 6) -> list[NodeInfo]:
    infos = []
    for i in range(draw(st.integers(1, most))):
        zone, rack = draw(st.sampled_from(["a", "b", "c", ""])), draw(st.sampled_from(["1", "2", ""]))
        builder = node(f"n{i}", draw(st.integers(0, 4)), zone, rack, pods=draw(st.sampled_from([2, 32])))
        if draw(st.integers(0, 9)) == 0:
            builder = builder.unschedulable()
        here = []
        for j in range(draw(st.integers(0, 2))):
            pod = existing(f"e{i}-{j}", f"n{i}", draw(st.integers(0, 1)))
            label = draw(st.sampled_from([("app", "web"), ("gang", "g"), ("app", "db")]))
            pod = pod.label(*label)
            if draw(st.integers(0, 5)) == 0:
                pod = pod.pod_anti_affinity(HOSTNAME, GANG)
            here.append(pod.obj())
        infos.append(builder.info(*here))
    return infos


@st.composite
def gangs(draw: st.DrawFn, most: int = 7) -> list[PodInfo]:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    members: list[PodInfo] = []
    for i in range(draw(st.integers(1, most))):
        kind = kinds[i % len(kinds)]
        members += gang(1, KINDS[kind].label("index", str(i)), f"{kind.replace(' ', '-')}-{i}-")
    return members


topologies = st.builds(
    topology, st.sampled_from(["", "", "zone", "rack", RACK]), st.sampled_from(["", "", "zone", "rack"])
)


def check(nodes: Sequence[NodeInfo], members: Sequence[PodInfo], answer: Any, needed: int, arrange: Any) -> None:
    assert isinstance(answer, planner.Placement)
    assert len(answer.nodes) >= needed
    assert sorted(uid for wave in answer.waves for uid in wave) == sorted(answer.nodes)
    assert refused_in_turn(nodes, members, answer, arrange) == ""


@settings(deadline=None, max_examples=100)
@given(clusters(), gangs(), st.data())
def test_kube_scheduler_accepts_every_member_in_its_wave_in_any_order(
    nodes: list[NodeInfo], members: list[PodInfo], data: st.DataObject
) -> None:
    needed = data.draw(st.integers(0, len(members)))
    answer = plan(nodes, members, needed, topology=topology())
    if isinstance(answer, planner.NoPlacement):
        assert answer.placed < answer.needed == needed
        assert answer.reason
        return
    check(nodes, members, answer, needed, lambda wave: data.draw(st.permutations(wave)))


@settings(deadline=None, max_examples=80)
@given(clusters(), gangs(), topologies, st.data())
def test_a_required_level_holds_the_gang_in_one_domain(
    nodes: list[NodeInfo], members: list[PodInfo], wanted: planner.Topology, data: st.DataObject
) -> None:
    needed = data.draw(st.integers(1, len(members)))
    here = data.draw(st.lists(st.sampled_from([n.name for n in nodes]), max_size=1))
    answer = plan(nodes, members, needed, topology=wanted, placed=here)
    if isinstance(answer, planner.NoPlacement):
        return
    check(nodes, members, answer, needed, None)
    if not wanted.required:
        return
    key = ZONE if wanted.required == "zone" else RACK
    paths = set()
    for info in nodes:
        if info.name in answer.nodes.values():
            assert info.node is not None
            assert key in info.node.labels
            paths.add(tuple(info.node.labels.get(k) for k in ((ZONE,) if key == ZONE else (ZONE, RACK))))
    assert len(paths) == 1


@settings(deadline=None, max_examples=30)
@given(clusters(), gangs(), topologies)
def test_the_same_question_has_the_same_answer(
    nodes: list[NodeInfo], members: list[PodInfo], wanted: planner.Topology
) -> None:
    needed = (len(members) + 1) // 2
    assert plan(nodes, members, needed, topology=wanted) == plan(nodes, members, needed, topology=wanted)


def most_that_fit(nodes: Sequence[NodeInfo], first: PodInfo, required: str) -> int:
    """Of alike members, by counting every node of every domain."""
    by_domain: dict[object, int] = {}
    for info in nodes:
        assert info.node is not None
        labels = info.node.labels
        selected = all(labels.get(k) == v for k, v in (first.pod.spec.node_selector or {}).items())
        free = 0 if info.unschedulable or not selected else planner.capacity_for(info, first.requests)
        keys = {"": (), "zone": (ZONE,), "rack": (ZONE, RACK)}[required]
        if not required or keys[-1] in labels:
            domain = tuple(labels.get(key) for key in keys)
            by_domain[domain] = by_domain.get(domain, 0) + free
    return max(by_domain.values(), default=0)


@settings(deadline=None, max_examples=100)
@given(
    clusters(),
    st.sampled_from(["plain", "large", "in zone a"]),
    st.integers(1, 9),
    st.sampled_from(["", "zone", "rack"]),
    st.data(),
)
def test_alike_members_are_placed_wherever_they_can_be(
    nodes: list[NodeInfo], kind: str, count: int, required: str, data: st.DataObject
) -> None:
    for info in nodes:  # pods that mind the gang are for the other tests
        for pod in list(info.pods_with_required_anti_affinity):
            info.remove_pod(pod.pod)
    members, needed = gang(count, KINDS[kind]), data.draw(st.integers(1, count))
    most = most_that_fit(nodes, members[0], required)
    allowed = {"m00": frozenset(n.name for n in nodes)} if data.draw(st.booleans()) else {}
    answer = plan(nodes, members, needed, topology=topology(required), allowed=allowed)
    assert isinstance(answer, planner.Placement) == (most >= needed)
    if isinstance(answer, planner.Placement):
        assert len(answer.nodes) == min(count, most)
        assert len(answer.waves) == 1
    else:
        assert answer.placed == most


@settings(deadline=None, max_examples=50)
@given(clusters(), gangs(), st.data())
def test_members_keep_to_the_nodes_that_they_are_kept_to(
    nodes: list[NodeInfo], members: list[PodInfo], data: st.DataObject
) -> None:
    names = [n.name for n in nodes]
    uids = st.sampled_from([m.pod.uid for m in members])
    allowed = data.draw(st.dictionaries(uids, st.frozensets(st.sampled_from(names)), max_size=2))
    excluded = data.draw(st.frozensets(st.tuples(uids, st.sampled_from(names)), max_size=3))
    answer = plan(nodes, members, 0, allowed=allowed, excluded=excluded)
    assert isinstance(answer, planner.Placement)
    for uid, name in answer.nodes.items():
        assert name in allowed.get(uid, names)
        assert (uid, name) not in excluded


LATE = """
import sys, numpy as np
from extender.plugins.coscheduling import planner
before, array = set(sys.modules), np.array([2, 1, 2])
np.unique(array, return_inverse=True), np.unique(array), np.isin(array, [1]), np.intersect1d(array, array)
print(sorted(set(sys.modules) - before))
"""


def test_what_a_plan_asks_of_numpy_has_been_imported() -> None:
    """A first import takes locks, which under gevent belong to the event loop; plans run on native threads."""
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
