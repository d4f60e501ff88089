"""A snapshot that is kept up with places and nodes as they change is the one that would be made anew."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from msgspec import structs

from extender.backend.cache.cache import Cache
from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.hypothetical import with_pods
from extender.plugins.coscheduling.scheduling.promised_room import MOST_PRIORITIES, PromisedRooms
from extender.plugins.coscheduling.state.slots import Slot, Slots
from tests.objects import make_node, make_pod
from tests.unit.plugins.coscheduling.conftest import Snapshot, node

STEPS = 40


def place(uid: str, node_name: str, priority: int = 0, *, firm: bool = False) -> Slot:
    pod = make_pod().name(uid).req(cpu=1).priority(priority).obj()
    return Slot(PodInfo(pod), "default/g", node_name, 100.0, firm, priority)


def pods_on(snapshot: NodeInfoLister) -> Mapping[str, tuple[Sequence[str], int]]:
    """Per node, by the nodes and by the columns."""
    table = table_of(snapshot)
    assert table is not None
    found = {
        info.name: (sorted(each.pod.uid for each in info.pods), info.requested.milli_cpu) for info in snapshot.list()
    }
    assert np.array_equal(table.requested("cpu"), [cpu for _, cpu in found.values()])
    return found


@pytest.mark.parametrize("seed", range(20))
def test_it_is_as_if_made_anew_after_any_change(seed: int) -> None:
    rng = random.Random(seed)
    cache, slots = Cache(), Slots()
    rooms = PromisedRooms(slots)
    names = [f"n{number}" for number in range(5)]
    nodes = {name: make_node().name(name).capacity(cpu="8").obj() for name in names}
    for each in nodes.values():
        cache.add_node(each)
    for step in range(STEPS):
        uid, name = f"p{rng.randrange(8)}", rng.choice(names)
        match rng.randrange(6):
            case 0 | 1:
                slots.reserve(place(uid, name, rng.randrange(3), firm=rng.random() < 0.2))
            case 2:
                slots.release(uid)
            case 3:
                cache.add_pod(make_pod().name(f"other-{step}").node(name).req(cpu=1).obj())
            case 4 if (
                known := slots.get(uid)
            ) is not None and known.node_name in nodes:  # it came; its place is still known
                on_it = structs.replace(known.pod, spec=structs.replace(known.pod.spec, node_name=known.node_name))
                if cache.get_pod(on_it) is None:
                    cache.add_pod(on_it)
            case 5 if name in nodes:
                cache.remove_node(nodes.pop(name))
            case 5:
                nodes[name] = make_node().name(name).capacity(cpu="4").obj()
                cache.add_node(nodes[name])
        priority = rng.randrange(3)
        room, snapshot = rooms.against(priority), cache.snapshot()
        holding = [each for each in slots if each.holds_against(priority)]
        assert room.places() == {each.uid: (each.node_name, each.pod_info) for each in holding}
        made_anew = with_pods(snapshot, [(each.node_name, each.pod_info) for each in holding])
        assert pods_on(room.over(snapshot)) == pods_on(made_anew)


def test_where_a_snapshot_cannot_be_kept_up_it_is_made_anew() -> None:
    slots = Slots()
    slots.reserve(place("a", "n1"))
    over = PromisedRooms(slots).against(0).over(Snapshot([node("n1")], []))
    assert [info.pod.uid for info in over.get("n1").pods] == ["a"]


def test_priorities_that_are_not_asked_for_any_more_are_forgotten() -> None:
    slots = Slots()
    rooms = PromisedRooms(slots)
    for priority in range(MOST_PRIORITIES + 3):
        rooms.against(priority)
    assert len(slots._followers) == MOST_PRIORITIES
    slots.reserve(place("a", "n1", 1))
    assert rooms.against(0).places()
