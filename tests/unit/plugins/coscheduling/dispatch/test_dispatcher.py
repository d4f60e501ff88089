"""Which slot a member takes that kube-scheduler asks about, and where those are sent that it was for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.messages import TURN_NOT_COME
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.scheduling.lost_slots import lose_slot
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberState
from extender.plugins.coscheduling.state.slots import Slot
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group, waves
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

Make = Callable[..., World]
NODES = ("n1", "n2", "n3")
KEY = "default/g"
SOON = 130.0


def one_by_one(function: Callable[..., object], *args: object) -> object:
    """Plans in which each member comes after the one before."""
    found = function(*args)
    if isinstance(found, planner.Placement):
        return replace(found, waves=tuple(frozenset((uid,)) for uid in sorted(found.nodes)))
    return found


def taken(plugin: Coscheduling) -> set[str]:
    gang = plugin.manager.groups[KEY]
    return set(gang.admitted | gang.held.keys())


def free(plugin: Coscheduling, asked: corev1.Pod, offered: frozenset[str]) -> set[str]:
    """The nodes offered on which a slot of its shape is free."""
    cpu = PodInfo(asked).requests.milli_cpu
    return {
        slot.node_name
        for slot in plugin.manager.slots
        if slot.uid not in taken(plugin) and slot.node_name in offered and slot.pod_info.requests.milli_cpu == cpu
    }


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_each_member_that_is_offered_a_free_slot_of_its_shape_gets_in_and_no_two_have_one(data: st.DataObject) -> None:
    """In any order, offered any nodes, with more members than slots or fewer, of two shapes."""
    world = World([node(name, str(data.draw(st.integers(2, 4)))) for name in NODES])
    plugin = world.plugin
    pods = [
        pod(f"p{number}", "g", data.draw(st.sampled_from(["1", "2"]))) for number in range(data.draw(st.integers(1, 6)))
    ]
    plugin.on_pod_group(None, pod_group("g", data.draw(st.integers(1, len(pods)))))
    world.create(*pods)
    for asked in data.draw(st.lists(st.sampled_from(pods), max_size=10)):
        offered = frozenset(data.draw(st.sets(st.sampled_from(NODES), min_size=1)))
        if asked.uid in taken(plugin):
            continue
        waits = set(plugin.manager.slots.uids())
        open_to_it = free(plugin, asked, offered)
        answer = world.filter(asked, sorted(offered))
        if open_to_it and (asked.uid in waits or plugin.manager.groups[KEY].planned):
            assert answer in open_to_it
        for uid in taken(plugin):
            assert plugin.manager.slots.get(uid) is not None
        for name in NODES:
            promised = sum(slot.pod_info.requests.milli_cpu for slot in plugin.manager.slots.on_node(name))
            assert promised <= world.snapshot().get(name).allocatable.milli_cpu


@pytest.fixture
def three(world: Make) -> World:
    """Three plain members, and room for the two that the gang needs: p0 and p1 have slots."""
    made = world([node("n1", "1"), node("n2", "1")])
    made.plugin.on_pod_group(None, pod_group("g", 2))
    made.create(*(pod(f"p{number}", "g") for number in range(3)))
    assert made.filter(pod("p0", "g")) == "n1"
    assert set(made.plugin.manager.slots.uids()) == {"p0", "p1"}
    return made


def test_one_more_member_takes_the_slot_of_one_that_has_not_come(three: World) -> None:
    assert three.filter(pod("p2", "g"), ["n2"]) == "n2"
    assert set(three.plugin.manager.slots.uids()) == {"p0", "p2"}
    assert three.plugin.manager.groups[KEY].planned
    assert three.filter(pod("p1", "g"), []) == "any", (
        "it is one more than the gang needs now, and kube-scheduler finds no node"
    )


def test_but_never_a_slot_that_is_taken(three: World) -> None:
    assert three.filter(pod("p2", "g"), ["n1"]) == "any"
    assert set(three.plugin.manager.slots.uids()) == {"p0", "p1"}


@pytest.mark.parametrize(
    ("others", "takes"),
    [
        pytest.param({}, True, id="alike"),
        pytest.param({"priority": -1}, False, id="of lower priority: the quorum would be worth less"),
        pytest.param({"cpu": "500m"}, False, id="of another shape"),
    ],
)
def test_only_a_member_that_is_as_good_takes_it(three: World, others: dict[str, object], takes: bool) -> None:
    late = pod("late", "g", **others)  # type: ignore[arg-type]
    three.create(late)
    three.filter(late, ["n2"])
    assert ("late" in three.plugin.manager.slots.uids()) is takes


def test_a_member_of_another_role_does_not(world: Make) -> None:
    """The leader's slot was a worker's, and the gang had no slot for a leader."""
    kube = KubeScheduler(world([node("n1", "1"), node("n2", "1")]))
    kube.apply(group(minimum=2, roles="leader=1,worker=1"))
    kube.create(member("leader", role="leader"), member("w0", role="worker"), member("w1", role="worker"))
    kube.world.run_tasks()
    manager = kube.plugin.manager
    manager.queue.move_to_active([KEY])
    kube.attempt("default/w0")
    leader = manager.slots.get("default/leader")
    assert leader is not None
    kube.world.filter(kube.pods["default/w1"], [leader.node_name])
    assert manager.slots.get("default/leader") == leader


def test_a_member_whose_slot_was_taken_is_sent_to_the_one_that_is_free(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    gates = [{"name": "scheduling.x-k8s.io/gang"}]
    gated = [pod(f"p{number}", "g", schedulingGates=gates) for number in range(2)]
    w.create(*gated)
    w.run_tasks()
    assert w.steered == [("p0", "n1"), ("p1", "n2")]
    assert w.filter(pod("p0", "g"), ["n2"]) == "n2"
    assert w.steered[2:] == [("p1", "n1")]
    assert not w.plugin.manager.slots.given_up(), "no room has come free"


def test_a_member_that_lost_its_slot_keeps_its_turn_and_those_after_it_wait(world: Make) -> None:
    w = world([node("n1")])
    w.connect(offload=one_by_one)
    w.plugin.on_pod_group(None, pod_group("g", 3))
    w.create(*(pod(f"p{number}", "g") for number in range(3)))
    assert w.filter(pod("p0", "g")) == "n1"
    manager = w.plugin.manager
    assert waves(manager) == [frozenset({"p0"}), frozenset({"p1"}), frozenset({"p2"})]
    first = manager.slots.get("p0")
    assert first is not None
    with manager.lock:
        assert lose_slot(manager, first)
    assert w.filter(pod("p1", "g")) == TURN_NOT_COME
    assert w.filter(pod("p0", "g")) == "n1"
    assert waves(manager) == [frozenset({"p0"}), frozenset({"p1"}), frozenset({"p2"})]
    assert w.filter(pod("p1", "g")) == "n1"


def test_a_member_that_comes_early_takes_the_slot_and_the_turn_of_another(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    w.connect(offload=one_by_one)
    gates = [{"name": "scheduling.x-k8s.io/gang"}]
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(*(pod(f"p{number}", "g", schedulingGates=gates) for number in range(2)))
    w.run_tasks()
    before = {slot.node_name: slot.wave for slot in w.plugin.manager.slots}
    assert w.filter(pod("p1", "g"), ["n1"]) == "n1"
    assert waves(w.plugin.manager) == [frozenset({"p1"}), frozenset({"p0"})]
    assert {slot.node_name: slot.wave for slot in w.plugin.manager.slots} == before, "waves are of slots"


# Slots for members that do not exist yet


def like(pod: corev1.Pod) -> PodInfo:
    """What stands for a member to come."""
    return PodInfo(structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"to-come/{pod.uid}")))


@pytest.fixture
def to_come(world: Make) -> KubeScheduler:
    """One of two members is there, and has its slot; a slot is kept on n2 for the other, until SOON."""
    kube = KubeScheduler(world([node("n1", "1"), node("n2", "1")]))
    kube.apply(group(minimum=2))
    (first,) = members(1, gated=True)
    kube.create(first)
    manager = kube.plugin.manager
    with manager.lock:
        gang = manager.groups[KEY]
        manager.slots.reserve(Slot(gang.members[first.uid].info, KEY, "n1", SOON))
        manager.places.keep_for_members_to_come(gang, [("n2", like(gang.members[first.uid].pod))], SOON)
        gang.planned = True
    return kube


def gang_of(kube: KubeScheduler) -> Group:
    return kube.plugin.manager.groups[KEY]


def test_a_slot_for_a_member_to_come_counts_for_the_gang_and_against_others(to_come: KubeScheduler) -> None:
    manager = to_come.plugin.manager
    with manager.lock:
        assert manager.places.placed(gang_of(to_come)) == {"default/g0"}
        assert not manager.places.lacks(
            gang_of(to_come), manager.specs.of(gang_of(to_come)), manager.places.placed(gang_of(to_come))
        )
        manager.places.follow(gang_of(to_come))
        assert gang_of(to_come).planned
        assert {
            name: len(pods) for name, pods in to_come.plugin.rounds.requests.overlays.against(0).by_node().items()
        } == {"n1": 1, "n2": 1}
        (slot,) = manager.slots.to_come(KEY)
    assert slot.uid not in gang_of(to_come).members


@pytest.mark.parametrize("gated", [True, False])
def test_a_member_that_comes_later_has_the_slot_that_was_kept_for_it(to_come: KubeScheduler, gated: bool) -> None:
    (slot,) = to_come.plugin.manager.slots.to_come(KEY)
    late = member("late", gated=gated)
    to_come.create(late)
    own = to_come.plugin.manager.slots.get(late.uid)
    assert own is not None
    assert (own.id, own.node_name, own.to_come) == (slot.id, "n2", False)
    assert gang_of(to_come).members[late.uid].state is (MemberState.DISPATCHED if gated else MemberState.QUEUED)
    assert to_come.world.filter(late, ["n2"]) == "n2"
    assert not list(to_come.plugin.manager.slots.to_come(KEY))


@pytest.mark.parametrize(
    "late",
    [pytest.param(member("late", cpu=2), id="another shape"), pytest.param(member("late", "h"), id="another group")],
)
def test_any_other_pod_has_it_not(to_come: KubeScheduler, late: corev1.Pod) -> None:
    to_come.create(late)
    assert [slot.node_name for slot in to_come.plugin.manager.slots.to_come(KEY)] == ["n2"]


def test_the_gang_with_roles_keeps_it_for_the_role(world: Make) -> None:
    kube = KubeScheduler(world([node("n1", "2")]))
    kube.apply(group(minimum=2, roles="leader=1,worker=1"))
    leader = member("leader", role="leader")
    kube.create(leader)
    manager, worker = kube.plugin.manager, like(member("like", role="worker"))
    with manager.lock:
        manager.slots.reserve(Slot(PodInfo(leader), KEY, "n1", SOON))
        assert manager.places.lacks(gang_of(kube), manager.specs.of(gang_of(kube)), {leader.uid}).roles == (
            ("worker", 1),
        )
        manager.places.keep_for_members_to_come(gang_of(kube), [("n1", worker)], SOON)
        assert not manager.places.lacks(gang_of(kube), manager.specs.of(gang_of(kube)), {leader.uid})
    kube.create(member("second", role="leader"))
    assert len(list(manager.slots.to_come(KEY))) == 1, "another role"
    kube.create(member("worker", role="worker"))
    assert manager.slots.get("default/worker") is not None


def test_one_that_no_member_came_for_goes_alone_when_its_time_is_up(to_come: KubeScheduler) -> None:
    manager = to_come.plugin.manager
    own = manager.slots.get("default/g0")
    assert own is not None
    manager.slots.reserve(Slot(own.pod_info, KEY, "n1", SOON + 1))
    to_come.world.clock.now = SOON
    to_come.plugin.expired_slots.tick()
    assert [slot.uid for slot in manager.slots] == ["default/g0"]
    assert not gang_of(to_come).planned
    assert manager.slots.given_up(), "pods that were refused for that room are woken"
