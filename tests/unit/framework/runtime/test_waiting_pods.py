"""A waiting pod's states, edge by edge. kube-scheduler: pkg/scheduler/framework/runtime/waiting_pods_map_test.go"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from extender.framework.interface import WaitingPod
from extender.framework.runtime.waiting_pods import PendingPod, WaitingPodsMap
from extender.framework.status import SUCCESS, Code, Status, unschedulable
from tests.objects import make_pod
from tests.unit.framework.runtime.fakes import POD, FakeClock

PREEMPTED = Status(Code.ERROR, ("victim",), "p")
REJECTED = unschedulable("no", plugin="p")
TIMED_OUT = unschedulable("rejected due to timeout after waiting 10s at plugin a", plugin="a")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def pod(clock: FakeClock) -> PendingPod:
    return PendingPod(POD, "n1", {"a": 10.0, "b": 60.0}, clock)


@pytest.mark.parametrize(
    ("allowed", "decision", "pending"),
    [
        pytest.param([], None, {"a", "b"}, id="nothing lifted: waits"),
        pytest.param(["a"], None, {"b"}, id="one of two holds lifted: still waits"),
        pytest.param(["a", "a"], None, {"b"}, id="the same hold lifted twice: still waits"),
        pytest.param(["other"], None, {"a", "b"}, id="a hold that is not lifted: still waits"),
        pytest.param(["a", "b"], SUCCESS, set(), id="the last hold lifted: goes on"),
    ],
)
def test_allow(pod: PendingPod, allowed: list[str], decision: Status | None, pending: set[str]) -> None:
    for plugin in allowed:
        assert pod.allow(plugin)
    assert pod.decision == decision
    assert set(pod.pending_plugins()) == pending


def allow(pod: PendingPod) -> bool:
    return pod.allow("a") and pod.allow("b")


def reject(pod: PendingPod) -> bool:
    return pod.reject("p", "no")


def preempt(pod: PendingPod) -> bool:
    return pod.preempt("p", "victim")


@pytest.mark.parametrize("second", [allow, reject, preempt])
@pytest.mark.parametrize(
    ("first", "decision"),
    [
        pytest.param(allow, SUCCESS, id="allowed"),
        pytest.param(reject, REJECTED, id="rejected"),
        pytest.param(preempt, PREEMPTED, id="preempted"),
    ],
)
def test_the_first_signal_wins(
    pod: PendingPod, first: Callable[[PendingPod], bool], decision: Status, second: Callable[[PendingPod], bool]
) -> None:
    assert first(pod)
    assert not second(pod)
    assert pod.decision == decision
    assert pod.await_decision() == decision


@pytest.mark.parametrize("late", [allow, reject, preempt])
def test_a_signal_after_the_timeout_comes_too_late(
    pod: PendingPod, clock: FakeClock, late: Callable[[PendingPod], bool]
) -> None:
    clock.step(10)
    assert not late(pod)
    assert pod.decision == TIMED_OUT


def test_the_timeout_comes_too_late_after_a_signal(pod: PendingPod, clock: FakeClock) -> None:
    assert allow(pod)
    clock.step(100)
    assert not pod.expire()
    assert pod.await_decision() == SUCCESS


def test_a_hold_that_was_lifted_does_not_time_out(pod: PendingPod, clock: FakeClock) -> None:
    pod.allow("a")
    assert pod.deadline == 60
    clock.step(59)
    assert pod.decision is None
    clock.step(1)
    text = "rejected due to timeout after waiting 1m0s at plugin b"
    assert pod.await_decision() == unschedulable(text, plugin="b")


def test_on_virtual_time_the_driver_finds_the_deadline_and_lets_it_pass(pod: PendingPod, clock: FakeClock) -> None:
    assert pod.deadline == 10
    assert not pod.expire()
    clock.step(10)
    assert pod.expire()
    assert not pod.expire()
    assert pod.decision == TIMED_OUT


def test_a_wait_of_no_time_is_over_at_once(clock: FakeClock) -> None:
    decision = PendingPod(POD, "n1", {"a": 0.0}, clock).await_decision()
    assert decision.message == "rejected due to timeout after waiting 0s at plugin a"


def test_a_real_clock_wakes_the_sleeper() -> None:
    decision = PendingPod(POD, "n1", {"a": 0.02}, time.monotonic).await_decision()
    assert decision.message == "rejected due to timeout after waiting 20ms at plugin a"


def test_two_hundred_pods_wait_and_all_hear_their_signal() -> None:
    """Signals of one pod wake no other; no pod is missed."""
    clock = FakeClock()
    pods = [PendingPod(make_pod().name(f"p{i}").obj(), "n1", {"a": 60.0}, clock) for i in range(200)]
    outcomes: list[Status] = []
    threads = [threading.Thread(target=lambda pod=pod: outcomes.append(pod.await_decision())) for pod in pods]
    for thread in threads:
        thread.start()
    for pod in pods:
        pod.allow("a")
    for thread in threads:
        thread.join(timeout=30)
    assert outcomes == [SUCCESS] * 200


def test_the_map_holds_one_pod_a_uid_and_removes_only_the_one_meant(clock: FakeClock) -> None:
    pods = WaitingPodsMap()
    older, newer = (PendingPod(POD, name, {"a": 10.0}, clock) for name in ("n1", "n2"))
    pods.add(older)
    pods.add(newer)
    pods.remove(older)
    assert pods.get(POD.uid) is newer
    pods.remove(newer)
    assert pods.get(POD.uid) is None
    assert len(pods) == 0


def test_callbacks_may_allow_and_reject(clock: FakeClock) -> None:
    pods = WaitingPodsMap()
    waiting = [PendingPod(make_pod().name(name).obj(), "n1", {"a": 10.0}, clock) for name in "xy"]
    for pod in waiting:
        pods.add(pod)

    def reject(pod: WaitingPod) -> None:
        pod.reject("a", "all of you")

    pods.iterate(reject)
    assert [pod.decision for pod in waiting] == [unschedulable("all of you", plugin="a")] * 2
