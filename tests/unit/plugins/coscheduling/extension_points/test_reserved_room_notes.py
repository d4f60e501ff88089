"""Which pods are noted to be woken, and which changes of pods and nodes have places looked at again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.framework.columnar import ALL_PASS, table_of
from extender.framework.cycle_state import CycleState
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.extension_points import reserved_room
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import Snapshot, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.extension_points.test_reserved_room import Bell, nominee, places
from tests.unit.plugins.coscheduling.short_of_room import Story
from tests.unit.plugins.coscheduling.single import refusals

Make = Callable[..., World]


class Looked:
    """How often the whole snapshot was looked at."""

    def __init__(self, w: World) -> None:
        self.times = 0
        self._world = w
        w.connect(newest_snapshot=self)

    def __call__(self) -> Snapshot:
        self.times += 1
        return self._world.snapshot()


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def w(world: Make, bell: Bell) -> World:
    """A gang of two, of priority 5, that has places for one each on n1 and n2; n3 is free for nothing."""
    made = world([node("n1", "1"), node("n2", "1"), node("n3", "0")])
    made.connect(ring=bell)
    planned(made)
    return made


def planned(made: World) -> None:
    made.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"g{i}", "g", priority=5) for i in range(2)]
    made.create(*members)
    assert {made.filter(member) for member in members} == {"n1", "n2"}
    made.run_tasks()


def its_end(made: World) -> None:
    """The places go, and what was refused for them is woken; no further plan is made."""
    made.nodes.clear()
    made.plugin.rounds.drop_plan("default/g")
    made.plugin.tick()


# Which pods are woken


def test_of_many_pods_that_are_refused_no_more_are_noted_than_may_be(
    w: World, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reserved_room, "MAX_NOTED", 2)
    for name in ("a", "b", "c"):
        assert refusals(w, pod(name))
    its_end(w)
    assert bell.rings == [["a", "b"]]


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(None, id="it is gone"),
        pytest.param(pod("single", deleting=True), id="it is on its way out"),
        pytest.param(pod("single", node_name="n3", cpu="0"), id="it is on a node"),
    ],
)
def test_a_pod_that_waits_no_more_is_not_woken(new: corev1.Pod | None, w: World, bell: Bell) -> None:
    single = pod("single")
    assert refusals(w, single)
    assert refusals(w, pod("other"))
    w.plugin.on_pod(single, new)
    its_end(w)
    assert bell.rings == [["other"]]


def test_a_pod_that_still_waits_is_woken_after_other_changes_of_it(w: World, bell: Bell) -> None:
    single = pod("single")
    assert refusals(w, single)
    w.plugin.on_pod(single, pod("single", labels={"seen": "yes"}))
    its_end(w)
    assert bell.rings == [["single"]]


def turned_away(name: str, node_name: str = "") -> corev1.Pod:
    text = f"0/1 nodes are available: 1 {messages.ROOM_RESERVED}."
    condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", text)
    return structs.replace(pod(name, node_name=node_name, cpu="0"), status=corev1.PodStatus(conditions=(condition,)))


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        pytest.param(None, turned_away("parked"), True, id="it waits when it is seen first"),
        pytest.param(None, turned_away("parked", "n1"), False, id="it is on a node by then"),
        pytest.param(pod("parked"), turned_away("parked"), False, id="it was refused since: that is noted already"),
        pytest.param(None, pod("parked"), False, id="it was refused for nothing that was kept"),
    ],
)
def test_a_pod_that_was_refused_before_we_lead(
    old: corev1.Pod | None, new: corev1.Pod, woken: bool, world: Make, bell: Bell
) -> None:
    made = world([node("n1")])
    made.connect(ring=bell)
    if new.node_name:
        made.on_nodes[new.uid] = new
    made.plugin.on_pod(old, new)
    for _ in range(3):
        made.plugin.tick()
        made.clock.now += 2.0
    assert bell.rings == ([["parked"]] if woken else [])


def test_while_we_do_not_lead_no_pod_is_woken_and_none_forgotten(world: Make, bell: Bell) -> None:
    made = world([node("n1", "1"), node("n2", "1")])
    made.connect(ring=bell, may_plan=lambda: made.leading)
    planned(made)
    assert refusals(made, pod("single"))
    made.leading = False
    its_end(made)
    assert bell.rings == []
    made.leading = True
    made.plugin.tick()
    assert bell.rings == [["single"]]


def test_what_has_ended_is_noted_while_the_bell_may_not_ring_yet(w: World, bell: Bell) -> None:
    for name, rings in (("a", 1), ("b", 1)):
        assert refusals(w, pod(name))
        w.plugin.manager.places.release(w.plugin.manager.groups["default/g"])
        w.plugin.tick()
        assert len(bell.rings) == rings
        w.create(member := pod("g0", "g", priority=5))
        w.filter(member)
    w.clock.now += 0.9
    w.plugin.tick()
    assert bell.rings == [["a"]]
    w.clock.now += 0.1
    w.plugin.tick()
    assert bell.rings == [["a"], ["b"]]
    assert refusals(w, pod("c"))
    w.clock.now += 1.0
    w.plugin.tick()
    assert bell.rings == [["a"], ["b"]], "each end wakes once; what the last one is refused for is there still"


# What a pod's arrival means for the places


@pytest.mark.parametrize(
    ("old", "new", "looks"),
    [
        pytest.param(None, pod("new", node_name="n1"), True, id="it is seen on the node first"),
        pytest.param(pod("new"), pod("new", node_name="n1"), True, id="it was bound there"),
        pytest.param(pod("new", node_name="n1"), pod("new", node_name="n1"), False, id="it was there before"),
        pytest.param(None, pod("new", node_name="n3"), False, id="nothing is promised on that node"),
        pytest.param(None, pod("new"), False, id="it is on no node"),
        pytest.param(None, pod("g2", "g", node_name="n1"), False, id="it is of the gang itself"),
        pytest.param(None, pod("h0", "h", node_name="n1"), True, id="it is of another gang"),
    ],
)
def test_places_on_a_node_are_looked_at_when_a_pod_comes_there(
    old: corev1.Pod | None, new: corev1.Pod, looks: bool, w: World
) -> None:
    looked = Looked(w)
    w.plugin.room.on_pod(old, new)
    assert bool(looked.times) is looks


def test_a_member_that_comes_to_the_place_of_another_gang_takes_its_room(world: Make) -> None:
    made = world([node("n1", "1"), node("n2", "1"), node("n3", "1")])
    planned(made)
    taken = places(made)["g0"]
    other = pod("h0", "h", node_name=taken)
    made.plugin.on_pod_group(None, pod_group("h", 1))
    made.on_nodes[other.uid] = other
    made.plugin.on_pod(None, other)
    assert "default/g" in made.plugin.manager.queue.active
    made.run_tasks()
    assert taken not in places(made).values()


@pytest.mark.parametrize(
    ("changed", "looks"),
    [
        pytest.param(node("n1", "1", unschedulable=True), True, id="cordoned"),
        pytest.param(node("n1", "0"), True, id="with less to give"),
        pytest.param(node("n1", "1"), False, id="as it was"),
        pytest.param(node("n3", "1"), False, id="without places"),
        pytest.param(None, False, id="gone"),
    ],
)
def test_places_on_a_node_are_looked_at_when_it_changes(changed: corev1.Node | None, looks: bool, w: World) -> None:
    looked = Looked(w)
    before = w.nodes["n3" if changed is not None and changed.name == "n3" else "n1"]
    w.plugin.room.on_node(before, changed)
    w.plugin.room.on_node(None, changed)
    assert bool(looked.times) is looks


@pytest.mark.parametrize(
    ("old", "new", "helps"),
    [
        pytest.param(nominee("vip", "n1"), nominee("vip", ""), True, id="its nomination is cleared"),
        pytest.param(nominee("vip", "n1"), nominee("vip", "n1"), False, id="it waits on"),
        pytest.param(nominee("vip", "n1"), nominee("vip", "", "n1"), False, id="it came"),
        pytest.param(nominee("vip", "n1"), nominee("vip", "", "n2"), True, id="it came to another node"),
        pytest.param(nominee("vip", "n1", "n1"), None, False, id="it ran there, and what it had is another matter"),
        pytest.param(nominee("vip", ""), None, False, id="it had none"),
    ],
)
def test_gangs_are_planned_when_a_preemptor_gives_up_its_node(
    old: corev1.Pod, new: corev1.Pod | None, helps: bool, world: Make
) -> None:
    made = world([node("n1"), node("n2")])
    epoch = made.plugin.manager.notes.epoch
    made.plugin.room.on_pod(old, new)
    assert (made.plugin.manager.notes.epoch > epoch, "plan" in made.tasks) == (helps, helps)


# What is kept


def test_room_for_members_to_come_is_not_kept_from_their_own_gang(world: Make) -> None:
    made = world([node("n1", "1")])
    made.plugin.on_pod_group(None, pod_group("g", 1))
    gang = made.plugin.manager.groups["default/g"]
    like = PodInfo(pod("like", "g", uid="to-come"))
    made.plugin.manager.places.keep_for_members_to_come(gang, [("n1", like)], 1e9)
    assert refusals(made, pod("single")) == {"n1": messages.ROOM_RESERVED}
    kept = made.plugin.room.kept_from(pod("extra", "g"), made.snapshot())
    assert kept is None or made.plugin.room.judge(kept, pod("extra", "g"), made.snapshot().get("n1")).success


def test_nothing_is_kept_where_nothing_is_promised(world: Make) -> None:
    made = world([node("n1")])
    assert made.plugin.room.kept_from(pod("single"), made.snapshot()) is None


def table(made: World) -> Any:
    cache = Cache()
    for each in made.nodes.values():
        cache.add_node(each)
    for there in made.on_nodes.values():
        cache.add_pod(there)
    return table_of(cache.snapshot())


def test_nodes_that_are_kept_free_refuse_a_pod_all_at_once(world: Make) -> None:
    story = Story(world)
    story.gang("g", priority=5)
    story.after(300)
    made, single = story.w, pod("s", priority=5)
    columns, state = table(made), CycleState()
    made.plugin.pre_filter(state, single, columns.nodes)
    found = made.plugin.filter_columns(state, single, columns)
    assert found is not None
    assert found.codes is not None
    told = {
        name: found.statuses[code - 1].message
        for name, code in zip(columns.names, found.codes.tolist(), strict=True)
        if code
    }
    assert told == {"n0": messages.NODES_RESERVED, "n1": messages.NODES_RESERVED}


def test_a_pod_that_finds_room_beside_all_places_is_not_noted(w: World, bell: Bell) -> None:
    w.nodes["n1"], w.nodes["n2"] = node("n1", "2"), node("n2", "2")
    columns, state, single = table(w), CycleState(), pod("single")
    w.plugin.pre_filter(state, single, columns.nodes)
    assert w.plugin.filter_columns(state, single, columns) is ALL_PASS
    for info in w.snapshot().list()[:2]:
        assert w.plugin.filter(state, single, info).success
    its_end(w)
    assert bell.rings == []


@pytest.mark.parametrize("at_once", [True, False], ids=["all nodes at once", "node by node"])
def test_a_pod_that_was_refused_for_nodes_that_are_kept_free_is_woken_once_they_are_not(
    at_once: bool, world: Make
) -> None:
    story = Story(world)
    story.gang("g", priority=5)
    story.after(300)
    made, single, state = story.w, pod("s", priority=5), CycleState()
    columns = table(made)
    made.plugin.pre_filter(state, single, columns.nodes)
    if at_once:
        assert made.plugin.filter_columns(state, single, columns) is not ALL_PASS
    else:
        assert made.plugin.filter(state, single, columns.nodes[0]).message == messages.NODES_RESERVED
    story.rings.clear()
    story.after(600)
    story.after(1)
    assert story.rings == [["s"]]


def test_from_a_preemptor_the_room_of_others_on_its_node_is_kept(world: Make) -> None:
    made = world([node("n1", "2")])
    slots = made.plugin.manager.slots
    for name in ("preemptor", "other"):
        slots.reserve(Slot(PodInfo(pod(name, priority=6)), "", "n1", math.inf))
    assert refusals(made, pod("preemptor", priority=6)) == {}, "there is room beside it"
    assert refusals(made, pod("preemptor", priority=6, cpu="2")) == {"n1": messages.ROOM_RESERVED}
    assert refusals(made, pod("third", priority=6)) == {"n1": messages.ROOM_RESERVED}
