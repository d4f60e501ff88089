"""Filter calls that need a plan, where a thread plans beside the verbs: they wait for a moment, and members are woken later."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from extender.api import corev1
from extender.framework.cycle_state import AWAITED, CycleState
from extender.plugins.coscheduling import messages, plan_call
from extender.plugins.coscheduling.plan_call import (
    BESIDE_OTHERS_SECONDS,
    LONGEST_SECONDS,
    SAVED_SECONDS,
    WaitingTime,
)
from extender.scheduler.scheduling_cycle import FILTER_SECONDS, LAST_LOOK_SECONDS
from tests.unit.plugins.coscheduling.conftest import FakeClock, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.starting import bound_by

Make = Callable[..., World]
PENDING = messages.PLAN_PENDING
MOMENT = FILTER_SECONDS - LAST_LOOK_SECONDS


class Beside:
    """The planner's thread runs when a story says so; until then a call that waits sees its time pass."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.waited: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None
        world.connect(plan_beside=lambda turn: world.submit("plan", turn), wait=self._wait)

    def _wait(self, event: threading.Event, seconds: float) -> bool:
        self.meanwhile()
        if not event.is_set():
            self.waited.append(seconds)
            self.world.clock.now += seconds
        return event.is_set()

    def filter(self, asked: corev1.Pod, offered: Sequence[str] | None = None) -> str:
        """As the scheduling cycle does it: the node, `any`, or the refusal."""
        state, left = CycleState(), MOMENT
        while True:
            names = self.world.nodes if offered is None else offered
            nodes = [self.world.snapshot().get(name) for name in names]
            result, status = self.world.plugin.pre_filter(state, asked, nodes)
            awaited = state.awaited
            if awaited is None:
                place = next(iter(result.node_names or ()), "any") if result is not None else "any"
                return place if status.success or status.skip else status.message
            unshown = messages.NOT_SHOWN in status.message
            assert status.code.name == ("ERROR" if unshown else "UNSCHEDULABLE_AND_UNRESOLVABLE")
            before = self.world.clock.now
            awaited.wait(left)
            left -= self.world.clock.now - before
            state = CycleState()
            state.write(AWAITED, awaited)

    def gang(
        self, name: str, *, members: int = 2, created: str = "2026-01-01T00:00:00Z", **spec: Any
    ) -> list[corev1.Pod]:
        self.world.plugin.on_pod_group(None, pod_group(name, members, created))
        pods = [pod(f"{name}-{number}", name, **spec) for number in range(members)]
        self.world.create(*pods)
        return pods


@pytest.fixture
def beside(world: Make) -> Beside:
    made = Beside(world([node("n1", "2")]))
    made.world.plugin.rounds.begun.finish()
    return made


def test_a_plan_that_is_made_in_time_is_the_answer(beside: Beside) -> None:
    pods = beside.gang("g")
    beside.meanwhile = beside.world.run_tasks
    assert beside.filter(pods[0]) == "n1"
    assert not beside.world.steered, "the member that is being answered needs no patch"
    assert beside.filter(pods[1]) == "n1"
    assert beside.world.plans == 1


def test_a_member_that_was_refused_before_needs_no_patch_while_its_call_waits(beside: Beside) -> None:
    beside.world.plugin.on_pod_group(None, pod_group("g", 2))
    first, second = (pod(f"g-{number}", "g") for number in range(2))
    beside.world.create(first)
    assert "cannot find enough sibling pods" in beside.filter(first)
    beside.world.create(second)
    beside.meanwhile = beside.world.run_tasks
    assert beside.filter(first) == "n1"
    assert not beside.world.steered


def test_a_plan_that_is_late_sends_the_member_that_has_been_refused_meanwhile(beside: Beside) -> None:
    pods = beside.gang("g")
    assert beside.filter(pods[0]) == PENDING
    assert beside.waited == [LONGEST_SECONDS]
    assert not beside.world.plans, "no call plans"
    beside.world.run_tasks()
    assert beside.world.steered == [("g-0", "n1")]
    assert beside.filter(pods[0]) == "n1"


def test_a_plan_that_is_made_between_the_end_of_the_wait_and_the_answer_is_not_overlooked(beside: Beside) -> None:
    """The member was not sent, since its call waited; and was refused, since its wait was over."""
    pods = beside.gang("g")
    wait = beside._wait

    def late(event: threading.Event, seconds: float) -> bool:
        done = wait(event, seconds)
        beside.world.run_tasks()
        return done

    beside.world.plugin.rounds.waiting_time._wait = late
    assert beside.filter(pods[0]) == "n1"


