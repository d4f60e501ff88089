"""InterPodAffinity's score: preferred terms, of the incoming pod and of those that run, summed by topology.

kube-scheduler: pkg/scheduler/framework/plugins/interpodaffinity/scoring.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from extender.api import corev1
from extender.framework.columnar import IntColumn, NodeTable
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import AffinityTerm, PodInfo, WeightedAffinityTerm

Score = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreColumn:
    """What AffinityScores says of each node of one table."""

    table: NodeTable
    per_node: IntColumn


@dataclass(slots=True)
class AffinityScores:
    """topology key -> value -> score. Terms are those of the incoming pod, namespaces merged. column: the same node by
    node, for all nodes of a table."""

    pod: corev1.Pod
    namespace_labels: Mapping[str, str]
    preferred: tuple[WeightedAffinityTerm, ...]
    preferred_anti: tuple[WeightedAffinityTerm, ...]
    hard_weight: int
    scores: Score = field(default_factory=dict)
    column: ScoreColumn | None = None

    def process_node(self, node: NodeInfo, pods: Sequence[PodInfo]) -> None:
        if node.node is None:
            return
        labels = node.node.metadata.labels
        for existing in pods:
            self._process(existing, labels)

    def _process(self, existing: PodInfo, labels: Mapping[str, str]) -> None:
        for weighted in self.preferred:
            self._meet(weighted.term, weighted.weight, existing.pod, {}, labels)
        for weighted in self.preferred_anti:
            self._meet(weighted.term, -weighted.weight, existing.pod, {}, labels)
        if self.hard_weight > 0:
            for term in existing.required_affinity_terms:
                self._meet(term, self.hard_weight, self.pod, self.namespace_labels, labels)
        for weighted in existing.preferred_affinity_terms:
            self._meet(weighted.term, weighted.weight, self.pod, self.namespace_labels, labels)
        for weighted in existing.preferred_anti_affinity_terms:
            self._meet(weighted.term, -weighted.weight, self.pod, self.namespace_labels, labels)

    def _meet(
        self,
        term: AffinityTerm,
        weight: int,
        met: corev1.Pod,
        namespace_labels: Mapping[str, str],
        labels: Mapping[str, str],
    ) -> None:
        value = labels.get(term.topology_key)
        if value is not None and term.matches(met, namespace_labels):
            by_value = self.scores.setdefault(term.topology_key, {})
            by_value[value] = by_value.get(value, 0) + weight

    def of(self, node: corev1.Node) -> int:
        labels = node.metadata.labels
        return sum(by_value.get(labels[key], 0) for key, by_value in self.scores.items() if key in labels)
