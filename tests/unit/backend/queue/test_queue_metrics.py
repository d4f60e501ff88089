"""Every way into a queue is counted with its cause. kube-scheduler: TestIncomingPodsMetrics"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from extender import metrics
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.queueing_hints import QueueingHints
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.framework import events
from extender.framework.hint_rows import HintRow
from tests.unit.backend.objects import FakeClock, a_pod

HINTS = QueueingHints({"default-scheduler": (HintRow(events.NODE_ADD, "A"),)})


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(1000.0)


@pytest.fixture
def queue(clock: FakeClock) -> PriorityQueue:
    return PriorityQueue(lambda a, b: a.timestamp < b.timestamp, hints=HINTS, clock=clock)


@contextmanager
def counted(place: str, cause: str) -> Iterator[None]:
    labels = {"queue": place, "event": cause}
    name = "scheduler_queue_incoming_pods_total"
    before = metrics.REGISTRY.get_sample_value(name, labels) or 0.0
    yield
    assert metrics.REGISTRY.get_sample_value(name, labels) == before + 1


def popped(queue: PriorityQueue) -> QueuedPod:
    queue.add(a_pod("p"))
    entry = queue.pop_ready()
    assert entry is not None
    return entry


def test_a_new_pod(queue: PriorityQueue) -> None:
    with counted("active", "UnschedulablePodAdd"):
        queue.add(a_pod("p"))


def test_a_refused_pod(queue: PriorityQueue) -> None:
    entry = popped(queue)
    with counted("unschedulable", "ScheduleAttemptFailure"):
        queue.add_unschedulable_if_not_present(entry.rejected_by(["A"]))


def test_a_pod_that_failed(queue: PriorityQueue) -> None:
    entry = popped(queue)
    with counted("backoff", "ScheduleAttemptFailure"):
        queue.add_unschedulable_if_not_present(entry.rejected_by([]))


def test_a_pod_that_an_event_helped_while_it_backs_off_and_that_is_tried_early(queue: PriorityQueue) -> None:
    queue.add_unschedulable_if_not_present(popped(queue).rejected_by(["A"]))
    with counted("backoff", "NodeAdd"):
        queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)
    with counted("active", "PopFromBackoffQ"):
        assert queue.pop_ready() is not None


def test_a_pod_that_an_event_helped_after_its_back_off(queue: PriorityQueue, clock: FakeClock) -> None:
    queue.add_unschedulable_if_not_present(popped(queue).rejected_by(["A"]))
    clock.now += 20.0
    with counted("active", "NodeAdd"):
        queue.move_all_to_active_or_backoff_queue(events.NODE_ADD)


def test_a_pod_whose_back_off_is_over(queue: PriorityQueue, clock: FakeClock) -> None:
    queue.add_unschedulable_if_not_present(popped(queue).rejected_by([]))
    clock.now += 20.0
    with counted("active", "BackoffComplete"):
        queue.flush()


def test_a_pod_that_was_activated(queue: PriorityQueue) -> None:
    queue.add_unschedulable_if_not_present(popped(queue).rejected_by(["A"]))
    with counted("active", "ForceActivate"):
        queue.activate([a_pod("p")])


def test_a_pod_that_nothing_helped_for_long(queue: PriorityQueue, clock: FakeClock) -> None:
    queue.add_unschedulable_if_not_present(popped(queue).rejected_by(["A"]))
    clock.now += 400.0
    with counted("active", "UnschedulableTimeout"):
        queue.flush()
