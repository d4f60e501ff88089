"""Soft constraints: the fewer matching pods a node's domains have, the better.

kube-scheduler: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from extender.api import corev1
from extender.framework.columnar import IntColumn, Mask, NodeTable
from extender.framework.interface import MAX_NODE_SCORE, NodeScore
from extender.framework.node_info import NodeInfo
from extender.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint, count_matching, has_all_keys


@dataclass(frozen=True, slots=True, eq=False)
class ScoreColumn:
    """What SpreadScores knows, for one table. per_node: for each constraint the matching pods of a node's domain."""

    table: NodeTable
    ignored: Mask
    per_node: Sequence[IntColumn]


@dataclass(slots=True)
class SpreadScores:
    """ignored: feasible nodes without a key that is asked for. counts: for each constraint, domain value -> matching pods,
    for the values that feasible nodes have. weights: ln(domains + 2). column: the same for all nodes of a table."""

    constraints: tuple[Constraint, ...]
    require_all: bool
    ignored: set[str] = field(default_factory=set)
    counts: list[dict[str, int]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    column: ScoreColumn | None = None

    def prepare(self, pod: corev1.Pod, feasible: Sequence[NodeInfo], all_nodes: Sequence[NodeInfo]) -> None:
        self._domains(feasible)
        self._count(pod, all_nodes)

    def _domains(self, feasible: Sequence[NodeInfo]) -> None:
        self.counts = [{} for _ in self.constraints]
        for info in feasible:
            labels = info.labels
            if self.require_all and not has_all_keys(labels, self.constraints):
                self.ignored.add(info.name)
                continue
            for constraint, by_value in zip(self.constraints, self.counts, strict=True):
                if constraint.topology_key != HOSTNAME:
                    by_value.setdefault(labels.get(constraint.topology_key, ""), 0)
        for constraint, by_value in zip(self.constraints, self.counts, strict=True):
            size = len(feasible) - len(self.ignored) if constraint.topology_key == HOSTNAME else len(by_value)
            self.weights.append(math.log(float(size + 2)))

    def _count(self, pod: corev1.Pod, all_nodes: Sequence[NodeInfo]) -> None:
        """Over every eligible node, feasible or not."""
        for info in all_nodes:
            if info.node is None:
                continue
            labels = info.node.metadata.labels
            if self.require_all and not has_all_keys(labels, self.constraints):
                continue
            for constraint, by_value in zip(self.constraints, self.counts, strict=True):
                if not constraint.takes(pod, info.node):
                    continue
                value = labels.get(constraint.topology_key, "")
                if value in by_value:
                    by_value[value] += count_matching(info.pods, constraint.selector, pod.namespace)

    def score(self, pod: corev1.Pod, info: NodeInfo) -> int:
        if info.node is None or info.name in self.ignored:
            return 0
        labels = info.node.metadata.labels
        total = 0.0
        for constraint, by_value, weight in zip(self.constraints, self.counts, self.weights, strict=True):
            value = labels.get(constraint.topology_key)
            if value is None:
                continue
            if constraint.topology_key == HOSTNAME:
                count = count_matching(info.pods, constraint.selector, pod.namespace)
            else:
                count = by_value.get(value, 0)
            total += float(count) * weight + float(constraint.max_skew - 1)
        return _round(total)

    def normalize(self, scores: list[NodeScore]) -> None:
        """In place: the most crowded gets the least, ignored nodes nothing."""
        counted = [entry.score for entry in scores if entry.name not in self.ignored]
        highest = max(0, *counted) if counted else 0
        lowest = min(counted, default=0)
        for entry in scores:
            if entry.name in self.ignored:
                entry.score = 0
            elif highest == 0:
                entry.score = MAX_NODE_SCORE
            else:
                entry.score = MAX_NODE_SCORE * (highest + lowest - entry.score) // highest


def _round(number: float) -> int:
    """Go: math.Round, half away from zero."""
    return int(math.floor(abs(number) + 0.5) * (1 if number >= 0 else -1))
