"""Which pod is first in the queue. kube-scheduler: pkg/scheduler/framework/plugins/queuesort/priority_sort_test.go"""

from __future__ import annotations

from typing import Any

import pytest

from extender.framework.interface import QueuedPodInfo
from extender.plugins.priority_sort import PrioritySort
from tests.objects import make_pod


def queued(priority: int | None, timestamp: float) -> QueuedPodInfo:
    pod = make_pod().name("p")
    return QueuedPodInfo((pod if priority is None else pod.priority(priority)).info(), timestamp)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(queued(10, 1), queued(20, 1), False, id="a lower priority is not first"),
        pytest.param(queued(20, 1), queued(10, 1), True, id="a higher priority is first"),
        pytest.param(queued(10, 1), queued(20, 2), False, id="a lower priority is not first though older"),
        pytest.param(queued(10, 2), queued(10, 1), False, id="of equal priority the newer is not first"),
        pytest.param(queued(10, 1), queued(10, 2), True, id="of equal priority the older is first"),
        pytest.param(queued(10, 1), queued(10, 1), False, id="equals are not before each other"),
        pytest.param(queued(None, 1), queued(-1, 1), True, id="no priority is 0"),
    ],
)
def test_less(first: QueuedPodInfo, second: QueuedPodInfo, expected: bool) -> None:
    handle: Any = None
    assert PrioritySort.create(None, handle).less(first, second) is expected
