"""Where one member more goes, beside the places of its gang: to the node that a plan of it alone chooses."""

from __future__ import annotations

import random

import numpy as np
import pytest

from extender.backend.cache.snapshot import Snapshot, new_snapshot
from extender.config.types import Packing
from extender.framework.hypothetical import HypotheticalSnapshot
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner.request import Topology
from tests.objects import make_node
from tests.unit.plugins.coscheduling.planning import JUDGE, LEVELS, existing, member, node


def chosen(cpus: str, at: str = "012345", packing: Packing = Packing.FEWEST_NODES) -> int | None:
    """cpus: how many each node has. at: the rows that are offered."""
    snapshot = new_snapshot([], [node(f"n{number}", int(cpu)).obj() for number, cpu in enumerate(cpus)])
    rows = np.array([int(row) for row in at], dtype=np.int64)
    return planner.place_one(member(2).info(), snapshot, rows, Topology(packing=packing), ())


@pytest.mark.parametrize(
    ("cpus", "at", "row"),
    [
        pytest.param("444444", "012345", 0, id="of alike nodes the first"),
        pytest.param("444444", "345", 3, id="of those that are offered"),
        pytest.param("484844", "13", 1, id="of those alone"),
        pytest.param("884888", "012345", 2, id="the one with the least room"),
        pytest.param("811888", "12345", 3, id="that is enough"),
        pytest.param("111111", "012345", None, id="none where none has room"),
        pytest.param("411111", "12345", None, id="nor where one that is not offered has"),
    ],
)
def test_it_goes_where_it_breaks_up_the_least_room(cpus: str, at: str, row: int | None) -> None:
    assert chosen(cpus, at) == row


def test_with_even_packing_it_goes_where_the_most_is_left() -> None:
    assert chosen("444844", packing=Packing.MOST_EVEN) == 3


@pytest.mark.parametrize("columns", [True, False], ids=["by columns", "by nodes"])
@pytest.mark.parametrize("packing", list(Packing))
def test_it_is_the_choice_of_a_plan_of_it_alone(packing: Packing, columns: bool) -> None:
    rng = random.Random(1)
    for _ in range(30):
        nodes = [
            node(f"n{at}", rng.randint(1, 5), zone=rng.choice(("", "a", "b")), rack=rng.choice(("", "r1", "r2", "r3")))
            for at in range(12)
        ]
        pods = [existing(f"p{at}", f"n{rng.randrange(12)}") for at in range(rng.randrange(8))]
        made = new_snapshot([each.obj() for each in pods], [each.obj() for each in nodes])
        snapshot = made if columns else HypotheticalSnapshot(made.list())
        topology = Topology(rng.choice(((), LEVELS)), preferred=rng.choice(("", "zone")), packing=packing)
        topology = topology if topology.levels else Topology(packing=packing)
        placed = [f"n{rng.randrange(12)}" for _ in range(rng.randrange(3))]
        rows = sorted(rng.sample(range(12), 7))
        info = member(2).name("m").info()
        allowed = {info.pod.uid: frozenset(made.list()[row].name for row in rows)}
        request = planner.Request([info], 1, allowed=allowed, topology=topology, placed=placed)
        expected = planner.plan(snapshot, request, JUDGE)
        row = planner.place_one(info, snapshot, np.array(rows), topology, placed)
        name = made.list()[row].name if row is not None else None
        assert name == (expected.nodes[info.pod.uid] if isinstance(expected, planner.Placement) else None)


def test_nodes_are_open_but_for_cordons_taints_and_selectors_whatever_room_they_have() -> None:
    nodes = [
        node("full", 1),
        node("cordoned").unschedulable(),
        node("tainted").taint("x"),
        make_node().name("bare").capacity(cpu=4),
        node("good"),
    ]
    snapshot: Snapshot = new_snapshot([], [each.label("pool", "a").obj() for each in nodes[:4]] + [nodes[4].obj()])
    asks = member(2).node_selector({"pool": "a"}).info()
    open_ = planner.open_nodes(asks, snapshot, JUDGE).tolist()
    assert dict(zip((each.name for each in snapshot.list()), open_, strict=True)) == {
        "full": True,
        "cordoned": False,
        "tainted": False,
        "bare": True,
        "good": False,
    }
