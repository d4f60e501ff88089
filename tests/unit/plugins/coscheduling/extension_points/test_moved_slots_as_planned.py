"""A slot that is moved lies where a plan of its member alone would have put it, whatever has happened before."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from extender.api import corev1
from extender.backend.cache.snapshot import new_snapshot
from extender.framework.hypothetical import Cluster, with_pods
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner.request import Topology
from extender.plugins.judge import FrameworkTrial
from tests.objects import make_node, make_pod
from tests.unit.plugins.coscheduling.bookkeeping import wrong_entries
from tests.unit.plugins.coscheduling.conftest import Rooms, World
from tests.unit.plugins.coscheduling.planning import JUDGE, LEVELS, node
from tests.unit.plugins.coscheduling.sampling import (
    NODES,
    Make,
    apply,
    cluster,
    member,
    names,
    planned,
)


def test_the_nodes_of_a_shape_are_judged_once_until_a_node_changes(
    world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []
    begin = JUDGE.begin

    def noted(asked: corev1.Pod, on: Cluster) -> FrameworkTrial:
        judged.append(asked.name)
        return begin(asked, on)

    monkeypatch.setattr(JUDGE, "begin", noted)
    w = cluster(world)
    known: dict[int, Any] = {}

    def snapshot() -> Any:  # as the cache does
        before = known.get(len(w.on_nodes))
        known[len(w.on_nodes)] = before or new_snapshot(w.on_nodes.values(), w.nodes.values())
        return known[len(w.on_nodes)]

    w.connect(newest_snapshot=snapshot, judges=Rooms(JUDGE), topology=Topology())
    apply(w, minimum=6)
    members = planned(w, *(member(f"p{number}") for number in range(6)))
    judged.clear()
    for number, each in enumerate(members[1:]):
        sample = names((120 + number + at) % NODES for at in range(100))
        assert w.filter(each, sample) in sample
    assert len(judged) == 1
    assert w.plans == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_slot_lies_where_a_plan_of_its_member_alone_would_have_put_it(world: Make, seed: int) -> None:
    """Moves at random, beside pods that come, nodes that are cordoned and gangs that go."""
    rng = random.Random(seed)
    nodes = [_any_node(rng, at) for at in range(140)]
    topology = Topology(LEVELS) if seed % 2 else Topology()
    w = cluster(world, nodes, topology=topology)
    manager, requests = w.plugin.manager, w.plugin.rounds.requests
    moves, gangs = 0, {}
    for step in range(30):
        match rng.randrange(6):
            case 0 | 1:
                name, count = f"g{step}", rng.randint(2, 9)
                apply(w, name, count)
                cpu = rng.randint(1, 2)
                members = [member(f"{name}-{at}", name, cpu).obj() for at in range(count)]
                w.create(*members)
                w.filter(members[0])
                gangs[name] = members
            case 2:
                pod = make_pod().name(f"x{step}").node(rng.choice(nodes).name).req(cpu="500m").obj()
                w.on_nodes[pod.uid] = pod
            case 3:
                name = rng.choice(nodes).name
                w.nodes[name] = make_node().name(name).capacity(cpu=4, memory="64Gi").unschedulable().obj()
            case 4 if gangs:
                name = rng.choice(list(gangs))
                for each in gangs.pop(name):
                    w.plugin.on_pod(each, None)
        for name, members in gangs.items():
            asked = rng.choice(members)
            before = manager.slots.get(asked.uid)
            offered = frozenset(rng.sample(sorted(w.nodes), 110))
            group = manager.groups[f"default/{name}"]
            if before is None or before.node_name in offered:
                continue
            manager.slots.release(asked.uid, bound=True)
            question = requests.question((group,), "default-scheduler", w.plugin.dependencies.newest_snapshot())
            request = replace(
                question.request,
                members=[group.members[asked.uid].info],
                needed=1,
                allowed={asked.uid: offered},
                minima=(),
            )
            expected = planner.plan(question.cluster, request, JUDGE)
            manager.slots.reserve(before)
            node_name = w.plugin.admission._moved_slots.move(group, asked.uid, offered)
            placed = expected.nodes[asked.uid] if isinstance(expected, planner.Placement) else None
            assert node_name == placed
            moves += node_name is not None
            assert node_name not in list(_overfull(w))
            assert list(wrong_entries(w.plugin)) == []
    assert moves > 5


def _any_node(rng: random.Random, at: int) -> corev1.Node:
    made = node(f"n{at:03}", cpu=rng.randint(1, 4), zone=f"z{at % 3}", rack=f"r{rng.randrange(12)}")
    return (made.taint("x") if rng.random() < 0.1 else made).obj()


def _overfull(w: World) -> Iterable[str]:
    """Nodes that carry more than they have since a slot came there."""
    snapshot, slots = w.plugin.dependencies.newest_snapshot(), w.plugin.manager.slots
    laid = with_pods(snapshot, [(each.node_name, each.pod_info) for each in slots])
    for before, after in zip(snapshot.list(), laid.list(), strict=True):
        if after is not before and after.requested.milli_cpu > after.allocatable.milli_cpu:
            yield after.name
