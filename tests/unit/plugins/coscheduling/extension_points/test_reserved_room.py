"""Places that others may not have, what takes them all the same, and which pods are woken when they end."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import pytest

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_READY
from extender.backend.cache.cache import Cache
from extender.framework.columnar import table_of
from extender.framework.cycle_state import CycleState
from extender.framework.pod_info import PodInfo
from extender.framework.status import SUCCESS
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.single import refusals

Make = Callable[..., World]


class Bell:
    def __init__(self) -> None:
        self.rings: list[list[str]] = []

    def __call__(self, pods: Sequence[corev1.Pod]) -> None:
        self.rings.append(sorted(pod.name for pod in pods))


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def planned(world: Make, bell: Bell) -> World:
    """A gang of two, of priority 5, that has places for one each on n1 and n2; n3 is full."""
    w = world([node("n1", "2"), node("n2", "2"), node("n3", "2")])
    w.connect(ring=bell)
    for name in ("n1", "n2"):
        runs(w, pod(f"there-{name}", cpu="1", node_name=name))
    runs(w, pod("there-n3", cpu="2", node_name="n3"))
    w.plugin.on_pod_group(None, pod_group("g", 2))
    members = [pod(f"g{i}", "g", priority=5) for i in range(2)]
    w.create(*members)
    assert {w.filter(member) for member in members} == {"n1", "n2"}
    w.run_tasks()
    return w


def runs(w: World, there: corev1.Pod) -> None:
    w.on_nodes[there.uid] = there
    w.plugin.on_pod(None, there)


def gone(w: World, there: corev1.Pod) -> None:
    w.on_nodes.pop(there.uid, None)
    w.plugin.on_pod(there, None)


def places(w: World) -> dict[str, str]:
    return {place.pod.name: place.node_name for place in w.plugin.manager.slots}


@pytest.mark.parametrize(
    ("priority", "kept"),
    [
        pytest.param(4, True, id="lower"),
        pytest.param(5, True, id="equal"),
        pytest.param(6, False, id="higher"),
    ],
)
def test_promised_room_is_kept_from(priority: int, kept: bool, planned: World) -> None:
    found = refusals(planned, pod("single", priority=priority))
    assert found == ({"n1": messages.ROOM_RESERVED, "n2": messages.ROOM_RESERVED} if kept else {})


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        pytest.param("preemptor", {}, id="itself: none"),
        pytest.param("single", {"n1": messages.ROOM_RESERVED}, id="another pod of its priority"),
    ],
)
def test_the_room_that_a_preemptor_s_victims_gave_is_kept_from(name: str, kept: dict[str, str], planned: World) -> None:
    keep_for_preemptor(planned)
    assert refusals(planned, pod(name, priority=6)) == kept


def keep_for_preemptor(w: World) -> None:
    """As the guard does, of higher priority than the gang."""
    w.plugin.manager.slots.reserve(Slot(PodInfo(pod("preemptor", priority=6)), "", "n1", math.inf))


def test_a_member_that_is_on_the_node_by_now_is_not_counted_twice(planned: World) -> None:
    w = planned
    taken = places(w)["g0"]
    w.nodes[taken] = node(taken, "3")
    w.on_nodes["g0"] = pod("g0", "g", priority=5, node_name=taken)  # assumed; its slot is still kept
    assert taken not in refusals(w, pod("single"))


def test_a_pod_of_higher_priority_takes_a_place_and_that_one_alone_moves(planned: World) -> None:
    w = planned
    gone(w, w.on_nodes["there-n3"])
    w.run_tasks()
    w.steered.clear()
    before = places(w)
    lost = next(name for name, place in before.items() if place == "n1")
    kept = next(name for name in before if name != lost)
    runs(w, pod("urgent", priority=9, node_name="n1"))
    w.run_tasks()
    assert places(w) == {lost: "n3", kept: "n2"}
    assert w.steered == [(lost, "n3")]


def test_a_place_is_lost_when_our_own_binding_takes_it_too(planned: World) -> None:
    w = planned
    gone(w, w.on_nodes["there-n3"])
    w.run_tasks()
    urgent = pod("urgent", priority=9)
    w.on_nodes["urgent"] = pod("urgent", priority=9, node_name="n1")  # assumed
    assert w.plugin.reserve(CycleState(), urgent, "n1").success
    w.run_tasks()
    assert sorted(places(w).values()) == ["n2", "n3"]


def test_a_pod_that_fits_beside_the_places_moves_no_other(planned: World) -> None:
    w = planned
    gone(w, w.on_nodes["there-n1"])
    w.run_tasks()
    before, plans = places(w), w.plans
    runs(w, pod("urgent", priority=9, node_name="n1"))
    w.run_tasks()
    assert places(w) == before
    assert w.plans == plans


def test_a_member_that_comes_to_its_own_place_costs_no_look_at_those_of_others(world: Make) -> None:
    w = world([node("n1", "4")])
    for gang in ("g", "h"):
        w.plugin.on_pod_group(None, pod_group(gang, 2))
        w.create(*(pod(f"{gang}{i}", gang) for i in range(2)))
        assert w.filter(pod(f"{gang}0", gang)) == "n1"
    looked: list[str] = []

    def newest_snapshot() -> object:
        looked.append("the whole snapshot")
        return w.snapshot()

    w.connect(newest_snapshot=newest_snapshot)
    looked.clear()
    assert w.plugin.reserve(CycleState(), pod("g0", "g"), "n1").success
    assert not looked
    assert w.plugin.reserve(CycleState(), pod("single", priority=9), "n1").success
    assert looked


def test_where_no_other_place_is_left_the_gang_gives_up_all_and_says_why(planned: World) -> None:
    w = planned
    runs(w, pod("urgent", priority=9, node_name="n1"))
    w.run_tasks()
    assert not places(w)
    assert "minMember of 2 does not fit: Insufficient cpu" in w.filter(pod("g0", "g", priority=5))


def test_members_that_are_held_are_let_go_together_where_the_rest_has_no_place_any_more(planned: World) -> None:
    w = planned
    first = pod("g0", "g", priority=5)
    w.arrive(first)
    there = places(w)["g0"]
    w.on_nodes["g0"] = pod("g0", "g", priority=5, node_name=there)  # assumed
    other = next(name for name in ("n1", "n2") if name != there)
    runs(w, pod("urgent", priority=9, node_name=other))
    w.run_tasks()
    assert w.waiting["g0"].decision == "rejected: minMember of 2 does not fit: Insufficient cpu"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(node("n1", "2", unschedulable=True), id="cordoned"),
        pytest.param(node("n1", "1"), id="with less to give"),
    ],
)
def test_a_node_that_became_worse_loses_its_places_and_the_others_stay(changed: corev1.Node, planned: World) -> None:
    w = planned
    gone(w, w.on_nodes["there-n3"])
    w.run_tasks()
    before, w.nodes["n1"] = w.nodes["n1"], changed
    w.plugin.on_node(before, changed)
    w.run_tasks()
    assert sorted(places(w).values()) == ["n2", "n3"]


def test_a_gang_of_higher_priority_takes_only_the_places_that_it_needs(world: Make) -> None:
    w = world([node("n1", "2"), node("n2", "2"), node("n3", "1")])
    w.plugin.on_pod_group(None, pod_group("low", 3))
    w.plugin.on_pod_group(None, pod_group("high", 2))
    low = [pod(f"l{i}", "low", priority=1) for i in range(3)]
    w.create(*low)
    w.filter(low[0])
    before = places(w)
    high = [pod(f"h{i}", "high", priority=9) for i in range(2)]
    w.create(*high)
    assert w.filter(high[0]) in w.nodes
    moved = [name for name in before if places(w).get(name) != before[name]]
    assert len(moved) == 2
    w.steered.clear()
    w.run_tasks()
    assert {name for name, _ in w.steered} <= set(moved)


ENDS: list[tuple[str, Callable[[World], None]]] = [
    ("a member is deleted", lambda w: gone(w, pod("g0", "g", priority=5))),
    ("the group is deleted", lambda w: w.plugin.on_pod_group(pod_group("g", 2), None)),
    ("a binding fails", lambda w: w.plugin.rounds.drop_plan("default/g")),
    ("no member comes", lambda w: setattr(w.clock, "now", w.clock.now + 61)),
]


@pytest.mark.parametrize("ends", [pytest.param(end, id=name) for name, end in ENDS])
def test_a_pod_that_was_refused_for_a_place_is_woken_once_it_ends(
    ends: Callable[[World], None], planned: World, bell: Bell
) -> None:
    w = planned
    refused = [pod("s1"), pod("s2")]
    w.create(*refused)
    for single in refused:
        assert refusals(w, single)
    w.plugin.tick()
    assert not bell.rings
    w.nodes.clear()  # so that no further plan is made
    w.on_nodes.clear()
    ends(w)
    for _ in range(3):
        w.run_tasks()
        w.plugin.tick()
    assert bell.rings == [["s1", "s2"]]


def test_no_pod_is_woken_for_a_place_whose_member_came(planned: World, bell: Bell) -> None:
    w = planned
    assert refusals(w, pod("single"))
    for name, place in places(w).items():
        bound = pod(name, "g", priority=5, node_name=place)
        runs(w, bound)
    w.plugin.tick()
    assert not bell.rings


def test_a_pod_that_found_a_place_meanwhile_is_not_woken(planned: World, bell: Bell) -> None:
    w = planned
    single = pod("single")
    assert refusals(w, single)
    w.plugin.on_pod(single, pod("single", node_name="n3"))
    w.plugin.rounds.drop_plan("default/g")
    w.plugin.tick()
    assert not bell.rings


def test_the_bell_is_rung_once_a_second_at_most(planned: World, bell: Bell) -> None:
    w = planned
    for _ in range(2):
        refusals(w, pod("single"))
        w.plugin.manager.places.release(w.plugin.manager.groups["default/g"])
        w.plugin.tick()
        w.create(pod("g0", "g", priority=5))
        w.filter(pod("g0", "g", priority=5))
    assert len(bell.rings) == 1
    w.clock.now += 1
    w.plugin.tick()
    assert len(bell.rings) == 2


@pytest.mark.parametrize("text", [messages.ROOM_RESERVED, messages.NODES_RESERVED])
def test_a_pod_that_was_turned_away_before_a_restart_is_woken_when_we_lead(text: str, world: Make, bell: Bell) -> None:
    """The gang that had kept the room was gone, and with it the record of the pods that it had been kept from."""
    w = world([node("n1")])
    w.leading = False
    w.connect(ring=bell, may_plan=lambda: w.leading)
    condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", f"0/1 nodes are available: 1 {text}.")
    status = corev1.PodStatus(conditions=(condition,))
    w.create(msgspec.structs.replace(pod("parked"), status=status), pod("fresh"))
    for leading, rings in ((False, 0), (True, 0), (True, 1), (True, 1)):
        w.leading = leading
        w.plugin.tick()
        w.run_tasks()
        w.clock.now += 2.0
        assert len(bell.rings) == rings
    assert bell.rings == [["parked"]]


def nominee(name: str, to: str, node_name: str = "") -> corev1.Pod:
    made = pod(name, priority=9, node_name=node_name)
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, nominated_node_name=to))


@pytest.mark.parametrize(
    ("new", "helps"),
    [
        pytest.param(None, True, id="the preemptor is deleted"),
        pytest.param(nominee("vip", ""), True, id="its nomination is cleared"),
        pytest.param(nominee("vip", "n2"), True, id="it is nominated elsewhere"),
        pytest.param(nominee("vip", "", node_name="n1"), False, id="it came"),
        pytest.param(nominee("vip", "n1"), False, id="it waits on"),
    ],
)
def test_room_that_was_kept_for_a_preemptor_comes_free(new: corev1.Pod | None, helps: bool, world: Make) -> None:
    w = world([node("n1")])
    epoch = w.plugin.manager.notes.epoch
    w.plugin.on_pod(nominee("vip", "n1"), new)
    assert (w.plugin.manager.notes.epoch > epoch) is helps


@pytest.mark.parametrize(
    ("sent", "helps"),
    [
        pytest.param("", True, id="kube-scheduler's, of a preemptor"),
        pytest.param("True", False, id="ours: its slot says when its place ends"),
    ],
)
def test_so_does_a_nomination_of_a_gang_s_member(sent: str, helps: bool, world: Make) -> None:
    w = world([node("n1")])
    w.create(member := pod("p0", "g"))
    condition = corev1.PodCondition(type=GANG_READY, status=sent)
    epoch = w.plugin.manager.notes.epoch
    status = corev1.PodStatus(nominated_node_name="n1", conditions=(condition,) if sent else ())
    w.plugin.on_pod(msgspec.structs.replace(member, status=status), member)
    assert (w.plugin.manager.notes.epoch > epoch) is helps


def test_all_nodes_at_once_are_judged_as_one_by_one(planned: World) -> None:
    w = planned
    cache = Cache()
    for each in w.nodes.values():
        cache.add_node(each)
    for there in w.on_nodes.values():
        cache.add_pod(there)
    table = table_of(cache.snapshot())
    assert table is not None
    keep_for_preemptor(w)
    for single in (pod("single", priority=5), pod("single", priority=6), pod("preemptor", priority=6)):
        state = CycleState()
        w.plugin.pre_filter(state, single, table.nodes)
        verdicts = w.plugin.filter_columns(state, single, table)
        assert verdicts is not None
        codes = [0] * len(table) if verdicts.codes is None else verdicts.codes.tolist()
        at_once = [verdicts.statuses[code - 1] if code else SUCCESS for code in codes]
        assert at_once == [w.plugin.filter(state, single, info) for info in table.nodes]
