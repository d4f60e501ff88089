"""What PreFilter answers to a member and to a pod of no gang, and what Filter goes on with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender import metrics
from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.framework.columnar import ALL_PASS, table_of
from extender.framework.cycle_state import AWAITED, CycleState
from extender.framework.interface import PreFilterResult
from extender.framework.status import SKIP, SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.extension_points.pre_filter import KEPT
from extender.plugins.coscheduling.plan_call import LONGEST_SECONDS, PlanCall, WaitingTime
from tests.unit.plugins.coscheduling.conftest import FakeClock, World, node, pod, pod_group
from tests.unit.plugins.coscheduling.starting import bound_by
from tests.unit.plugins.coscheduling.test_plan_call import Beside, beside

__all__ = ["beside"]
Make = Callable[..., World]
Answer = tuple[PreFilterResult | None, Status]
SET_ASIDE = unresolvable("the gang met an internal error and is set aside for a while; see the extender's log")


def pre_filter(w: World, asked: corev1.Pod, state: CycleState | None = None) -> Answer:
    return w.plugin.pre_filter(state or CycleState(), asked, w.snapshot().list())


def gang(w: World, size: int = 2) -> list[corev1.Pod]:
    w.plugin.on_pod_group(None, pod_group("g", size))
    members = [pod(f"p{number}", "g") for number in range(size)]
    w.create(*members)
    return members


def to(name: str) -> Answer:
    return PreFilterResult(frozenset({name})), SUCCESS


def test_a_member_is_sent_to_the_node_of_its_place_and_to_no_other(world: Make) -> None:
    w = world([node("n1", "2"), node("n2", "1", unschedulable=True)])
    members = gang(w)
    assert [pre_filter(w, each) for each in members] == [to("n1")] * 2


def test_a_member_that_has_to_wait_is_refused_with_the_cause(world: Make) -> None:
    w = world([node("n1")])
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(alone := pod("p0", "g"))
    assert pre_filter(w, alone) == (None, unresolvable(messages.not_enough_siblings("p0", 1, 2)))


def test_only_the_nodes_that_kube_scheduler_offers_are_planned_for_the_member(world: Make) -> None:
    w = world([node("n1", "2"), node("n2", "2")])
    members = gang(w)
    offered = [w.snapshot().get("n2")]
    assert w.plugin.pre_filter(CycleState(), members[0], offered) == to("n2")


def test_a_pod_of_no_gang_is_asked_about_no_more_where_no_room_is_kept(world: Make) -> None:
    w = world([node("n1")])
    state = CycleState()
    assert pre_filter(w, pod("single"), state) == (None, SKIP)
    assert state.get(KEPT, object) is None
    info = w.snapshot().get("n1")
    assert w.plugin.filter(state, pod("single"), info) == SUCCESS
    assert w.plugin.filter_columns(state, pod("single"), None) is ALL_PASS  # type: ignore[arg-type]


def test_where_room_is_kept_from_a_pod_filter_looks_at_each_node(world: Make) -> None:
    w = world([node("n1", "2"), node("n2", "1")])
    pre_filter(w, gang(w)[0])
    state = CycleState()
    assert pre_filter(w, pod("single"), state) == (None, SUCCESS)
    found = {info.name: w.plugin.filter(state, pod("single"), info).message for info in w.snapshot().list()}
    assert found == {"n1": messages.ROOM_RESERVED, "n2": ""}


def test_where_room_is_kept_from_a_pod_filter_looks_at_all_nodes_at_once_where_it_may(world: Make) -> None:
    w = world([node("n1", "2"), node("n2", "1")])
    pre_filter(w, gang(w)[0])
    cache = Cache()
    for each in w.nodes.values():
        cache.add_node(each)
    table = table_of(cache.snapshot())
    assert table is not None
    state, single = CycleState(), pod("single")
    assert pre_filter(w, single, state) == (None, SUCCESS)
    verdicts = w.plugin.filter_columns(state, single, table)
    assert verdicts is not None
    assert verdicts.codes is not None
    told = {name: verdicts.statuses[code - 1].message for name, code in zip(table.names, verdicts.codes) if code}
    assert told == {"n1": messages.ROOM_RESERVED}


# What has begun before a restart


def cut_short(w: World) -> None:
    """A gang of which one runs on n1 since before a restart, and the other is to come to n2."""
    w.plugin.on_pod_group(None, pod_group("begun", 2))
    missing, running = pod("begun-1", "begun"), pod("begun-0", "begun", node_name="n1")
    running = bound_by(running, 2, [running.uid, missing.uid])
    w.on_nodes[running.uid] = running
    w.create(running, missing)


def test_what_has_begun_is_planned_before_the_first_pod_is_answered(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    cut_short(w)
    state = CycleState()
    assert pre_filter(w, pod("single", priority=9), state) == (None, SUCCESS)
    assert [place.pod.name for place in w.plugin.manager.slots] == ["begun-1"]
    assert w.plugin.filter(state, pod("single"), w.snapshot().get("n2")).message == messages.ROOM_RESERVED


def test_where_a_thread_plans_beside_the_calls_a_pod_waits_for_what_has_begun_once(world: Make) -> None:
    w = world([node("n1", "1"), node("n2", "1")])
    Beside(w)
    cut_short(w)
    state = CycleState()
    first_others = (None, unresolvable("gangs that began to start before a restart are planned first"))
    assert pre_filter(w, pod("single"), state) == first_others
    awaited = state.awaited
    assert awaited is not None
    assert pre_filter(w, pod("single"), state) == first_others
    assert state.awaited is None, "it has waited, and is woken"
    w.run_tasks()
    assert w.woken == ["single"]
    assert pre_filter(w, pod("single"), state)[1] == SUCCESS


def test_a_member_that_has_waited_for_what_has_begun_is_planned_then(world: Make) -> None:
    beside = Beside(world([node("n1", "1"), node("n2", "1"), node("n3", "2")]))
    w = beside.world
    cut_short(w)
    members = gang(w)
    state = CycleState()
    assert pre_filter(w, members[0], state)[1] == unresolvable(messages.BEGUN_FIRST)
    w.plugin.rounds.begun.finish()
    assert pre_filter(w, members[0], state) == (None, unresolvable(messages.PLAN_PENDING))
    w.run_tasks()
    assert pre_filter(w, members[0], state) == to("n3")


def test_a_plan_s_call_that_waits_when_we_lead_anew_is_given_up(world: Make) -> None:
    """The member is sent when it has a place."""
    beside = Beside(world([node("n1", "2")]))
    w = beside.world
    state, call = CycleState(), PlanCall("p0", frozenset(), WaitingTime(FakeClock()))
    cut_short(world([node("n1")]))
    state.write(AWAITED, call)
    assert pre_filter(w, gang(w)[0], state)[1] == unresolvable(messages.BEGUN_FIRST)
    assert (call.waiting, state.awaited) == (False, None)


# Plans that are made beside the calls


def test_a_member_without_a_place_leaves_the_call_to_wait_for(beside: Beside) -> None:
    w = beside.world
    state, members = CycleState(), gang(w)
    assert pre_filter(w, members[0], state) == (None, unresolvable(messages.PLAN_PENDING))
    call = state.awaited
    assert isinstance(call, PlanCall)
    assert (call.uid, call.allowed) == ("p0", frozenset({"n1"}))
    w.run_tasks()
    assert pre_filter(w, members[0], state) == to("n1")
    assert state.awaited is None, "there is nothing to wait for any more"
    assert not w.plugin.manager.groups["default/g"].calls
    assert not w.steered, "the call is the answer"


def test_a_member_waits_for_its_plan_in_one_call_and_in_no_second(beside: Beside) -> None:
    members = gang(beside.world)
    assert beside.filter(members[0]) == messages.PLAN_PENDING
    assert beside.waited == [LONGEST_SECONDS]


# Faults


def broken(*args: object) -> object:
    raise KeyError("a fault of ours")


def faults() -> float:
    """As the metric has them of filter calls."""
    return float(metrics.unexpected_errors.labels("filter")._value.get())


@pytest.mark.faults
def test_a_member_of_a_gang_that_is_set_aside_is_refused_until_that_is_over(world: Make) -> None:
    w = world([node("n1", "2")])
    first, _ = gang(w)
    w.plugin.manager.quarantine.set_aside("default/g")
    assert pre_filter(w, first) == (None, SET_ASIDE)
    assert w.plugin.manager.groups["default/g"].members["p0"].last_rejection == SET_ASIDE.message
    w.clock.now += 1.0
    assert pre_filter(w, first) == to("n1")


@pytest.mark.faults
def test_a_fault_sets_the_gang_aside_of_which_a_member_was_asked_about(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    w = beside.world
    first, _ = gang(w)
    state, call = CycleState(), PlanCall("p0", frozenset(), WaitingTime(FakeClock()))
    state.write(AWAITED, call)
    monkeypatch.setattr(w.plugin.admission, "decide", broken)
    before = faults()
    assert pre_filter(w, first, state) == (None, SET_ASIDE)
    assert faults() == before + 1
    assert list(w.plugin.manager.quarantine) == ["default/g"]
    assert (call.waiting, state.awaited) == (False, None), "what it waited for is waited for no longer"


@pytest.mark.faults
@pytest.mark.parametrize("at_once", [True, False], ids=["all nodes at once", "node by node"])
def test_a_single_pod_passes_whatever_raises_of_gangs(
    at_once: bool, world: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would never pass otherwise; room that was kept can be planned again."""
    w = world([node("n1", "2")])
    pre_filter(w, gang(w)[0])
    state = CycleState()
    assert pre_filter(w, pod("single"), state) == (None, SUCCESS)
    info, before = w.snapshot().get("n1"), faults()
    with monkeypatch.context() as patched:
        for name in ("judge", "judge_all"):
            patched.setattr(w.plugin.room, name, broken)
        if at_once:
            assert w.plugin.filter_columns(state, pod("single"), None) is ALL_PASS  # type: ignore[arg-type]
        else:
            assert w.plugin.filter(state, pod("single"), info) == SUCCESS
    assert w.plugin.filter(state, pod("single"), info) == SUCCESS, "nor is it asked once more in this cycle"
    monkeypatch.setattr(w.plugin.room, "kept_from", broken)
    assert pre_filter(w, pod("single")) == (None, SKIP)
    assert faults() == before + 2
    assert not list(w.plugin.manager.quarantine)
