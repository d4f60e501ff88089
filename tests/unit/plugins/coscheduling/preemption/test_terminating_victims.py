"""Gangs while they are preempted: a member that is told to go counts no more, and no other takes its part."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec
import pytest

from extender.api import corev1
from extender.api.codec import convert
from extender.config.types import TopologyLevel
from extender.framework.cycle_state import CycleState
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import Done, Eviction, PreemptionRules
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind, running_gang, running_gangs
from extender.plugins.coscheduling.preemption.reselection import Selection
from extender.plugins.coscheduling.preemption.rest_of_gangs import RestOfGangs
from extender.plugins.coscheduling.preemption.terminating_victims import SHOWN_SECONDS, TerminatingVictims
from extender.plugins.coscheduling.spec.keys import TOPOLOGY_REQUIRED
from tests.objects import make_pod_group
from tests.unit.plugins.coscheduling.conftest import World, in_rack, node, pod, pod_group

QUORUM = "cannot find enough sibling pods"
RACKS = planner.Topology((TopologyLevel("rack", "rack"),))


class Evictions:
    """Notes which pods are to go; `done` is for the test to call."""

    def __init__(self) -> None:
        self.victims: list[str] = []
        self.done: Done = lambda failure: None

    def allowed(self) -> bool:
        return True

    def allowed_despite_budgets(self) -> bool:
        return True

    def evict(self, eviction: Eviction, done: Done) -> None:
        self.victims = sorted(victim.name for victim in eviction.victims)
        self.done = done


class Preempted:
    """A gang of three that runs on n1 and n2, with a fourth that waits for room."""

    def __init__(self) -> None:
        self.world = World([node("n1", cpu="2"), node("n2", cpu="1"), node("n3", cpu="0")])
        self.manager = self.world.plugin.manager
        self.terminating = TerminatingVictims(self.manager, self.world.plugin.events, self.world)
        self.evictions = Evictions()
        self.rest = RestOfGangs(self.manager, self.evictions, self.terminating, PreemptionRules(), lambda: True)
        self.world.plugin.on_pod_group(None, pod_group("g", 3))
        self.members = [pod("p0", "g", node_name="n1"), pod("p1", "g", node_name="n1"), pod("p2", "g", node_name="n2")]
        for member in self.members:
            self.world.on_nodes[member.uid] = member
        self.late = pod("late", "g")
        self.world.create(*self.members, self.late)

    @property
    def running(self) -> set[str]:
        gang = running_gang(self.manager, self.manager.groups["default/g"])
        return set(gang.running) if gang is not None else set()

    def gone(self, member: corev1.Pod) -> None:
        del self.world.on_nodes[member.uid]
        self.watched(member, None)

    def watched(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """As Preemption passes it on."""
        self.world.plugin.on_pod(old, new)
        self.terminating.on_pod(old, new)
        self.rest.on_pod(old, new)
        self.world.run_tasks()


@pytest.fixture
def gang() -> Preempted:
    return Preempted()


def test_a_member_that_a_restored_etcd_has_back_can_be_a_victim(gang: Preempted) -> None:
    """Taken for gone, it would not have been counted as told to go, and its room would not have been waited for."""
    back = gang.members[0]
    gang.watched(back, None)
    gang.watched(None, back)
    gang.terminating.go([back])
    assert back.uid in gang.manager.terminating
    gang.terminating.stay([back.uid])
    assert gang.running == {member.uid for member in gang.members}


def test_no_pod_takes_the_part_of_a_member_whose_gang_goes_whole(gang: Preempted) -> None:
    gang.terminating.go(gang.members)
    gang.gone(gang.members[0])
    assert QUORUM in gang.world.filter(gang.late)
    assert gang.running == set()


def test_without_being_told_it_would_be_completed(gang: Preempted) -> None:
    gang.gone(gang.members[0])
    assert gang.world.filter(gang.late) == "n1"


def test_a_change_of_a_victim_does_not_bring_it_back(gang: Preempted) -> None:
    gang.terminating.go(gang.members)
    victim = gang.members[1]
    gang.watched(victim, _disrupted(victim))
    assert gang.running == set()
    assert QUORUM in gang.world.filter(gang.late)


def test_a_member_that_is_not_told_after_all_counts_again(gang: Preempted) -> None:
    gang.terminating.go(gang.members)
    gang.terminating.stay([member.uid for member in gang.members])
    assert gang.running == {"p0", "p1", "p2"}
    gang.gone(gang.members[0])
    assert gang.world.filter(gang.late) == "n1"


def test_a_member_that_is_still_there_long_after_counts_again(gang: Preempted) -> None:
    gang.terminating.go(gang.members)
    gang.gone(gang.members[0])
    gang.world.clock.now += SHOWN_SECONDS
    gang.terminating.tick()
    assert gang.running == {"p1", "p2"}


def test_a_member_that_is_shown_to_be_going_does_not(gang: Preempted) -> None:
    gang.terminating.go(gang.members)
    for member in gang.members:
        gang.watched(member, pod(member.name, "g", node_name=member.node_name, deleting=True))
    gang.world.clock.now += SHOWN_SECONDS
    gang.terminating.tick()
    assert gang.running == set()


def test_a_fraction_is_seen_as_one(gang: Preempted) -> None:
    gang.gone(gang.members[0])
    (found,) = running_gangs(gang.manager, gang.manager.groups.values())
    assert (set(found.running), found.complete) == ({"p1", "p2"}, False)


def test_in_the_middle_of_its_commit_a_gang_is_no_fraction() -> None:
    world = World([node("n1", cpu="3")])
    world.plugin.on_pod_group(None, pod_group("g", 3))
    members = [pod(f"p{index}", "g") for index in range(3)]
    world.create(*members)
    for member in members[:2]:
        world.arrive(member)
    world.plugin.permit(CycleState(), members[2], world.filter(members[2]))
    world.plugin.post_bind(CycleState(), members[0], "n1")
    bound = pod("p0", "g", node_name="n1")
    world.plugin.on_pod(members[0], bound)
    (found,) = running_gangs(world.plugin.manager, world.plugin.manager.groups.values())
    assert (set(found.running), found.complete) == ({"p0", "p1", "p2"}, True)


def test_with_once_satisfied_what_is_left_of_a_gang_that_ran_is_no_fraction() -> None:
    world = World([node("n1", cpu="3")])
    group = pod_group("g", 2)
    annotations = {"gang-extender.dev/match-policy": "once-satisfied"}
    group = msgspec.structs.replace(group, metadata=msgspec.structs.replace(group.metadata, annotations=annotations))
    world.plugin.on_pod_group(None, group)
    members = [pod(f"p{index}", "g", node_name="n1") for index in range(2)]
    world.create(*members)
    assert [gang.complete for gang in running_gangs(world.plugin.manager, world.plugin.manager.groups.values())] == [
        True
    ]
    world.plugin.on_pod(members[0], None)
    assert running_gangs(world.plugin.manager, world.plugin.manager.groups.values()) == []


# Where a victim is whose eviction may yet be refused


class InRacks:
    """A gang of one that has to be in one rack: a member that runs in rack 1, which is full, and another that waits."""

    def __init__(self) -> None:
        self.world = World([in_rack("a1", "1"), in_rack("b1", "2")])
        self.world.connect(topology=RACKS)
        self.terminating = TerminatingVictims(self.world.plugin.manager, self.world.plugin.events, self.world)
        self.world.plugin.on_pod_group(
            None, make_pod_group().name("g").min_member(1).annotation(TOPOLOGY_REQUIRED, "rack").obj()
        )
        self.runs, self.waits = pod("runs", "g", cpu="4", node_name="a1"), pod("waits", "g", cpu="4")
        self.world.on_nodes["runs"] = self.runs
        self.world.create(self.runs, self.waits)

    def watched(self, new: corev1.Pod | None) -> None:
        self.world.plugin.on_pod(self.runs, new)
        self.terminating.on_pod(self.runs, new)
        self.world.run_tasks()


def test_no_member_starts_in_another_rack_than_a_victim_that_may_yet_stay() -> None:
    """Fault run of seed 9201: a disruption budget forbade the eviction, and the gang was in two zones to its end."""
    gang = InRacks()
    gang.terminating.go([gang.runs])
    assert gang.world.filter(gang.waits) != "b1"
    gang.terminating.stay([gang.runs.uid])
    gang.world.run_tasks()
    assert gang.world.filter(gang.waits) != "b1"


@pytest.mark.parametrize("shown", ["going", "gone"])
def test_once_it_is_seen_to_go_the_gang_is_planned_anew_wherever_there_is_room(shown: str) -> None:
    gang = InRacks()
    gang.terminating.go([gang.runs])
    assert gang.world.filter(gang.waits) != "b1"
    gang.watched(pod("runs", "g", cpu="4", node_name="a1", deleting=True) if shown == "going" else None)
    assert gang.world.filter(gang.waits) == "b1"
    assert (gang.world.plugin.manager.terminating, gang.world.plugin.manager.nodes_of_victims) == ({}, {})


# Those on other nodes than the one that kube-scheduler takes


def test_the_rest_goes_with_members_that_joined_since_kube_scheduler_was_answered(gang: Preempted) -> None:
    _expect(gang, victims=gang.members[:2], elsewhere=gang.members[2:])
    joined = pod("late", "g", node_name="n2")
    gang.world.on_nodes["late"] = joined
    gang.watched(gang.late, joined)
    gang.watched(gang.members[0], _disrupted(gang.members[0], deleting=True))
    assert gang.evictions.victims == ["late", "p2"]
    assert gang.running == set()


def test_a_victim_of_which_only_the_end_is_seen_does_not_come_back(gang: Preempted) -> None:
    """It makes the rest of its gang go, and has gone itself: fault runs of seeds 24 and 50 found members of gangs that had ended minutes
    before."""
    _expect(gang, victims=gang.members[:2], elsewhere=gang.members[2:])
    first = gang.members[0]
    del gang.world.on_nodes[first.uid]
    gang.watched(first, marked := _disrupted(first))
    gang.watched(marked, None)
    assert gang.evictions.victims == ["p2"]
    gang.world.clock.now += SHOWN_SECONDS
    gang.terminating.tick()
    assert gang.running == {"p1", "p2"}, "they were not told after all"
    assert first.uid not in gang.manager.groups["default/g"].members


def test_a_gang_that_breaks_is_told_once(gang: Preempted) -> None:
    _expect(gang, victims=gang.members[:1], elsewhere=gang.members[1:])
    gang.watched(gang.members[0], _disrupted(gang.members[0], deleting=True))
    for member in gang.members[1:]:
        gang.watched(member, _disrupted(member, deleting=True))
    told = [verdict for verdict in gang.world.verdicts if "GangPreempted" in verdict]
    assert told == ["default/g GangPreempted: preempting to accommodate a higher priority pod"]


def test_a_gang_with_members_to_spare_is_not(gang: Preempted) -> None:
    gang.terminating.go(gang.members[:1])
    assert not any("GangPreempted" in verdict for verdict in gang.world.verdicts)


def _told(gang: Preempted) -> int:
    return sum("GangPreempted" in verdict for verdict in gang.world.verdicts)


@pytest.mark.parametrize(
    ("minimum", "told"),
    [
        pytest.param(1, [0, 0, 1], id="a minMember of 1 goes with the last"),
        pytest.param(2, [0, 1, 1], id="once fewer are left than it needs"),
        pytest.param(3, [1, 1, 1], id="with the first where none is to spare"),
        pytest.param(4, [0, 0, 0], id="one that was no gang any more is not told"),
    ],
)
def test_a_gang_that_kube_scheduler_takes_one_by_one_is_told_once_it_is_none(
    gang: Preempted, minimum: int, told: list[int]
) -> None:
    """No guard of ours was asked: another replica's was, or kube-scheduler needs none for single pods."""
    gang.world.plugin.on_pod_group(pod_group("g", 3), pod_group("g", minimum))
    seen = []
    for member in gang.members:
        gang.watched(member, _disrupted(member))
        gang.watched(_disrupted(member), _disrupted(member))
        seen.append(_told(gang))
    assert seen == told


