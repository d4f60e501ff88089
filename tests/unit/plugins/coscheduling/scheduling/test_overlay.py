"""A snapshot that is kept up with places and nodes as they change is the one that would be made anew."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytest
from msgspec import structs

from extender.backend.cache.cache import Cache
from extender.framework.columnar import table_of
from extender.framework.hypothetical import with_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.scheduling.overlay import BELOW_ANY_PRIORITY, MOST_OVERLAYS, Overlays
from extender.plugins.coscheduling.state.slots import Slot, Slots
from tests.objects import make_node, make_pod
from tests.unit.plugins.coscheduling.cloned import counted_clones
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
    overlays = Overlays(slots)
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
        priority = rng.choice((BELOW_ANY_PRIORITY, 0, 1, 2, 3))
        overlay, snapshot = overlays.against(priority), cache.snapshot()
        holding = [each for each in slots if each.holds_against(priority)]
        assert {each.uid: each for each in overlay.places()} == {each.uid: each for each in holding}
        assert set(overlay.on_node(name)) == {each for each in holding if each.node_name == name}
        made_anew = with_pods(snapshot, [(each.node_name, each.pod_info) for each in holding])
        assert pods_on(overlay.over(snapshot)) == pods_on(made_anew)


def test_where_a_snapshot_cannot_be_kept_up_it_is_made_anew() -> None:
    slots = Slots()
    slots.reserve(place("a", "n1"))
    over = Overlays(slots).against(0).over(Snapshot([node("n1")], []))
    assert [info.pod.uid for info in over.get("n1").pods] == ["a"]


def test_priorities_that_are_not_asked_for_any_more_are_forgotten() -> None:
    slots = Slots()
    for priority in range(MOST_OVERLAYS + 3):
        slots.reserve(place(f"p{priority}", "n1", priority))
    overlays = Overlays(slots)
    for priority in range(MOST_OVERLAYS + 3):
        overlays.against(priority)
    assert len(slots._followers) == len(list(overlays)) == MOST_OVERLAYS
    assert len(list(overlays.against(0).places())) == MOST_OVERLAYS + 3


def test_priorities_that_see_the_same_places_share_one() -> None:
    slots = Slots()
    slots.reserve(place("a", "n1", 10))
    slots.reserve(place("b", "n2", 20))
    slots.reserve(place("c", "n3", 0, firm=True))
    overlays = Overlays(slots)
    assert overlays.against(BELOW_ANY_PRIORITY) is overlays.against(3) is overlays.against(10)
    assert sorted(each.uid for each in overlays.against(11).places()) == ["b", "c"]
    assert overlays.against(21) is overlays.against(99)
    slots.release("b")
    assert overlays.against(11) is overlays.against(21)
    assert [each.uid for each in overlays.against(11).places()] == ["c"]


def test_above_the_priority_of_all_places_it_looks_at_the_firm_ones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `kubectl gang whatif` asks for a gang of a high priority, while thousands have places."""
    slots = Slots()
    for number in range(400):
        slots.reserve(place(f"p{number}", f"n{number}", firm=number == 7))
    looked_at: list[str] = []
    on_node = slots.on_node

    def look(name: str) -> Collection[Slot]:
        looked_at.append(name)
        return on_node(name)

    monkeypatch.setattr(slots, "on_node", look)
    overlay = Overlays(slots).against(5)
    assert [each.uid for each in overlay.places()] == ["p7"]
    assert looked_at == ["n7"]
    slots.reserve(place("urgent", "n8", 9, firm=True))
    assert [each.uid for each in overlay.places()] == ["p7", "urgent"]


def test_it_stays_the_same_object_for_as_long_as_nothing_has_changed() -> None:
    cache, slots = Cache(), Slots()
    cache.add_node(make_node().name("n1").capacity(cpu="8").obj())
    overlays = Overlays(slots)
    assert overlays.against(0).over(cache.snapshot()) is cache.snapshot()
    slots.reserve(place("a", "n1"))
    over = overlays.against(0).over(cache.snapshot())
    assert overlays.against(0).over(cache.snapshot()) is over is not cache.snapshot()


@pytest.mark.parametrize("others", [4, 400])
def test_a_question_clones_the_nodes_that_have_changed_whatever_else_is_promised(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, slots = Cache(), Slots()
    for number in range(500):
        cache.add_node(make_node().name(f"n{number}").capacity(cpu="8").obj())
    for number in range(others):
        slots.reserve(place(f"p{number}", f"n{number}"))
    overlay = Overlays(slots).against(0)
    overlay.over(cache.snapshot())
    cloned = counted_clones(monkeypatch)
    slots.reserve(place("new", "n450"))
    slots.release("p0")
    slots.reserve(place("beside", "n1"))
    over = overlay.over(snapshot := cache.snapshot())
    assert sorted(cloned) == ["n1", "n450"]
    assert over.get("n0") is snapshot.get("n0")
    cache.add_node(make_node().name("came").capacity(cpu="8").obj())  # the order of nodes is another then
    snapshot = cache.snapshot()
    cloned.clear()
    assert len(overlay.over(snapshot).get("n1").pods) == 2
    assert cloned == []