def test_siblings_of_a_member_that_has_waited_in_vain_do_not_wait(beside: Beside) -> None:
    pods = beside.gang("g", members=3)
    assert [beside.filter(each) for each in pods] == [PENDING] * 3
    assert beside.waited == [LONGEST_SECONDS]
    beside.world.nodes["n1"] = node("n1", "3")
    beside.world.run_tasks()
    assert sorted(beside.world.steered) == [("g-0", "n1"), ("g-1", "n1"), ("g-2", "n1")]


def test_a_gang_that_does_not_fit_tells_its_cause_to_the_member_that_waits(beside: Beside) -> None:
    pods = beside.gang("g", members=3)
    beside.meanwhile = beside.world.run_tasks
    assert beside.filter(pods[0]).endswith("deny: minMember of 3 does not fit: Insufficient cpu")


def test_a_member_that_was_told_to_wait_hears_the_cause_once_it_has_stood(beside: Beside) -> None:
    pods = beside.gang("g", members=3)
    assert beside.filter(pods[0]) == PENDING
    for _ in range(4):
        beside.world.plugin.stale_refusals.tick()
        beside.world.clock.now += 1.0
    assert not beside.world.woken, "it is still true"
    beside.world.run_tasks()
    for _ in range(4):
        beside.world.plugin.stale_refusals.tick()
        beside.world.clock.now += 1.0
    assert beside.world.woken == ["g-0"]


def test_a_younger_gang_does_not_get_the_room_of_an_older_one_that_is_still_to_be_planned(beside: Beside) -> None:
    young = beside.gang("a-young", created="2026-01-02T00:00:00Z")
    beside.gang("z-old", schedulingGates=[{"name": "scheduling.x-k8s.io/gang"}])
    beside.meanwhile = beside.world.run_tasks
    assert "does not fit" in beside.filter(young[0])
    assert {place.group for place in beside.world.plugin.manager.slots} == {"default/z-old"}


def test_a_call_waits_only_a_moment_where_others_are_planned_first(beside: Beside) -> None:
    young = beside.gang("a-young", created="2026-01-02T00:00:00Z")
    beside.gang("z-old", schedulingGates=[{"name": "scheduling.x-k8s.io/gang"}])
    assert beside.filter(young[0]) == PENDING
    assert beside.waited == [BESIDE_OTHERS_SECONDS]


def test_a_call_waits_only_a_moment_where_another_gang_is_being_planned(beside: Beside) -> None:
    beside.gang("z-old", schedulingGates=[{"name": "scheduling.x-k8s.io/gang"}])
    young = beside.gang("a-young", created="2026-01-02T00:00:00Z")
    asked = iter(young[:1])

    def offload(function: Callable[..., object], *args: object) -> object:
        for each in asked:
            beside.filter(each)
        return function(*args)

    beside.world.connect(plan_beside=lambda turn: beside.world.submit("plan", turn), wait=beside._wait, offload=offload)
    beside.world.plugin.rounds.plan_turn()
    assert beside.waited == [BESIDE_OTHERS_SECONDS]


def test_room_that_comes_free_while_its_gang_is_planned_is_found_before_the_call_is_answered(beside: Beside) -> None:
    """No member of the gang is refused yet when the event is judged: it was taken for one that helps no gang, and lost."""
    world, other = beside.world, pod("other", cpu="2", node_name="n1")
    world.on_nodes[other.uid] = other
    world.plugin.on_pod(None, other)

    def offload(function: Callable[..., object], *args: object) -> object:
        result = function(*args)
        if world.on_nodes.pop(other.uid, None) is not None:
            world.plugin.on_pod(other, None)
        return result

    world.connect(plan_beside=lambda turn: world.submit("plan", turn), wait=beside._wait, offload=offload)
    pods = beside.gang("g")
    beside.meanwhile = world.run_tasks
    assert beside.filter(pods[0]) == "n1"


