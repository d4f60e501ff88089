"""Pods that were refused, or are gated, and wait for something to happen.

kube-scheduler: pkg/scheduler/backend/queue/unschedulable_pods.go
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from extender.backend.queue.queued_pod import QueuedPod

DEFAULT_MAX_IN_UNSCHEDULABLE_PODS = 5 * 60.0
FLUSH_INTERVAL = 30.0


class UnschedulablePods:
    """Not thread-safe: the queue's lock guards it. By `namespace/name`, in order of arrival."""

    def __init__(self, max_stay: float = DEFAULT_MAX_IN_UNSCHEDULABLE_PODS) -> None:
        self._max_stay = max_stay
        self._entries: dict[str, QueuedPod] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._entries.values()))

    def put(self, entry: QueuedPod) -> None:
        self._entries[entry.key] = entry

    def get(self, key: str) -> QueuedPod | None:
        return self._entries.get(key)

    def remove(self, key: str) -> QueuedPod | None:
        return self._entries.pop(key, None)

    @property
    def gated(self) -> int:
        return sum(entry.gated for entry in self._entries.values())

    def leftovers(self, now: float) -> Sequence[QueuedPod]:
        """Those that have waited for too long: some event may have been missed."""
        return [entry for entry in self._entries.values() if now - entry.timestamp > self._max_stay]

    def next_leftover(self) -> float | None:
        """The instant after which the first of them is one; gated pods do not count, the flush does not help them."""
        return min(
            (entry.timestamp + self._max_stay for entry in self._entries.values() if not entry.gated), default=None
        )