def test_a_gang_that_is_disrupted_as_a_whole_is_told_with_its_first_victim(
    gang: Preempted, monkeypatch: pytest.MonkeyPatch
) -> None:
    gang.world.plugin.on_pod_group(pod_group("g", 3), pod_group("g", 1))
    spec = gang.manager.groups["default/g"].spec
    assert spec is not None
    with monkeypatch.context() as patched:
        patched.setattr(gang.manager.specs, "valid", lambda group: dataclasses.replace(spec, disrupted_whole=True))
        for member in gang.members[:2]:
            gang.watched(member, _disrupted(member))
            assert _told(gang) == 1


def test_what_is_left_of_a_preemption_that_was_broken_off_is_told_too(gang: Preempted) -> None:
    """The process before us has told nothing: a victim is the first that we see of it."""
    gang.rest.on_pod(None, _disrupted(gang.members[0]))
    gang.gone(gang.members[0])
    assert _told(gang) == 0
    gang.world.clock.now += 30
    gang.rest.tick()
    assert gang.evictions.victims == ["p1", "p2"]
    assert _told(gang) == 1


def test_a_new_leader_leaves_a_gang_alone_that_was_preempted_whole_long_before_it_led(
    gang: Preempted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has seen the victims as another replica evicted them. The gang that its controller has made since has lost a node now."""
    leads: list[bool] = []
    monkeypatch.setattr(gang.rest, "may_plan", lambda: bool(leads))
    gang.watched(gang.late, None)
    for member in gang.members:
        gang.watched(member, _disrupted(member))
    for member in gang.members:
        gang.gone(member)
    gang.world.clock.now += 30.0
    gang.rest.tick()
    anew = [pod(f"q{number}", "g", node_name=member.node_name) for number, member in enumerate(gang.members)]
    gang.world.on_nodes.update({member.uid: member for member in anew})
    gang.world.create(*anew)
    gang.gone(anew[2])
    leads.append(True)
    gang.world.clock.now += 86_400.0
    gang.rest.tick()
    assert gang.running == {"q0", "q1"}
    assert gang.evictions.victims == []


def test_a_new_leader_finishes_what_the_one_before_has_left(gang: Preempted, monkeypatch: pytest.MonkeyPatch) -> None:
    leads: list[bool] = []
    monkeypatch.setattr(gang.rest, "may_plan", lambda: bool(leads))
    gang.watched(gang.late, None)
    gang.watched(gang.members[0], _disrupted(gang.members[0]))
    gang.gone(gang.members[0])
    for _ in range(3):
        gang.world.clock.now += 30.0
        gang.rest.tick()
    assert gang.evictions.victims == []
    leads.append(True)
    gang.rest.tick()
    assert gang.evictions.victims == ["p1", "p2"]


def test_an_eviction_that_fails_leaves_the_rest_as_it_was(gang: Preempted) -> None:
    _expect(gang, victims=gang.members[:1], elsewhere=gang.members[1:])
    gang.watched(gang.members[0], _disrupted(gang.members[0], deleting=True))
    assert gang.running == set()
    gang.evictions.done("forbidden")
    assert gang.running == {"p1", "p2"}


def _expect(gang: Preempted, victims: Sequence[corev1.Pod], elsewhere: Sequence[corev1.Pod]) -> None:
    infos = gang.manager.groups["default/g"].members
    rest = tuple(Evictable(infos[one.uid].info, one.node_name, Kind.BREAKING, "default/g") for one in elsewhere)
    chosen = Selection("n1", tuple(victims), rest, 0, frozenset({"default/g"}), False)
    gang.rest.expect(pod("vip", priority=10), chosen)


def _disrupted(victim: corev1.Pod, *, deleting: bool = False) -> corev1.Pod:
    body = {
        "metadata": {
            "name": victim.name,
            "namespace": "default",
            "uid": victim.uid,
            "labels": victim.labels,
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleting else {}),
        },
        "spec": {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "nodeName": victim.node_name},
        "status": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
    }
    return convert(body, corev1.Pod)
