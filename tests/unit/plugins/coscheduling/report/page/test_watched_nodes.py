"""What the page draws of a node: its domains, and what is bound, held and promised of what it has."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import TopologyLevel
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.report.page.stopwatch import Stopwatch
from extender.plugins.coscheduling.report.page.watched_nodes import (
    CORDONED,
    KEPT_FREE,
    OUT_OF_ORDER,
    NodeChanges,
    NodeRow,
    WatchedNodes,
)
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot
from tests.objects import NodeBuilder, make_node, make_pod

LEVELS = (TopologyLevel("zone", "zone"), TopologyLevel("rack", "example.com/rack"))


class Room:
    """Two nodes, and what watches them."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.kept: set[str] = set()
        labels = GroupLabels.of(CoschedulingArgs())
        self.manager = PodGroupManager(labels, denied_seconds=3, permitted_seconds=60, clock=lambda: 0.0)
        self.set(node("a").labels({"zone": "z", "example.com/rack": "r1"}), node("b"))
        self.watched = WatchedNodes(
            self.manager, self.cache.snapshot, LEVELS, lambda: frozenset(self.kept), Stopwatch()
        )
        self.held: dict[str, str] = {}

    def set(self, *nodes: NodeBuilder) -> None:
        for each in nodes:
            self.cache.add_node(each.obj())

    def update(self, *changed: str) -> NodeChanges:
        return self.watched.update({"default/g": self.held}, set(changed))

    def promise(self, pod: corev1.Pod, node_name: str) -> None:
        self.manager.slots.reserve(Slot(PodInfo(pod), "default/g", node_name, 60.0))


def node(name: str) -> NodeBuilder:
    return make_node().name(name).capacity(cpu="4", memory="8Gi", pods="110")


def pod(name: str, node_name: str = "", cpu: int = 1) -> corev1.Pod:
    made = make_pod().name(name).uid(name).req(cpu=cpu)
    return (made.node(node_name) if node_name else made).obj()


def cpu(rows: Sequence[NodeRow], name: str) -> tuple[int, int, int]:
    """Bound, held and promised, in milli."""
    row = next(row for row in rows if row.name == name)
    return row.bound[0], row.held[0], row.promised[0]


@pytest.fixture
def room() -> Room:
    return Room()


def test_the_first_update_has_all_nodes_with_their_domains(room: Room) -> None:
    changes = room.update()
    assert changes.anew
    assert {row.name: row.domains for row in changes.rows} == {"a": ("z", "r1"), "b": ("", "")}
    assert room.watched.resources == ("cpu", "memory")
    assert changes.rows[0].allocatable == (4000, 8192)


def test_nothing_is_told_twice(room: Room) -> None:
    room.update()
    assert room.update() == NodeChanges(False, [], [])
    room.set(node("b"))  # a heartbeat
    assert room.update() == NodeChanges(False, [], [])


def test_a_pod_is_promised_then_held_then_bound_and_counts_once(room: Room) -> None:
    room.update()
    waiting = pod("p")
    room.promise(waiting, "a")
    assert cpu(room.update().rows, "a") == (0, 0, 1000)
    room.cache.assume_pod(waiting, "a")
    room.held["p"] = "a"
    assert cpu(room.update("a").rows, "a") == (0, 1000, 0)
    room.held.clear()
    room.manager.slots.release("p", bound=True)
    assert cpu(room.update("a").rows, "a") == (1000, 0, 0)


def test_only_the_node_that_changed_is_told_of(room: Room) -> None:
    room.update()
    room.cache.add_pod(pod("p", "b", cpu=2))
    changes = room.update()
    assert [row.name for row in changes.rows] == ["b"]
    assert cpu(changes.rows, "b") == (2000, 0, 0)


@pytest.mark.parametrize(
    ("change", "marks"),
    [
        pytest.param(node("b").unschedulable(), CORDONED, id="cordoned"),
        pytest.param(node("b").taint("node.kubernetes.io/not-ready"), OUT_OF_ORDER, id="not ready"),
        pytest.param(node("b").taint("example.com/gpu"), 0, id="kept for some pods, which is in order"),
    ],
)
def test_marks(room: Room, change: NodeBuilder, marks: int) -> None:
    room.set(change)
    assert [row.marks for row in room.update().rows if row.name == "b"] == [marks]


def test_nodes_that_are_kept_free_are_told_as_that_begins_and_ends(room: Room) -> None:
    room.update()
    room.kept = {"a"}
    assert [(row.name, row.marks) for row in room.update().rows] == [("a", KEPT_FREE)]
    room.kept = set()
    assert [(row.name, row.marks) for row in room.update().rows] == [("a", 0)]


def test_a_node_that_comes_or_goes(room: Room) -> None:
    room.update()
    room.set(node("c"))
    assert [row.name for row in room.update().rows] == ["c"]
    room.cache.remove_node(node("b").obj())
    assert room.update().gone == ["b"]
    assert set(room.watched.rows) == {"a", "c"}


def test_a_resource_that_is_new_has_all_told_anew(room: Room) -> None:
    room.update()
    room.set(make_node().name("gpu").capacity({"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "8", "pods": "110"}))
    changes = room.update()
    assert changes.anew
    assert len(changes.rows) == 3
    assert room.watched.resources == ("cpu", "memory", "nvidia.com/gpu")
    assert {row.name: row.allocatable[2] for row in changes.rows} == {"a": 0, "b": 0, "gpu": 8}


def test_a_place_on_a_node_that_is_gone_is_in_no_row(room: Room) -> None:
    room.promise(pod("p"), "elsewhere")
    assert {row.name for row in room.update().rows} == {"a", "b"}


def test_places_are_followed_no_longer_than_it_lasts(room: Room) -> None:
    room.watched.stop()
    room.promise(pod("p"), "a")
    assert room.watched._promised == set()