def test_the_last_verdict_is_told_until_the_new_plan_is_there(beside: Beside) -> None:
    """Another text for a moment would be two patches of kube-scheduler's for each member."""
    pods = beside.gang("g", members=3)
    beside.meanwhile = beside.world.run_tasks
    refusal = beside.filter(pods[0])
    assert "does not fit" in refusal
    beside.meanwhile = lambda: None
    beside.world.plugin.events.on_capacity_freed()
    assert beside.filter(pods[0]) == refusal
    for _ in range(4):
        beside.world.plugin.stale_refusals.tick()
        beside.world.clock.now += 1.0
    assert not beside.world.woken


def test_the_offered_nodes_of_a_call_that_was_late_count_for_the_plan(beside: Beside) -> None:
    beside.world.nodes |= {name: node(name, "2") for name in ("n2", "n3")}
    pods = beside.gang("g")
    assert beside.filter(pods[0], ["n3"]) == PENDING
    beside.world.run_tasks()
    assert dict(beside.world.steered)["g-0"] == "n3"


def test_of_a_late_call_many_names_are_not_kept(beside: Beside) -> None:
    beside.world.nodes |= {f"m{number}": node(f"m{number}") for number in range(plan_call.KEPT_NODES)}
    pods = beside.gang("g")
    assert beside.filter(pods[0]) == PENDING
    (call,) = beside.world.plugin.manager.groups["default/g"].calls.values()
    assert call.allowed is None


def test_a_place_that_kube_scheduler_does_not_offer_is_planned_anew_and_at_last_given_up(beside: Beside) -> None:
    pods = beside.gang("g")
    beside.meanwhile = beside.world.run_tasks
    beside.world.nodes["full"] = node("full", "0")
    text = beside.filter(pods[0], ["full"])
    assert "does not fit" in text or text == messages.PLACE_NOT_OFFERED


def test_a_member_that_goes_while_its_call_waits_leaves_nothing(beside: Beside) -> None:
    pods = beside.gang("g", members=1)
    beside.meanwhile = lambda: beside.world.plugin.on_pod(pods[0], None)
    beside.filter(pods[0])
    group = beside.world.plugin.manager.groups["default/g"]
    assert (group.calls, beside.waited) == ({}, [])


def test_filter_calls_wait_for_a_tenth_of_the_time_at_most_for_any_pods(beside: Beside) -> None:
    """Each of many gangs that take long to plan would keep kube-scheduler's loop waiting otherwise."""
    began = beside.world.clock.now
    for number in range(100):
        beside.world.clock.now += 0.1
        (alone,) = beside.gang(f"g{number:03}", members=1)
        beside.filter(alone)
    took = beside.world.clock.now - began
    assert sum(beside.waited) <= SAVED_SECONDS + 0.1 * took + LONGEST_SECONDS


def test_waiting_time_is_saved_up_to_a_limit(beside: Beside) -> None:
    clock = FakeClock()

    def wait(event: threading.Event, seconds: float) -> bool:
        clock.now += seconds
        return False

    time, never, waited = WaitingTime(clock, wait), threading.Event(), []
    clock.now += 3600.0
    for _ in range(3):
        started = clock.now
        time.wait(never, 100.0)
        waited.append(clock.now - started)
    assert waited == pytest.approx([SAVED_SECONDS, SAVED_SECONDS / 10, SAVED_SECONDS / 100])


# What has begun


@pytest.fixture
def restarted(world: Make) -> Beside:
    """A gang whose start was cut short, and whose missing member is there; nothing has been planned."""
    made = Beside(world([node("n1", "1"), node("n2", "1")]))
    w = made.world
    w.plugin.on_pod_group(None, pod_group("begun", 2))
    missing = pod("begun-1", "begun")
    running = pod("begun-0", "begun", node_name="n1")
    running = bound_by(running, 2, [running.uid, missing.uid])
    w.on_nodes[running.uid] = running
    w.create(running, missing)
    return made


def test_a_single_pod_waits_until_what_has_begun_is_planned(restarted: Beside) -> None:
    restarted.meanwhile = restarted.world.run_tasks
    assert restarted.filter(pod("single")) == "any"
    assert [place.pod.name for place in restarted.world.plugin.manager.slots] == ["begun-1"]


def test_a_pod_that_cannot_wait_for_so_long_is_woken_when_what_has_begun_is_planned(restarted: Beside) -> None:
    assert restarted.filter(pod("single")) == messages.BEGUN_FIRST
    assert restarted.waited == [LONGEST_SECONDS]
    restarted.world.run_tasks()
    assert restarted.world.woken == ["single"]
    assert restarted.filter(pod("single")) == "any"
