"""Gangs that want others to go, and are gone themselves before they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import Mock, patch

import pytest

from extender.api import corev1
from extender.config.types import TopologyLevel
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dependencies import (
    Done,
    Eviction,
    GangVictims,
    PreemptionDependencies,
    PreemptionRules,
)
from extender.plugins.coscheduling.planner import Cause, NoPlacement, Placement
from extender.plugins.coscheduling.pod_conditions import NO_CANDIDATE
from extender.plugins.coscheduling.preemption.gang_preemption import GangPreemption
from extender.plugins.coscheduling.preemption.planning import VictimPlan
from extender.plugins.coscheduling.preemption.terminating_victims import TerminatingVictims
from extender.plugins.coscheduling.preemption.victim_search import VictimSearch
from extender.plugins.coscheduling.state.group import Group, Preempting
from extender.plugins.coscheduling.state.refutations import How
from tests.unit.plugins.coscheduling import preempting
from tests.unit.plugins.coscheduling.conftest import World, in_rack, node, pod, pod_group
from tests.unit.plugins.coscheduling.kube_scheduler import group, member, members, on_node
from tests.unit.plugins.coscheduling.machines.test_preempting_machine import of_priority


def test_a_gang_that_is_gone_is_not_looked_at_again_and_again() -> None:
    """A task that is asked for at each tick, and does nothing, would keep the background thread from ever waiting."""
    world = World([node("n1")])
    dependencies: Any = Mock(spec_set=PreemptionDependencies, rules=PreemptionRules())
    preemption = GangPreemption(
        world.plugin, dependencies, TerminatingVictims(world.plugin.manager, world.plugin.events, world)
    )
    member = pod("p0", "g")
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(member)
    preemption.refused(world.plugin.manager.groups["default/g"], "default-scheduler")
    world.plugin.on_pod(member, None)
    world.plugin.on_pod_group(pod_group("g", 1), None)
    world.tasks.clear()
    preemption.tick()
    assert "preempt" not in world.tasks


def test_a_plan_that_does_not_hold_is_not_searched_for_again_at_once() -> None:
    """It would come to the same, and the background thread would do nothing else."""
    world = World([node("n1")])
    dependencies: Any = Mock(spec_set=PreemptionDependencies, rules=PreemptionRules())
    preemption = GangPreemption(
        world.plugin, dependencies, TerminatingVictims(world.plugin.manager, world.plugin.events, world)
    )
    member, low = pod("p0", "g", cpu="9", priority=1), pod("low", node_name="n1")
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(member)
    preemption.priorities.follow(None, low)
    nowhere = VictimPlan(Placement({"p0": "n1"}), (), (0, 0, 0, 0, 0))
    with patch.object(VictimSearch, "search", return_value=nowhere) as search:
        preemption.refused(world.plugin.manager.groups["default/g"], "default-scheduler")
        for seconds in (0.0, 0.0, 0.5, 1.0):
            world.clock.now += seconds
            preemption.search_waiting()
            preemption.tick()
        assert search.call_count == 2


@pytest.mark.faults
def test_a_gang_that_cannot_be_sent_when_its_last_victim_has_gone_is_set_aside_and_planned_anew() -> None:
    """It waited on, until its time was up."""
    world = World([node("n1")])
    dependencies: Any = Mock(spec_set=PreemptionDependencies, rules=PreemptionRules())
    preemption = GangPreemption(
        world.plugin, dependencies, TerminatingVictims(world.plugin.manager, world.plugin.events, world)
    )
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(pod("p0", "g"))
    victim = pod("low", node_name="n1")
    group = world.plugin.manager.groups["default/g"]
    room = preemption.room
    room.wait_for([group], Preempting({victim.uid}, ("default/low",), world.clock.now + 60.0))
    with patch.object(room, "_send_if_free", side_effect=KeyError("a fault of ours")):
        room.on_pod(victim, None)
    assert world.plugin.manager.groups["default/g"].preempting is None
    assert list(world.plugin.manager.quarantine) == ["default/g"]


def test_a_pod_that_goes_visits_the_gangs_that_wait_for_victims_alone() -> None:
    """Each pod that goes asks, whatever number of gangs there are."""

    class Counted(dict[str, Group]):
        def values(self) -> Any:
            raise AssertionError("all gangs were looked through")

    world = World([node("n1")])
    dependencies: Any = Mock(spec_set=PreemptionDependencies, rules=PreemptionRules())
    preemption = GangPreemption(
        world.plugin, dependencies, TerminatingVictims(world.plugin.manager, world.plugin.events, world)
    )
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(pod("p0", "g"))
    victims = [pod(name, node_name="n1") for name in ("low", "lower")]
    manager = world.plugin.manager
    group = manager.groups["default/g"]
    preemption.room.wait_for([group], Preempting({victim.uid for victim in victims}, (), world.clock.now + 60.0))
    with patch.object(manager, "groups", Counted(manager.groups)):
        preemption.room.on_pod(pod("other", node_name="n1"), None)
        preemption.room.on_pod(victims[0], None)
        assert group.preempting is not None
        assert group.preempting.waits_for == {"lower"}
        preemption.room.on_pod(victims[1], None)
    assert group.preempting is None


def test_a_node_that_comes_ends_the_rest_after_searches_in_vain() -> None:
    world = World([node("n1")])
    dependencies: Any = Mock(spec_set=PreemptionDependencies, rules=PreemptionRules())
    preemption = GangPreemption(
        world.plugin, dependencies, TerminatingVictims(world.plugin.manager, world.plugin.events, world)
    )
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(pod("p0", "g", cpu="9", priority=1))
    preemption.priorities.follow(None, pod("low", node_name="n1"))
    with (
        patch.object(VictimSearch, "search", return_value="no victims") as search,
        patch.object(VictimSearch, "may_yet", return_value=False),
    ):
        for _ in range(2):  # the second time it rests
            preemption.refused(world.plugin.manager.groups["default/g"], "default-scheduler")
            preemption.search_waiting()
        assert search.call_count == 1
        preemption.node_came()
        preemption.search_waiting()
        assert search.call_count == 2


Story = Callable[[World, GangPreemption], Any]


def refused_elsewhere(world: World, preemption: GangPreemption) -> Any:
    """kube-scheduler has refused the member on the node, which is kept in mind for a while."""
    group = world.plugin.manager.groups["default/g"]
    group.refuted.add("p0", "n1", How.REFUSED, world.clock.now)
    return patch.object(VictimSearch, "search", return_value=messages.NO_VICTIMS_HELP)


def asleep(world: World, preemption: GangPreemption) -> Any:
    """kube-scheduler has found it no node at all."""
    world.plugin.manager.groups["default/g"].refuted.sleeps("p0", 0)
    return patch.object(VictimSearch, "search", return_value=messages.NO_VICTIMS_HELP)


def out_of_time(world: World, preemption: GangPreemption) -> Any:
    verdict = NoPlacement("planning took longer than its time budget", 0, 1, Cause.BUDGET)
    return patch.object(VictimSearch, "_searched", return_value=verdict)


def for_good(world: World, preemption: GangPreemption) -> Any:
    return patch.object(VictimSearch, "_searched", return_value=NoPlacement("Insufficient cpu", 0, 1))


@pytest.mark.parametrize(
    ("story", "again"),
    [
        pytest.param(refused_elsewhere, True, id="while it is kept from a node"),
        pytest.param(asleep, False, id="not while it may have none: kube-scheduler's next preempt call has it made"),
        pytest.param(out_of_time, True, id="after a search that took too long"),
        pytest.param(for_good, False, id="not where no eviction helps: an event has it planned anew"),
    ],
)
def test_a_search_in_vain_is_made_again_where_time_alone_may_help(story: Story, again: bool) -> None:
    world = World([node("n1")])
    dependencies: Any = Mock(spec_set=PreemptionDependencies, rules=PreemptionRules(), assumed=dict, pdbs=list)
    preemption = GangPreemption(
        world.plugin, dependencies, TerminatingVictims(world.plugin.manager, world.plugin.events, world)
    )
    world.plugin.on_pod_group(None, pod_group("g", 1))
    world.create(pod("p0", "g", cpu="9", priority=1))
    preemption.priorities.follow(None, pod("low", node_name="n1"))
    with story(world, preemption) as search:
        preemption.refused(world.plugin.manager.groups["default/g"], "default-scheduler")
        preemption.search_waiting()
        world.clock.now += 60.0
        preemption.search_waiting()
        assert search.call_count == (2 if again else 1)


def test_where_any_member_may_go_a_gang_preempts_a_part_of_another() -> None:
    kube = preempting.Preempting(
        World([node(f"n{number}", "1") for number in range(3)]), PreemptionRules(gang_victims=GangVictims.ANY)
    )
    kube.apply(group("low", 3), group("vip", 2))
    kube.create(*(on_node(member(f"low{number}", "low"), f"n{number}") for number in range(3)))
    kube.create(*(of_priority(member(f"vip{number}", "vip", gated=True), 10) for number in range(2)))
    kube.passes(10)
    assert kube.running("vip") == {"vip0", "vip1"}
    assert len(kube.running("low")) == 1


@pytest.mark.parametrize("gated", [pytest.param(True, id="gated"), pytest.param(False, id="plain")])
@pytest.mark.parametrize(
    ("new", "running"),
    [
        pytest.param([node("n3", "1")], {"vip0", "vip1"}, id="it starts on another node"),
        pytest.param([], set(), id="there is no other node: no member is held for nothing"),
    ],
)
def test_a_gang_that_loses_a_node_while_its_victims_go_is_planned_anew_first(
    new: list[corev1.Node], running: set[str], gated: bool
) -> None:
    lost = node("n2", "1")
    kube = preempting.Preempting(World([node("n1", "1"), lost]))
    lows = [on_node(member(f"low{number}", ""), f"n{number + 1}") for number in range(2)]
    kube.create(*lows)
    kube.apply(group("vip", 2))
    kube.create(*(of_priority(member(f"vip{number}", "vip", gated=gated), 10) for number in range(2)))
    kube.run()
    assert {pod.name for pod in kube.ending()} == {"low0", "low1"}
    for each in new:
        kube.world.nodes[each.name] = each
        kube.plugin.on_node(None, each)
    kube.delete(lows[1])
    del kube.world.nodes[lost.name]
    kube.plugin.on_node(lost, None)
    kube.passes(10)
    assert (kube.running(), kube.held()) == (running, set())


def test_a_gang_does_not_wait_for_a_pod_on_its_nodes_that_goes_without_making_room_for_it() -> None:
    """It has half an hour to end, beside which the first member fits. The second needs the room of a victim."""
    kube = preempting.Preempting(World([node("n1", "3"), node("n2", "2")]))
    slow, low = on_node(member("slow", ""), "n1"), on_node(member("low", "", cpu=2), "n2")
    kube.create(slow, low)
    kube.ends_in(slow, 1800.0)
    kube.apply(group("vip", 2))
    kube.create(*(of_priority(member(f"vip{number}", "vip", cpu=2, gated=True), 10) for number in range(2)))
    kube.run()
    kube.delete(kube.pods[low.uid])
    kube.run()
    assert kube.running() == {"slow", "vip0", "vip1"}


def full_cluster(nodes: int, gated: bool = False) -> preempting.Preempting:
    """On each node runs a pod of lower priority, a gang of its own, than that of the two members that have come."""
    kube = preempting.Preempting(World([node(f"n{number}", "1") for number in range(nodes)]))
    kube.apply(*(group(f"low{number}", 1) for number in range(nodes)), group("vip", 2))
    kube.create(*(on_node(member(f"low{number}", f"low{number}"), f"n{number}") for number in range(nodes)))
    kube.create(*(of_priority(member(f"vip{number}", "vip", gated=gated), 10) for number in range(2)))
    return kube


def cordon(kube: preempting.Preempting, name: str) -> None:
    old, kube.world.nodes[name] = kube.world.nodes[name], node(name, "1", unschedulable=True)
    kube.plugin.on_node(old, kube.world.nodes[name])


@pytest.mark.parametrize("gone", [pytest.param(0, id="before any has gone"), pytest.param(1, id="while one is left")])
def test_a_gang_preempts_anew_where_a_node_of_its_plan_is_cordoned_while_its_victims_go(gone: int) -> None:
    """It was sent there, and waited for a minute until its plan expired."""
    kube = full_cluster(4)
    kube.run()
    victims = kube.ending()
    kube.delete(*victims[:gone])
    cordon(kube, victims[1].node_name)
    kube.delete(*victims[gone:])
    kube.passes(3)
    assert kube.running("vip") == {"vip0", "vip1"}
    assert len(kube.running("low")) == 1, "of four, two on the nodes that it has, one on the node that was closed"


def test_a_gang_preempts_anew_where_kube_scheduler_has_no_node_for_its_members_but_candidates_for_preemption() -> None:
    """Of a member that its own filters refuse everywhere it asks no extender to filter nodes: on a full cluster never again."""
    kube = full_cluster(4, gated=True)
    kube.run()
    kube.delete(*kube.ending())
    kube.world.run_tasks()
    kube.wake()  # both have places on n0 and n1, and are let in
    cordoned = node("n1", "1", unschedulable=True)
    old, kube.world.nodes["n1"] = kube.world.nodes["n1"], cordoned
    kube.create(on_node(member("other", ""), "n0"))
    kube.attempt("default/vip0")
    kube.attempt("default/vip1")
    kube.plugin.on_node(old, cordoned)
    kube.passes(5)
    assert kube.running() == {"other", "vip0", "vip1"}


HUNDRED = [f"m{number}" for number in range(100)]


@pytest.mark.parametrize(
    ("asked", "evicted"),
    [
        pytest.param({}, set(), id="not for one about which it has not asked"),
        pytest.param({"vip0": ["n2"]}, set(), id="nor for a gang of which it has asked about one alone"),
        pytest.param({"vip0": ["n2"], "vip1": ["n3"]}, {"low2", "low3"}, id="on its candidates"),
        pytest.param({"vip0": ["n2"], "vip1": ["n2"]}, set(), id="not beyond them"),
        pytest.param({"vip0": ["n2"], "vip1": HUNDRED}, {"low1", "low2"}, id="beyond a hundred, which may not be all"),
    ],
)
def test_for_members_that_kube_scheduler_has_no_node_for_pods_are_evicted_where_it_names_candidates(
    asked: dict[str, list[str]], evicted: set[str]
) -> None:
    """What keeps them from other nodes may be a device, or a filter that the extender does not know."""
    kube = full_cluster(4)
    kube.active.clear()
    vip = kube.world.plugin.manager.groups["default/vip"]
    for uid in vip.members:
        vip.refuted.sleeps(uid, 0)
    kube.world.run_tasks()
    for name, candidates in asked.items():
        offered = [Candidate(each, Victims((kube.pods["default/low0"],))) for each in candidates]
        assert not kube.preemption.guard.review(kube.pods[f"default/{name}"], offered)
    for _ in range(3):
        kube.world.clock.now += 60.0
        kube.plugin.tick()
        kube.world.run_tasks()
        kube.wake()
    assert {pod.name for pod in kube.ending()} == evicted
    if evicted:
        kept = vip.refuted.confined(kube.world.clock.now, 0, evicting=True)
        assert not any(kept.values()), "what a call says is good for one preemption"


def put_to_sleep(kube: preempting.Preempting) -> None:
    """kube-scheduler has found no node for either of the two."""
    kube.active.clear()
    vip = kube.world.plugin.manager.groups["default/vip"]
    for uid in vip.members:
        vip.refuted.sleeps(uid, 0)
    kube.world.run_tasks()


def preempt_calls(kube: preempting.Preempting, **candidates: str) -> None:
    """Of each member: that node."""
    for name, node_name in candidates.items():
        offered = [Candidate(node_name, Victims((kube.pods["default/low0"],)))]
        assert not kube.preemption.guard.review(kube.pods[f"default/{name}"], offered)


def minutes_pass(kube: preempting.Preempting, minutes: int) -> None:
    for _ in range(minutes):
        kube.world.clock.now += 60.0
        kube.plugin.tick()
        kube.world.run_tasks()
        kube.wake()


def test_no_pod_is_evicted_for_a_gang_that_may_not_be_planned() -> None:
    """By now it names a group that is not there."""
    kube = full_cluster(4)
    put_to_sleep(kube)
    kube.apply(group("vip", 2, groups="other"))
    preempt_calls(kube, vip0="n2", vip1="n3")
    minutes_pass(kube, 3)
    assert kube.ending() == []


def test_evictions_that_fail_do_not_spend_what_preempt_calls_said() -> None:
    """kube-scheduler asks again minutes later."""
    kube = full_cluster(4)
    put_to_sleep(kube)
    evict, fails = kube.evictions.evict, [True]

    def evict_once_in_vain(eviction: Eviction, done: Done) -> None:
        if fails:
            fails.pop()
            kube.world.tasks["told"] = lambda: done("the API server does not answer")
        else:
            evict(eviction, done)

    with patch.object(kube.evictions, "evict", evict_once_in_vain):
        preempt_calls(kube, vip0="n2", vip1="n3")
        minutes_pass(kube, 5)
    assert not fails
    assert {pod.name for pod in kube.ending()} == {"low2", "low3"}


def held_beside_a_preemptor() -> preempting.Preempting:
    """One of two members is held on n1 of two nodes, each of which has room for one. A gang of two comes that counts for more."""
    kube = preempting.Preempting(World([node("n1", "2"), node("n2", "2")]))
    kube.apply(group("held", 2), group("vip", 2))
    first, last = member("held0", "held", cpu=2), member("held1", "held", cpu=2)
    kube.create(first, last)
    kube.attempt(first.uid)
    kube.active.pop(last.uid)
    kube.create(*(of_priority(each, 10) for each in members(2, "vip", cpu=2, gated=True)))
    for _ in range(2):
        kube.world.run_tasks()
    return kube


def test_places_are_kept_while_held_members_let_go() -> None:
    """Their bind calls end a moment later; they are on their nodes until then."""
    kube = held_beside_a_preemptor()
    assert kube.world.waiting["default/held0"].decision.startswith("rejected")
    slots = kube.plugin.manager.slots.of_group("default/vip")
    assert {slot.uid for slot in slots} == {"default/vip0", "default/vip1"}


def test_no_pod_of_less_priority_comes_in_while_held_members_let_go() -> None:
    kube = held_beside_a_preemptor()
    kube.world.run_tasks()
    lone = of_priority(member("lone", "", cpu=2), 5)
    kube.create(lone)
    kube.attempt(lone.uid)
    assert kube.running() == set()


# A scheduling cycle that began before the room was free


def waits_in_racks(elsewhere: str) -> tuple[preempting.Preempting, Sequence[NodeInfo]]:
    """Both victims of a gang that has to be in one rack are going, and its members have been refused; and the nodes before they went.

    elsewhere: CPU of a third node.
    """
    world = World([in_rack("a1", "1", "1"), in_rack("a2", "1", "1"), in_rack("b1", "2", elsewhere)])
    world.connect(topology=planner.Topology((TopologyLevel("rack", "rack"),)))
    kube = preempting.Preempting(world)
    kube.create(*(on_node(member(f"low{number}", ""), f"a{number}") for number in (1, 2)))
    kube.apply(group("vip", 2, topology_required="rack"))
    kube.create(*(of_priority(member(f"vip{number}", "vip"), 10) for number in range(2)))
    before = world.snapshot().list()
    kube.run()
    assert {pod.name for pod in kube.ending()} == {"low1", "low2"}
    return kube, before


def test_a_node_that_is_offered_from_before_the_victims_had_gone_costs_a_gang_no_place() -> None:
    """Its room would go to the first that asks, and the victims would have gone for nothing."""
    kube, _ = waits_in_racks("1")
    kube.active["default/vip1"] = None
    kube.begin("default/vip1")
    kube.delete(*kube.ending())
    kube.wake()
    assert kube.pods["default/vip1"].status.nominated_node_name
    kube.end_attempt()
    assert kube.told["vip1"].startswith(messages.PLACE_NOT_OFFERED)
    kube.create(other := of_priority(member("other", ""), 10))
    kube.attempt(other.uid)
    kube.run()
    assert kube.running() == {"vip0", "vip1", "other"}
    assert kube.plugin.manager.groups["default/vip"].refuted.times == 0


def test_no_node_that_passed_before_the_last_victim_had_gone_costs_a_gang_no_place() -> None:
    """kube-scheduler has assumed the first member by then, and not seen the end of the victim."""
    kube, _ = waits_in_racks("0")
    going = kube.ending()
    kube.delete(going[0])
    kube.run()
    before = kube.world.snapshot().infos
    copies = {uid: kube.pods[uid] for uid in ("default/vip0", "default/vip1")}
    kube.delete(going[1])
    kube.wake()
    places = {kube.pods[uid].status.nominated_node_name: uid for uid in copies}
    freed = next(name for name in places if not before[name].pods)
    kube.attempt(places.pop(freed))
    ((full, last),) = places.items()
    kube.begun = copies[last], [before[full] if info.name == full else info for info in kube.world.snapshot().list()]
    kube.end_attempt()
    assert NO_CANDIDATE in kube.told[copies[last].name]
    kube.create(other := of_priority(member("other", ""), 10))
    kube.world.run_tasks()
    kube.attempt(other.uid)
    kube.run()
    assert kube.running() == {"vip0", "vip1"}
    assert kube.plugin.manager.groups["default/vip"].refuted.times == 0


@pytest.mark.parametrize("elsewhere", ["0", "1"])
def test_a_refusal_with_the_nomination_to_the_place_has_the_member_planned_anew(elsewhere: str) -> None:
    """kube-scheduler knows something that we do not."""
    kube, before = waits_in_racks(elsewhere)
    for each in kube.ending():
        kube.run()
        kube.delete(each)
    kube.wake()
    vip = kube.pods["default/vip1"]
    place = vip.status.nominated_node_name
    kube.begun = vip, before
    kube.end_attempt()
    assert kube.plugin.manager.groups["default/vip"].refuted.left_out(kube.world.clock.now) == {(vip.uid, place)}
