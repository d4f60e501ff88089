"""How large a gang still fits: by level, for a reference member, with what is promised counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from extender.api import corev1
from extender.backend.cache.snapshot import Snapshot, new_snapshot
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner.domains import Domains
from extender.plugins.coscheduling.report import largest_gang
from extender.plugins.coscheduling.report.largest_gang import (
    ONE_CPU,
    Asked,
    LargestGang,
    asked_by,
    largest,
    reference_of,
)
from tests.objects import NodeBuilder, make_pod
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.planning import LEVELS, existing
from tests.unit.plugins.coscheduling.planning import node as labelled

CLUSTER = [
    labelled("a", 4, "z1", "r1"),
    labelled("b", 4, "z1", "r1"),
    labelled("c", 4, "z1", "r2"),
    labelled("d", 6, "z2", "r1"),
]


def seen(*more: NodeBuilder, pods: tuple[corev1.Pod, ...] = ()) -> Snapshot:
    return new_snapshot(pods, [builder.obj() for builder in (*CLUSTER, *more)])


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(seen(), {"cluster": 18, "node": 6, "zone": 12, "rack": 8}, id="an empty cluster"),
        pytest.param(
            seen(pods=(existing("p", "a", 3).obj(),)),
            {"cluster": 15, "node": 6, "zone": 9, "rack": 6},
            id="what is in use is gone",
        ),
        pytest.param(
            seen(labelled("cordoned", 9, "z1", "r1").unschedulable()),
            {"cluster": 18, "node": 6, "zone": 12, "rack": 8},
            id="a cordoned node has no room",
        ),
        pytest.param(
            seen(labelled("not-ready", 9, "z1", "r1").taint("node.kubernetes.io/not-ready")),
            {"cluster": 18, "node": 6, "zone": 12, "rack": 8},
            id="nor has one that is not ready",
        ),
        pytest.param(
            seen(labelled("gpu", 9, "z2", "r3").taint("example.com/gpu")),
            {"cluster": 27, "node": 9, "zone": 15, "rack": 9},
            id="a taint of one's own keeps no gang out",
        ),
        pytest.param(
            seen(labelled("nowhere", 7)),
            {"cluster": 25, "node": 7, "zone": 12, "rack": 8},
            id="a node without labels counts for no domain",
        ),
    ],
)
def test_largest(snapshot: Snapshot, expected: dict[str, int]) -> None:
    assert largest(snapshot, Domains(snapshot, LEVELS), ONE_CPU) == expected
    plain = HypotheticalSnapshot(snapshot.list())
    assert largest(plain, Domains(plain, LEVELS), ONE_CPU) == expected


def test_no_nodes_have_room_for_no_member() -> None:
    nothing = new_snapshot((), ())
    assert largest(nothing, Domains(nothing, LEVELS), ONE_CPU) == {"cluster": 0, "node": 0, "zone": 0, "rack": 0}


def asking(waits: bool, **requests: int) -> tuple[PodInfo, bool]:
    return make_pod().req({key: str(value) for key, value in requests.items()}).info(), waits


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        pytest.param([], {"cpu": 1000}, id="no members: one CPU"),
        pytest.param([asking(True, cpu=1), asking(True, cpu=2), asking(True, cpu=9)], {"cpu": 2000}, id="the median"),
        pytest.param(
            [asking(True, cpu=1), asking(False, cpu=8), asking(False, cpu=8)], {"cpu": 1000}, id="those that wait"
        ),
        pytest.param([asking(False, cpu=8, memory=64)], {"cpu": 8000, "memory": 64}, id="none waits: those that run"),
        pytest.param(
            [asking(True, cpu=1), asking(True, cpu=1), asking(True, cpu=1, memory=64)],
            {"cpu": 1000},
            id="what few ask for is left out",
        ),
        pytest.param([asking(True)], {"cpu": 1000}, id="members that ask for nothing: one CPU"),
    ],
)
def test_the_reference_member(members: list[tuple[PodInfo, bool]], expected: dict[str, int]) -> None:
    assert reference_of(asked_by(members)) == expected


def test_a_planned_gang_has_its_room_taken(world: Callable[..., World]) -> None:
    made = world([node("n1", "4"), node("n2", "4")])
    snapshot = made.snapshot()
    gauge = LargestGang(made.plugin.manager, made.plugin.rounds.requests.overlays, lambda: snapshot, planner.Topology())
    members = [pod(f"m{i}", "g", cpu="2") for i in range(3)]
    made.plugin.on_pod_group(None, pod_group("g", 3))
    made.create(*members)
    assert gauge().members == {"cluster": 4, "node": 2}
    assert gauge().reference == {"cpu": 2000}
    made.filter(members[0])
    assert gauge().members == {"cluster": 1, "node": 1}
    assert gauge() is gauge()


def test_members_are_looked_through_once_for_each_change_of_them(
    world: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are tens of thousands, and each scrape asks."""
    w = world([node("n1", "8")])
    looked: list[int] = []

    def look(members: Sequence[tuple[PodInfo, bool]]) -> Asked:
        looked.append(len(members))
        return asked_by(members)

    monkeypatch.setattr(largest_gang, "asked_by", look)
    asked = LargestGang(w.plugin.manager, w.plugin.rounds.requests.overlays, w.snapshot, planner.Topology())
    w.create(pod("p0", "g", cpu="1"))
    assert asked().members["cluster"] == 8
    asked()
    assert looked == [1]
    w.create(pod("p1", "g", cpu="2"), pod("p2", "g", cpu="2"))
    assert asked().reference["cpu"] == 2000
    w.plugin.on_pod(pod("p1", "g", cpu="2"), None)
    w.plugin.on_pod(pod("p2", "g", cpu="2"), None)
    assert asked().reference["cpu"] == 1000
    assert looked == [1, 3, 1]
