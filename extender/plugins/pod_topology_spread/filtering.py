"""Hard constraints: how many matching pods each domain has, and whether one more would skew it too far.

kube-scheduler: pkg/scheduler/framework/plugins/podtopologyspread/filtering.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from extender.api import corev1
from extender.framework.columnar import IntColumn, Mask, NodeTable
from extender.framework.node_info import NodeInfo
from extender.framework.status import SUCCESS, Status, unresolvable, unschedulable
from extender.plugins.pod_topology_spread.constraints import Constraint, count_matching, has_all_keys

REASON = "node(s) didn't match pod topology spread constraints"
MISSING_LABEL = unresolvable(f"{REASON} (missing required label)")
SKEWED = unschedulable(REASON)


@dataclass(frozen=True, slots=True, eq=False)
class DomainCounts:
    """One constraint's counts: by value of the label, over the nodes that count; `present` are the values that those have."""

    per_value: IntColumn
    present: Mask

    def as_dict(self, values: Sequence[str]) -> dict[str, int]:
        counts = self.per_value.tolist()
        return {values[at]: counts[at] for at in np.flatnonzero(self.present).tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class FilterColumn:
    """What SpreadCounts says, for one table."""

    table: NodeTable
    counts: Sequence[DomainCounts]


@dataclass(slots=True)
class SpreadCounts:
    """For each constraint: domain value -> matching pods. Cloned for each dry run. columns: the same for all nodes of a
    table, as long as nothing has changed."""

    constraints: tuple[Constraint, ...]
    counts: list[dict[str, int]]
    columns: FilterColumn | None = None

    def clone(self) -> Self:
        return type(self)(self.constraints, [dict(by_value) for by_value in self.counts])

    @classmethod
    def of(cls, pod: corev1.Pod, constraints: Sequence[Constraint], nodes: Sequence[NodeInfo]) -> Self:
        counts: list[dict[str, int]] = [{} for _ in constraints]
        for info in nodes:
            if info.node is None or not has_all_keys(info.node.metadata.labels, constraints):
                continue
            labels = info.node.metadata.labels
            for constraint, by_value in zip(constraints, counts, strict=True):
                if constraint.takes(pod, info.node):
                    value = labels[constraint.topology_key]
                    matching = count_matching(info.pods, constraint.selector, pod.namespace)
                    by_value[value] = by_value.get(value, 0) + matching
        return cls(tuple(constraints), counts)

    def update(self, pod: corev1.Pod, changed: corev1.Pod, node: NodeInfo, amount: int) -> None:
        """A pod that comes or goes in a dry run. Unlike the first count, a terminating one is not left out here."""
        self.columns = None
        if changed.metadata.namespace != pod.metadata.namespace or node.node is None:
            return
        labels = node.node.metadata.labels
        if not has_all_keys(labels, self.constraints):
            return
        for constraint, by_value in zip(self.constraints, self.counts, strict=True):
            if constraint.selector.matches(changed.metadata.labels) and constraint.takes(pod, node.node):
                value = labels[constraint.topology_key]
                by_value[value] = by_value.get(value, 0) + amount

    def judge(self, pod: corev1.Pod, labels: Mapping[str, str]) -> Status:
        for constraint, by_value in zip(self.constraints, self.counts, strict=True):
            value = labels.get(constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            lowest = 0 if len(by_value) < constraint.min_domains else min(by_value.values(), default=0)
            itself = 1 if constraint.selector.matches(pod.metadata.labels) else 0
            if by_value.get(value, 0) + itself - lowest > constraint.max_skew:
                return SKEWED
        return SUCCESS
