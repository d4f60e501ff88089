"""Pods that failed and wait for the end of their back-off; those that failed by an error wait apart.

kube-scheduler: pkg/scheduler/backend/queue/backoff_queue.go
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from extender.backend.queue.backoff import Backoff
from extender.backend.queue.pod_heap import Less, PodHeap
from extender.backend.queue.queued_pod import QueuedPod


class BackoffQueue:
    """Not thread-safe: the queue's lock guards it. Ordered by the end of back-off, within a second by QueueSort."""

    def __init__(self, backoff: Backoff, active_less: Less) -> None:
        def less(first: QueuedPod, second: QueuedPod) -> bool:
            ends = backoff.expiry(first), backoff.expiry(second)
            return ends[0] < ends[1] if ends[0] != ends[1] else active_less(first, second)

        self.backoff = backoff
        self._refused = PodHeap(less)  # Go: podBackoffQ
        self._failed = PodHeap(less)  # Go: podErrorBackoffQ

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def __contains__(self, key: object) -> bool:
        return key in self._refused or key in self._failed

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._refused
        yield from self._failed

    def put(self, entry: QueuedPod) -> None:
        """A pod that no plugin refused came back by an error."""
        self.remove(entry.key)
        (self._refused if entry.rejector_plugins else self._failed).put(entry)

    def get(self, key: str) -> QueuedPod | None:
        return self._refused.get(key) or self._failed.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        return self._refused.remove(key) or self._failed.remove(key)

    @property
    def has_refused(self) -> bool:
        """Whether `pop_early` would find one."""
        return len(self._refused) > 0

    def pop_early(self) -> QueuedPod | None:
        """The refused pod whose back-off ends first, ended or not; pods with errors serve theirs. Go: popBackoff."""
        return self._refused.pop()

    def pop_completed(self, now: float) -> Sequence[QueuedPod]:
        done = []
        for heap in (self._refused, self._failed):
            while (head := heap.peek()) is not None and not self.backoff.backing_off(head, now):
                heap.pop()
                done.append(head)
        return done

    def next_completion(self) -> float | None:
        """When the next pod can leave."""
        heads = [heap.peek() for heap in (self._refused, self._failed)]
        return min((self.backoff.ready_at(head) for head in heads if head is not None), default=None)
