"""One second, two, four, up to ten; ends rounded down to the second."""

from __future__ import annotations

import math

import pytest

from extender.backend.queue.backoff import Backoff
from extender.backend.queue.backoff_queue import BackoffQueue
from extender.backend.queue.queued_pod import QueuedPod
from extender.framework.pod_info import PodInfo
from tests.unit.backend.objects import a_pod


def entry(
    name: str = "p", *, at: float = 0.0, refused: int = 0, errors: int = 0, priority: int = 0, plugin: str = "Fit"
) -> QueuedPod:
    return QueuedPod(
        PodInfo(a_pod(name, priority=priority)),
        at,
        unschedulable_count=refused,
        consecutive_errors_count=errors,
        unschedulable_plugins=frozenset([plugin] if plugin else []),
    )


def by_priority(first: QueuedPod, second: QueuedPod) -> bool:
    return first.pod.priority > second.pod.priority


@pytest.mark.parametrize(
    ("refused", "errors", "seconds"),
    [
        pytest.param(0, 0, 0, id="never failed: none"),
        pytest.param(1, 0, 1, id="first refusal"),
        pytest.param(2, 0, 2, id="second doubles"),
        pytest.param(4, 0, 8, id="fourth"),
        pytest.param(5, 0, 10, id="the limit"),
        pytest.param(1000, 0, 10, id="a thousand refusals do not overflow"),
        pytest.param(4, 1, 1, id="an error counts apart"),
        pytest.param(1, 3, 4, id="errors in a row double too"),
    ],
)
def test_duration(refused: int, errors: int, seconds: float) -> None:
    assert Backoff().duration(entry(refused=refused, errors=errors)) == seconds


def test_durations_are_options() -> None:
    assert Backoff(2, 5).duration(entry(refused=1)) == 2
    assert Backoff(2, 5).duration(entry(refused=2)) == 4
    assert Backoff(2, 5).duration(entry(refused=3)) == 5


@pytest.mark.parametrize(
    ("at", "now", "backing_off"),
    [
        pytest.param(0.0, 0.5, True, id="before its end"),
        pytest.param(0.0, 1.0, True, id="in the second in which it ends"),
        pytest.param(0.0, 1.9, True, id="late in that second"),
        pytest.param(0.0, 2.0, False, id="in the next"),
        pytest.param(0.9, 1.9, True, id="ends are rounded down"),
        pytest.param(0.9, 2.0, False, id="so 0.9 + 1 s is over at 2.0"),
    ],
)
def test_backing_off(at: float, now: float, backing_off: bool) -> None:
    assert Backoff().backing_off(entry(at=at, refused=1), now) is backing_off


def test_a_pod_that_never_failed_is_not_backing_off() -> None:
    assert Backoff().expiry(entry()) == -math.inf
    assert not Backoff().backing_off(entry(), 0)


def test_pods_of_one_second_leave_in_the_order_of_the_active_queue() -> None:
    queue = BackoffQueue(Backoff(), by_priority)
    queue.put(entry("late", at=1.0, refused=1, priority=9))
    queue.put(entry("low", at=0.1, refused=1, priority=1))
    queue.put(entry("high", at=0.9, refused=1, priority=5))
    assert queue.next_completion() == 2.0
    assert [each.pod.name for each in queue.pop_completed(2.0)] == ["high", "low"]
    assert [each.pod.name for each in queue.pop_completed(3.0)] == ["late"]
    assert queue.next_completion() is None


def test_only_refused_pods_leave_early() -> None:
    queue = BackoffQueue(Backoff(), by_priority)
    queue.put(entry("error", errors=1, plugin=""))
    queue.put(entry("refused", refused=3))
    assert len(queue) == 2
    assert queue.has_refused
    early = queue.pop_early()
    assert early is not None
    assert early.pod.name == "refused"
    assert queue.pop_early() is None
    assert "default/error" in queue
    assert [each.pod.name for each in queue.pop_completed(2.0)] == ["error"]


def test_a_pod_waits_in_one_of_the_two_at_a_time() -> None:
    queue = BackoffQueue(Backoff(), by_priority)
    queue.put(entry("p", errors=1, plugin=""))
    queue.put(entry("p", refused=1))
    assert len(queue) == 1
    assert queue.remove("default/p") is not None
    assert queue.remove("default/p") is None
    assert list(queue) == []
