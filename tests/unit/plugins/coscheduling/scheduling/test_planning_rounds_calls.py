"""Filter calls that need a plan, and when gangs are planned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

from extender.api import corev1
from extender.plugins.coscheduling.plan_call import PlanCall
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.group import Group
from tests.unit.plugins.coscheduling.conftest import World, node
from tests.unit.plugins.coscheduling.kube_scheduler import KubeScheduler, group, member, members

NAME = member("x").spec.scheduler_name


class Calling(KubeScheduler):
    """A gang of two; its members are plain. turns: of plans, that wait for their thread."""

    def __init__(self, world: World, *, beside: bool = False) -> None:
        super().__init__(world)
        self.turns: list[Callable[[], None]] = []
        if beside:
            world.connect(plan_beside=self.turns.append)
        self.rounds: PlanningRounds = self.plugin.rounds
        self.rounds.begun.finish()
        self.apply(group())
        self.create(*members(2))
        self._forget()

    def _forget(self) -> None:
        self.world.tasks.clear()
        self.turns.clear()
        self.plugin.manager.queue.active.clear()

    @property
    def group(self) -> Group:
        return self.plugin.manager.groups["default/g"]

    def call(
        self, name: str = "g0", before: PlanCall | None = None, allowed: frozenset[str] | None = None
    ) -> PlanCall | None:
        with self.plugin.manager.lock:
            return self.rounds.call(self.group, self.pods[f"default/{name}"], allowed, before)


@pytest.fixture
def kube(world: Callable[..., World]) -> Calling:
    """The one that needs a plan makes it."""
    return Calling(world([node("n1", "4")]))


@pytest.fixture
def beside(world: Callable[..., World]) -> Calling:
    """A thread makes the plans."""
    return Calling(world([node("n1", "4")]), beside=True)


def test_a_call_makes_its_plan_itself_where_no_thread_does(kube: Calling) -> None:
    call = kube.call(allowed=frozenset(("n1",)))
    assert call is not None
    assert kube.group.calls == {"default/g0": call}
    assert (call.uid, call.allowed, call.attempts, call.waiting) == ("default/g0", frozenset(("n1",)), 0, True)
    assert kube.plugin.manager.queue.active == {"default/g"}
    assert kube.world.tasks == {}
    kube.rounds.plan_for(call)
    assert call.done.is_set()
    assert call.refusal is None
    assert kube.group.calls == {"default/g0": call}, "its answer is still to be given"
    assert len(list(kube.plugin.manager.slots)) == 2


def test_a_call_waits_for_the_thread_that_plans(beside: Calling) -> None:
    call = beside.call()
    assert call is not None
    assert call.waiting
    assert len(beside.turns) == 1
    beside.turns.pop()()
    assert call.done.is_set()


def test_no_call_waits_once_all_waiting_time_is_spent(beside: Calling) -> None:
    """Its member is sent when there is a place for it."""
    beside.rounds.waiting_time._saved = 0.0
    assert beside.call() is None
    assert len(beside.turns) == 1
    noted = beside.group.calls["default/g0"]
    assert not noted.waiting
    assert beside.call("g1") is None, "nor does that of a sibling"
    assert "default/g1" not in beside.group.calls
    beside.turns.pop()()
    assert beside.group.calls == {}, "nothing is kept of those that wait no more"


def test_a_call_that_has_waited_in_vain_is_given_up(beside: Calling) -> None:
    first = beside.call()
    assert first is not None
    beside._forget()
    assert beside.call(before=first) is None
    assert not first.waiting
    assert len(beside.turns) == 1


def test_a_call_that_was_answered_and_needs_another_plan_says_how_often_it_has_asked(beside: Calling) -> None:
    first = beside.call()
    assert first is not None
    first.done.set()
    second = beside.call(before=first)
    assert second is not None
    assert second.attempts == 1
    second.done.set()
    third = beside.call(before=second)
    assert third is not None
    assert third.attempts == 2


@pytest.mark.parametrize(
    ("others", "first"),
    [
        pytest.param((), False, id="none"),
        pytest.param(("default/o",), True, id="another gang"),
        pytest.param(("default/b",), False, id="one that it starts with"),
    ],
)
def test_a_call_knows_whether_another_gang_is_planned_before_its_own(
    others: tuple[str, ...], first: bool, kube: Calling
) -> None:
    kube.apply(group(groups="b"), group("b"), group("o"))
    kube._forget()
    kube.plugin.manager.queue.active.update(others)
    call = kube.call()
    assert call is not None
    assert call.others_first is first


def test_all_calls_of_a_gang_hear_the_refusal(kube: Calling) -> None:
    kube.world.nodes["n1"] = node("n1", "1")
    first, second = kube.call(), kube.call("g1")
    assert first is not None
    assert second is not None
    kube.rounds.plan_for(first)
    text = "pod with pgName: default/g last failed in 3s, deny: minMember of 2 does not fit: Insufficient cpu"
    assert [call.refusal.message for call in (first, second) if call.refusal is not None] == [text, text]


def test_a_gang_that_another_thread_has_set_aside_keeps_nothing_of_its_plan(world: Callable[..., World]) -> None:
    w = world([node("n1", "4")])

    def offload(function: Callable[..., object], *args: Any) -> object:
        found = function(*args)
        w.plugin.manager.quarantine.set_aside("default/g")
        return found

    w.connect(offload=offload)
    kube = Calling(w)
    call = kube.call()
    assert call is not None
    kube.rounds.plan_for(call)
    assert call.done.is_set()
    assert list(kube.plugin.manager.slots) == []


def refused(pod: corev1.Pod) -> corev1.Pod:
    condition = corev1.PodCondition("PodScheduled", "False", "Unschedulable", "no")
    return structs.replace(pod, status=structs.replace(pod.status, conditions=(condition,)))


def waits(kube: Calling) -> None:
    """kube-scheduler has refused both."""
    for pod in list(kube.pods.values()):
        kube.plugin.on_pod(pod, refused(pod))
    kube._forget()


def test_a_tick_has_gangs_planned_that_are_due_and_only_then(beside: Calling) -> None:
    waits(beside)
    beside.rounds.tick()
    assert beside.turns == []
    beside.plugin.manager.queue.move_to_active(("default/g",))
    beside.rounds.tick()
    assert len(beside.turns) == 1
    beside.turns.pop()()
    assert len(list(beside.plugin.manager.slots)) == 2


def test_where_we_may_not_plan_nothing_is_planned(world: Callable[..., World]) -> None:
    w = world([node("n1", "4")])
    w.connect(may_plan=lambda: w.leading)
    kube = Calling(w)
    waits(kube)
    kube.plugin.manager.queue.move_to_active(("default/g",))
    w.leading = False
    kube.rounds.plan_turn()
    assert (w.plans, w.tasks) == (0, {})
    assert kube.plugin.manager.queue.active == {"default/g"}
    w.leading = True
    kube.rounds.plan_turn()
    assert w.plans == 1


def test_a_call_has_the_gangs_planned_that_come_before_its_own_and_no_others(kube: Calling) -> None:
    early, late = group("a", 1), group("z", 1)
    kube.apply(early, late)
    kube.create(member("a0", "a", gated=True), member("z0", "z", gated=True))
    kube.world.tasks.clear()
    call = kube.call()
    assert call is not None
    kube.rounds.plan_for(call)
    planned = {slot.group for slot in kube.plugin.manager.slots}
    assert planned == {"default/a", "default/g"}
    assert kube.plugin.manager.queue.active == {"default/z"}
    kube.rounds.plan_waiting()
    assert {slot.group for slot in kube.plugin.manager.slots} == {"default/a", "default/g", "default/z"}
