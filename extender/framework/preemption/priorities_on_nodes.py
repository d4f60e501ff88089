"""How many pods of each priority are on nodes: by it preemption knows without a search whether it could evict any pod.

kube-scheduler has no counterpart: it looks through all nodes.
"""

from __future__ import annotations

from collections import Counter

from extender.api import corev1


class PrioritiesOnNodes:
    """Follows the watch's events. Not locked: the owner's lock guards it."""

    def __init__(self) -> None:
        self._count: Counter[int] = Counter()
        self._counted: dict[str, int] = {}  # by UID: an event may come twice

    def follow(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        if pod is None:
            return
        before, after = self._counted.get(pod.uid), _on_node(new)
        if before == after:
            return
        if after is not None:
            self._counted[pod.uid] = after
            self._count[after] += 1
        else:
            del self._counted[pod.uid]
        if before is not None:
            self._count[before] -= 1
            if not self._count[before]:
                del self._count[before]

    def any_below(self, priority: int) -> bool:
        return any(known < priority for known in self._count)


def _on_node(pod: corev1.Pod | None) -> int | None:
    return pod.priority if pod is not None and pod.node_name and not pod.terminal else None
