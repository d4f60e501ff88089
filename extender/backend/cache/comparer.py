"""What the cache holds against what the informers hold: a difference that lasts is a lost event.

For /debug/cache (scheduler/debugging.py); a difference for an instant is normal, the two are read one after the other.
kube-scheduler: pkg/scheduler/backend/cache/debugger/comparer.go
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from extender.api import corev1
from extender.backend.cache.cache import Dump


@dataclass(frozen=True, slots=True)
class Difference:
    """`missed`: the informer has it, the cache has not. `redundant`: the other way round. Names, or namespace/name of pods."""

    missed_nodes: tuple[str, ...] = ()
    redundant_nodes: tuple[str, ...] = ()
    missed_pods: tuple[str, ...] = ()
    redundant_pods: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missed_nodes or self.redundant_nodes or self.missed_pods or self.redundant_pods)

    def lines(self) -> list[str]:
        """One sentence for each kind of difference that there is."""
        said = []
        for what, missed, redundant in (
            ("nodes", self.missed_nodes, self.redundant_nodes),
            ("pods", self.missed_pods, self.redundant_pods),
        ):
            if missed or redundant:
                said.append(f"cache mismatch {what} missed={list(missed)} redundant={list(redundant)}")
        return said


def compare(
    dump: Dump,
    nodes: Iterable[corev1.Node],
    pods: Iterable[corev1.Pod],
    waiting: Iterable[corev1.Pod] = (),
) -> Difference:
    """`nodes` and `pods` of the informers; `waiting` are the queue's pods, which the cache need not hold.

    Pods of the informer that have no node and assumed pods that have none yet are no difference.
    """
    actual_nodes = {node.name for node in nodes}
    actual_pods = {pod.uid: pod.key for pod in pods if pod.node_name and not pod.terminal}
    excused = {pod.uid for pod in waiting}
    return Difference(
        missed_nodes=tuple(sorted(actual_nodes - dump.nodes)),
        redundant_nodes=tuple(sorted(dump.nodes - actual_nodes)),
        missed_pods=tuple(sorted(actual_pods[uid] for uid in actual_pods.keys() - dump.pods.keys() - excused)),
        redundant_pods=tuple(
            sorted(dump.pods[uid] for uid in dump.pods.keys() - actual_pods.keys() - dump.assumed_pods)
        ),
    )
