"""A heap of queued pods by any order, from which a pod can be taken by its key.

kube-scheduler: pkg/scheduler/backend/heap/heap.go
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator

from extender.backend.queue.queued_pod import QueuedPod

Less = Callable[[QueuedPod, QueuedPod], bool]

_SLACK = 16  # how many dead entries a small heap may carry before it is cleaned


class _Item:
    """Alive while the heap's index points to it. Pods that are equal to the order keep that of their arrival."""

    __slots__ = ("entry", "less", "number")

    def __init__(self, entry: QueuedPod, less: Less, number: int) -> None:
        self.entry = entry
        self.less = less
        self.number = number

    def __lt__(self, other: _Item) -> bool:
        if self.less(self.entry, other.entry):
            return True
        if self.less(other.entry, self.entry):
            return False
        return self.number < other.number


class PodHeap:
    """Not thread-safe: the queue's lock guards it."""

    def __init__(self, less: Less) -> None:
        self._less = less
        self._heap: list[_Item] = []
        self._alive: dict[str, _Item] = {}
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._alive)

    def __contains__(self, key: object) -> bool:
        return key in self._alive

    def __iter__(self) -> Iterator[QueuedPod]:
        """In no particular order."""
        return (item.entry for item in list(self._alive.values()))

    def put(self, entry: QueuedPod) -> None:
        """Adds, or replaces the entry of the same key, which keeps its place among equals."""
        known = self._alive.get(entry.key)
        item = _Item(entry, self._less, next(self._numbers) if known is None else known.number)
        self._alive[entry.key] = item
        heapq.heappush(self._heap, item)
        self._clean()

    def get(self, key: str) -> QueuedPod | None:
        item = self._alive.get(key)
        return None if item is None else item.entry

    def remove(self, key: str) -> QueuedPod | None:
        item = self._alive.pop(key, None)
        return None if item is None else item.entry

    def peek(self) -> QueuedPod | None:
        self._drop_dead()
        return self._heap[0].entry if self._heap else None

    def pop(self) -> QueuedPod | None:
        self._drop_dead()
        if not self._heap:
            return None
        entry = heapq.heappop(self._heap).entry
        del self._alive[entry.key]
        return entry

    def _drop_dead(self) -> None:
        heap = self._heap
        while heap and self._alive.get(heap[0].entry.key) is not heap[0]:
            heapq.heappop(heap)

    def _clean(self) -> None:
        if len(self._heap) > 2 * len(self._alive) + _SLACK:
            self._heap = list(self._alive.values())
            heapq.heapify(self._heap)
