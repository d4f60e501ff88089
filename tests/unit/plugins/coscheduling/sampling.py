"""A cluster of which kube-scheduler offers samples, and gangs there, for tests of slots that are moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from extender.api import corev1
from extender.backend.cache.snapshot import new_snapshot
from extender.plugins.coscheduling.planner.request import Topology
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import PodBuilder, make_pod, make_pod_group, selector
from tests.unit.plugins.coscheduling.conftest import Rooms, World
from tests.unit.plugins.coscheduling.planning import JUDGE, node

Make = Callable[..., World]
NODES = 240
SAMPLE = [f"n{number:03}" for number in range(120, 220)]
SPREAD = selector({"app": "g"})


def names(numbers: Iterable[int]) -> list[str]:
    return [f"n{number:03}" for number in numbers]


def cluster(world: Make, nodes: Sequence[corev1.Node] = (), **others: Any) -> World:
    """Nodes of one CPU in racks of 20, as a snapshot with columns, judged by the in-tree filters."""
    made = nodes or [node(f"n{at:03}", cpu=1, rack=f"r{at // 20:02}").obj() for at in range(NODES)]
    w = world(made)
    others.setdefault("topology", Topology())
    w.connect(
        newest_snapshot=lambda: new_snapshot(w.on_nodes.values(), w.nodes.values()), judges=Rooms(JUDGE), **others
    )
    return w


def member(name: str, group: str = "g", cpu: int = 1) -> PodBuilder:
    return make_pod().name(name).uid(name).pod_group(group).label("app", group).req(cpu=cpu)


def apply(w: World, name: str = "g", minimum: int = 2, **annotations: str) -> None:
    made = make_pod_group().name(name).min_member(minimum).created("2026-01-01T00:00:00Z")
    for key, value in annotations.items():
        made = made.annotation(f"gang-extender.dev/{key.replace('_', '-')}", value)
    w.plugin.on_pod_group(None, made.obj())


def planned(w: World, *builders: PodBuilder) -> list[corev1.Pod]:
    """All of them are there, and have a slot; the first was asked about."""
    members = [builder.obj() for builder in builders or (member("p0"), member("p1"))]
    w.create(*members)
    assert w.filter(members[0]) in w.nodes
    assert w.plans == 1
    return members


def slot(w: World, uid: str) -> Slot:
    found = w.plugin.manager.slots.get(uid)
    assert found is not None
    return found
