"""Siblings that a plugin wants to be tried next. kube-scheduler: TestSchedulerScheduleOne (podsToActivate)"""

from __future__ import annotations

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.pods_to_activate import stash_pod
from extender.scheduler.in_process.pods_to_activate import activate_stashed, begin
from tests.objects import make_pod

A, B = make_pod().name("a").obj(), make_pod().name("b").obj()


class Queue:
    def __init__(self) -> None:
        self.activated: list[list[str]] = []

    def activate(self, pods: object) -> None:
        assert isinstance(pods, tuple)
        self.activated.append([pod.name for pod in pods])


def stashed(*pods: corev1.Pod) -> CycleState:
    state = CycleState()
    begin(state)
    for pod in pods:
        stash_pod(state, pod)
    return state


def test_what_was_stashed_is_activated_once() -> None:
    queue, state = Queue(), stashed(A, B, A)
    activate_stashed(state, queue.activate)
    activate_stashed(state, queue.activate)
    assert queue.activated == [["a", "b"]]


def test_what_is_stashed_after_the_scheduling_cycle_is_activated_with_the_binding() -> None:
    queue, state = Queue(), stashed(A)
    activate_stashed(state, queue.activate)
    stash_pod(state, B)
    activate_stashed(state, queue.activate)
    assert queue.activated == [["a"], ["b"]]


def test_nothing_stashed_activates_nothing() -> None:
    queue = Queue()
    activate_stashed(stashed(), queue.activate)
    assert queue.activated == []


def test_a_plugin_may_stash_from_a_dry_run() -> None:
    queue, state = Queue(), stashed()
    stash_pod(state.clone(), A)
    activate_stashed(state, queue.activate)
    assert queue.activated == [["a"]]


def test_where_there_is_no_queue_nothing_is_stashed() -> None:
    queue, state = Queue(), CycleState()
    stash_pod(state, A)
    activate_stashed(state, queue.activate)
    assert queue.activated == []
