"""What a filter call of a member is answered with, and what is noted of the member with the answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender import metrics
from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.status import SUCCESS, unresolvable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.plan_call import PlanCall, WaitingTime
from extender.plugins.coscheduling.scheduling.lost_slots import lose_slot
from extender.plugins.coscheduling.state.member import MemberState
from tests.unit.plugins.coscheduling.conftest import World, node, pod, pod_group
from tests.unit.plugins.coscheduling.dispatch.test_dispatcher import one_by_one
from tests.unit.plugins.coscheduling.kube_scheduler import group
from tests.unit.plugins.coscheduling.test_plan_call import Beside, beside

__all__ = ["beside"]
Make = Callable[..., World]


def gang(w: World, size: int, minimum: int = 2) -> list[corev1.Pod]:
    w.plugin.on_pod_group(None, pod_group("g", minimum))
    members = [pod(f"p{number}", "g") for number in range(size)]
    w.create(*members)
    return members


def waits(outcome: str) -> float:
    return float(metrics.filter_plan_waits.labels(outcome)._value.get())


def test_while_a_new_plan_is_made_the_last_verdict_is_told(beside: Beside) -> None:
    w = beside.world
    members = gang(w, 3, 3)
    beside.meanwhile = w.run_tasks
    told = "pod with pgName: default/g last failed in 3s, deny: minMember of 3 does not fit: Insufficient cpu"
    assert beside.filter(members[0]) == told
    beside.meanwhile = lambda: None
    w.plugin.events.on_capacity_freed()
    before = waits("late")
    assert beside.filter(members[0]) == told
    assert waits("late") == before + 1
    assert w.plugin.manager.groups["default/g"].members["p0"].last_rejection == told


def test_a_plan_that_is_late_is_noted_of_the_member_and_may_become_untrue(beside: Beside) -> None:
    members = gang(beside.world, 2)
    before = waits("late")
    assert beside.filter(members[0]) == messages.PLAN_PENDING
    known = beside.world.plugin.manager.groups["default/g"].members["p0"]
    assert (known.last_rejection, known.rejection_facts) == (messages.PLAN_PENDING, messages.PLAN_PENDING)
    assert waits("late") == before + 1


@pytest.mark.parametrize("cpu", ["2", "1"], ids=["and finds room", "and finds none"])
def test_a_plan_that_is_in_time_is_counted_so(cpu: str, world: Make) -> None:
    beside = Beside(world([node("n1", cpu)]))
    beside.world.plugin.rounds.begun.finish()
    members = gang(beside.world, 2)
    beside.meanwhile = beside.world.run_tasks
    before = waits("in_time")
    assert (beside.filter(members[0]) == "n1") is (cpu == "2")
    assert waits("in_time") == before + 1
    assert not beside.world.plugin.manager.groups["default/g"].calls


def test_a_member_that_comes_back_after_an_error_is_waited_for_no_longer(world: Make) -> None:
    w = world([node("n1")])
    w.connect(errors_back_off=True)
    members = gang(w, 2)
    assert w.filter(members[0]) == "n1"
    w.plugin.unreserve(CycleState(), members[0], "n1")
    errors = w.plugin.manager.groups["default/g"].errors
    assert errors.away(w.clock.now) == {"p0"}
    assert w.filter(members[0]) == "n1"
    assert errors.away(w.clock.now) == set()


@pytest.mark.parametrize("policy", ["once-satisfied", "only-waiting"])
def test_a_member_of_a_start_that_comes_late_passes_though_its_place_is_lost_and_its_gang_denied(
    policy: str, world: Make
) -> None:
    w = world([node("n1", "8")])
    w.plugin.on_pod_group(None, group(minimum=2, match_policy=policy))
    members = [pod(f"p{number}", "g") for number in range(3)]
    w.create(*members)
    for each in members:
        assert w.filter(each) == "n1"
    w.bind(members[0], "n1")
    assert w.bind(members[1], "n1") == "starts"
    for each in members[:2]:
        w.plugin.gang_permit.bound(each, "n1")
    w.plugin.manager.slots.release("p2")
    w.plugin.manager.denied["default/g"] = "no room"
    assert w.filter(members[2]) == "any"


def test_a_member_that_is_gone_or_on_a_node_by_then(world: Make) -> None:
    w = world([node("n1")])
    gone, bound = gang(w, 2, 1)
    w.plugin.on_pod(gone, None)
    assert w.filter(gone) == "the pod is not a member of the PodGroup any more"
    w.plugin.on_pod(bound, pod("p1", "g", node_name="n1"))
    assert w.plugin.admission.admit(bound, frozenset({"n1"})) == (None, SUCCESS)


@pytest.mark.faults
def test_the_refusal_while_a_gang_is_set_aside_is_noted_of_its_members_alone(world: Make) -> None:
    w = world([node("n1")])
    first, second = gang(w, 2)
    w.plugin.on_pod(second, None)
    refusal = unresolvable(messages.INTERNAL_ERROR)
    assert w.plugin.admission.set_aside(first, "default/g") == refusal
    known = w.plugin.manager.groups["default/g"].members
    assert (known["p0"].last_rejection, known["p0"].rejection_facts) == (messages.INTERNAL_ERROR,) * 2
    assert w.plugin.admission.set_aside(second, "default/g") == refusal
    assert w.plugin.admission.set_aside(pod("other", "unknown"), "default/unknown") == refusal
    assert set(known) == {"p0"}


@pytest.mark.parametrize(("before", "again"), [(0, True), (1, True), (2, False)], ids=["once", "twice", "thrice"])
def test_a_member_for_which_no_plan_has_found_a_node_that_is_offered_is_planned_thrice(
    before: int, again: bool, beside: Beside
) -> None:
    w = beside.world
    member, _ = gang(w, 2)
    w.clock.now += 5.0
    known = w.plugin.manager.groups["default/g"]
    call = known.calls["p0"] = PlanCall("p0", frozenset({"full"}), WaitingTime(w.clock), attempts=before)
    call.close()
    (place, status), further = w.plugin.admission.decide(member, lambda: frozenset({"full"}), call)
    assert place is None
    if again:
        assert status == unresolvable(messages.PLAN_PENDING)
        assert further is not None
        assert further.attempts == before + 1
        return
    assert (status, further) == (unresolvable(messages.PLACE_NOT_OFFERED), None)
    assert known.last_diagnosis is not None
    assert (known.last_diagnosis.reason, known.last_diagnosis.text, known.last_diagnosis.since) == (
        "RefutedByScheduler",
        messages.PLACE_NOT_OFFERED,
        w.clock.now,
    )
    assert known.members["p0"].last_rejection == messages.PLACE_NOT_OFFERED
    assert not known.calls


def test_the_state_of_a_member_says_whether_it_was_given_a_node(world: Make) -> None:
    w = world([node("n1", "8")])
    planned, _ = gang(w, 2)
    known = w.plugin.manager.groups["default/g"].members
    known["p0"].rejection_facts = "what was told before"
    assert w.filter(planned) == "n1"
    assert known["p0"].state is MemberState.ADMITTED
    assert known["p0"].rejection_facts == "", "nothing is told of it that may become untrue"
    for name in ("p0", "p1"):
        w.plugin.on_pod(pod(name, "g"), pod(name, "g", node_name="n1"))
    w.create(extra := pod("extra", "g"))
    assert w.filter(extra) == "any"
    assert known["extra"].state is MemberState.QUEUED


def test_a_held_member_that_is_asked_about_again_goes_where_it_is_held(world: Make) -> None:
    """kube-scheduler has given up on its bind call, and the caller's end of it has not been heard of yet."""
    w = world([node("n1", "1"), node("n2", "2")])
    held, _ = gang(w, 2)
    w.bind(held, w.filter(held))
    there = w.plugin.manager.groups["default/g"].held["p0"]
    other = next(name for name in ("n1", "n2") if name != there)
    w.plugin.rounds.drop_plan("default/g")
    w.plugin.manager.slots.release("p0")
    assert w.filter(held, [there]) == there
    assert w.filter(held, [other]) != there


def test_a_member_of_a_later_wave_is_refused_until_its_turn_has_come(world: Make) -> None:
    w = world([node("n1")])
    w.connect(offload=one_by_one)
    first, second, _ = gang(w, 3, 3)
    assert w.filter(first) == "n1"
    manager = w.plugin.manager
    lost = manager.slots.get("p0")
    assert lost is not None
    with manager.lock:
        assert lose_slot(manager, lost)
    assert w.filter(second) == "planned members that are to come before it are not in place yet"
    assert manager.groups["default/g"].members["p1"].last_rejection == messages.TURN_NOT_COME
    assert w.filter(first) == "n1"
    assert w.filter(second) == "n1"
