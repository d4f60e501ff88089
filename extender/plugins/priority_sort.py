"""PrioritySort: higher priority first, then the longer wait.

kube-scheduler: pkg/scheduler/framework/plugins/queuesort/priority_sort.go
"""

from __future__ import annotations

from typing import Self

from extender.framework.handle import Handle
from extender.framework.interface import QueuedPodInfo, QueueSortPlugin
from extender.plugins import names


class PrioritySort(QueueSortPlugin):
    name = names.PRIORITY_SORT

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls()

    def less(self, first: QueuedPodInfo, second: QueuedPodInfo) -> bool:
        if first.pod.priority != second.pod.priority:
            return first.pod.priority > second.pod.priority
        return first.timestamp < second.timestamp
