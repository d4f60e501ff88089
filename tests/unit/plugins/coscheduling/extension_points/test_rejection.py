"""PostFilter's rejection of a gang whose quorum is far off: all holds end, its plan goes, and it backs off."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.framework.cycle_state import CycleState
from extender.framework.interface import NodeToStatus
from extender.framework.status import unschedulable
from extender.plugins.coscheduling.plan_call import PlanCall, WaitingTime
from tests.unit.plugins.coscheduling.conftest import Waiting, World, node, pod, pod_group

Make = Callable[..., World]
MEMBERS = 10
UNSCHEDULABLE = unschedulable("no room")
REJECTED = "PodGroup default/g gets rejected due to Pod p9 is unschedulable even after PostFilter"


def gang(world: Make, held: int, **args: int) -> tuple[World, list[Waiting]]:
    """So many of ten are held."""
    w = world([node("n1", "20")], **args)
    w.plugin.on_pod_group(None, pod_group("g", MEMBERS))
    members = [pod(f"p{number}", "g") for number in range(MEMBERS)]
    w.create(*members)
    waiting = [w.bind(each, w.filter(each)) for each in members[:held]]
    return w, [each for each in waiting if isinstance(each, Waiting)]


def post_filter(w: World, name: str = "p9", of: str = "g") -> str:
    status = w.plugin.post_filter(CycleState(), pod(name, of), NodeToStatus({}, UNSCHEDULABLE))[1]
    assert not status.success
    return status.message


@pytest.mark.parametrize(
    ("held", "percentage", "rejected"),
    [
        pytest.param(8, 10, True, id="two of ten are missing, more than a tenth"),
        pytest.param(9, 10, False, id="one of ten is missing, a tenth"),
        pytest.param(8, 20, False, id="two of ten are missing, a fifth"),
        pytest.param(7, 20, True, id="three of ten are missing, more than a fifth"),
        pytest.param(9, 0, True, id="one is missing, and none may be"),
    ],
)
def test_a_gang_is_rejected_where_more_of_it_is_missing(
    held: int, percentage: int, rejected: bool, world: Make
) -> None:
    w, waiting = gang(world, held, pod_group_reject_percentage=percentage)
    assert post_filter(w) == (REJECTED if rejected else "")
    assert {each.decision for each in waiting} == {"rejected: optimistic rejection in PostFilter" if rejected else ""}
    group = w.plugin.manager.groups["default/g"]
    own = w.plugin.manager.slots.uids_of("default/g")
    assert (own == {each.pod.uid for each in waiting}) is rejected, "its plan is dropped, but for what is let go"
    diagnosis = group.last_diagnosis
    assert (diagnosis is not None and diagnosis.text == REJECTED) is rejected


@pytest.mark.parametrize(
    ("seconds", "held", "backs_off"),
    [
        pytest.param(0, 5, False, id="it is told not to"),
        pytest.param(5, 5, True, id="for podGroupBackoffSeconds"),
        pytest.param(5, 9, False, id="it is not rejected"),
    ],
)
def test_a_rejected_gang_backs_off(seconds: int, held: int, backs_off: bool, world: Make) -> None:
    w, _ = gang(world, held, pod_group_backoff_seconds=seconds)
    post_filter(w)
    queue = w.plugin.manager.queue
    assert queue.backs_off("default/g") is backs_off
    w.clock.now += 5
    queue.flush()
    assert not queue.backs_off("default/g")


@pytest.mark.parametrize("of", ["", "unknown"], ids=["of none", "of one without a PodGroup"])
def test_a_pod_of_a_group_that_is_not_there_is_refused(of: str, world: Make) -> None:
    w = world([node("n1")])
    assert post_filter(w, of=of) == "can not find pod group"


def test_a_rejected_gang_says_since_when_and_that_it_was_kube_scheduler(world: Make) -> None:
    w, _ = gang(world, 5)
    w.clock.now += 7.0
    post_filter(w)
    diagnosis = w.plugin.manager.groups["default/g"].last_diagnosis
    assert diagnosis is not None
    assert (diagnosis.reason, diagnosis.since) == ("RefutedByScheduler", w.clock.now)


def test_what_a_scheduler_that_binds_without_us_holds_is_let_go_by_unreserve_with_its_cause(world: Make) -> None:
    w, waiting = gang(world, 2, pod_group_backoff_seconds=5)
    w.plugin.unreserve(CycleState(), waiting[0].pod, "n1")
    assert waiting[1].decision == "rejected: rejection in Unreserve"
    assert w.plugin.manager.queue.backs_off("default/g")
    assert w.plugin.manager.slots.uids_of("default/g") == {waiting[1].pod.uid}, "until its call has ended"


@pytest.mark.parametrize(("seconds", "ends"), [(0, False), (1, True)], ids=["without a back-off", "with one"])
def test_a_filter_call_of_a_gang_that_backs_off_waits_for_no_plan(seconds: int, ends: bool, world: Make) -> None:
    w, _ = gang(world, 5, pod_group_backoff_seconds=seconds)
    call = PlanCall("p9", None, WaitingTime(w.clock))
    w.plugin.manager.groups["default/g"].calls["p9"] = call
    post_filter(w)
    assert call.done.is_set() is ends
    assert w.plugin.manager.queue.backs_off("default/g") is ends
    w.plugin.manager.groups["default/g"].calls.clear()


def test_a_gang_that_is_gone_with_its_last_hold_does_not_back_off(world: Make) -> None:
    w = world([node("n1")], pod_group_backoff_seconds=5)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(first := pod("p0", "g"), second := pod("p1", "g"))
    w.bind(first, w.filter(first))
    w.plugin.on_pod_group(pod_group("g", 2), None)
    for each in (first, second):
        w.plugin.on_pod(each, None)
    w.plugin.unreserve(CycleState(), first, "n1")
    assert w.plugin.manager.groups == {}
    assert not w.plugin.manager.queue.backs_off("default/g")


@pytest.mark.parametrize(
    ("by_itself", "back_at"), [(True, 102.5), (False, None)], ids=["by itself", "when it is woken"]
)
def test_a_member_whose_bind_call_has_failed_comes_back(by_itself: bool, back_at: float | None, world: Make) -> None:
    """kube-scheduler's error back-off is a second at first; until then no plan would be of use to it."""
    w = world([node("n1")])
    w.connect(errors_back_off=by_itself)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(first := pod("p0", "g"), pod("p1", "g"))
    w.filter(first)
    w.plugin.unreserve(CycleState(), first, "n1")
    gang = w.plugin.manager.groups["default/g"]
    assert gang.errors.back_at(w.clock.now) == back_at
    assert gang.errors.away(w.clock.now) == ({"p0"} if by_itself else set())
    waiting = w.plugin.manager.queue.unschedulable.get("default/g")
    assert (waiting is not None and waiting.retry_at == back_at) is by_itself


def test_of_a_member_that_was_deleted_meanwhile_no_error_is_noted(world: Make) -> None:
    w = world([node("n1")])
    w.connect(errors_back_off=True)
    w.plugin.on_pod_group(None, pod_group("g", 2))
    w.create(first := pod("p0", "g"), pod("p1", "g"))
    w.bind(first, w.filter(first))
    w.plugin.on_pod(first, None)
    w.plugin.unreserve(CycleState(), first, "n1")
    assert w.plugin.manager.groups["default/g"].errors.away(w.clock.now) == set()
