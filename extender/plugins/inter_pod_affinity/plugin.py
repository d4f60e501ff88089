"""The plugin: PreFilter counts, Filter looks up, PreScore sums, Score looks up.

kube-scheduler: pkg/scheduler/framework/plugins/interpodaffinity/plugin.go, filtering.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Self, cast

from extender.api import corev1
from extender.config.plugin_args import InterPodAffinityArgs
from extender.framework.columnar import (
    FilterColumns,
    IntColumn,
    NodeTable,
    Rows,
    ScoreColumns,
    Verdicts,
    table_of,
)
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import (
    MAX_NODE_SCORE,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    NodeScore,
    PreFilterExtensions,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import only, rows_in
from extender.framework.pod_info import PodInfo, WeightedAffinityTerm
from extender.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from extender.plugins import names
from extender.plugins.inter_pod_affinity import columns, hints
from extender.plugins.inter_pod_affinity.scoring import AffinityScores
from extender.plugins.inter_pod_affinity.topology_counts import NamespacesOf, TopologyCounts, matches_all, merged

STATE = "PreFilterInterPodAffinity"
SCORE_STATE = "PreScoreInterPodAffinity"

EXISTING_ANTI = unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")
AFFINITY = unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = unschedulable("node(s) didn't match pod anti-affinity rules")


class InterPodAffinity(
    PreFilterPlugin,
    FilterPlugin,
    FilterColumns,
    PreScorePlugin,
    ScorePlugin,
    ScoreColumns,
    EnqueueExtensions,
    PreFilterExtensions,
):
    name = names.INTER_POD_AFFINITY

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle

    @classmethod
    def create(cls, args: InterPodAffinityArgs | None, handle: Handle) -> Self:
        return cls(args or InterPodAffinityArgs(), handle)

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        info, namespaces_of = PodInfo(pod), self._namespaces_of()
        if unreadable := info.affinity_error:
            return None, unresolvable(f"parsing pod: {unreadable}")
        counts = TopologyCounts(
            pod,
            self._labels_of(pod.namespace),
            merged(info.required_affinity_terms, namespaces_of),
            merged(info.required_anti_affinity_terms, namespaces_of),
        )
        snapshot = self._handle.snapshot()
        table = table_of(snapshot)
        rows = rows_in(table, nodes) if table is not None else None
        if table is not None and rows is not None:
            columns.count_by_columns(counts, table, only(table, rows))
        else:
            _count(counts, nodes, snapshot.have_pods_with_required_anti_affinity())
        if not counts.affinity_terms and not counts.anti_terms and not counts.existing_anti:
            return None, SKIP
        state.write(STATE, counts)
        return None, SUCCESS

    def pre_filter_extensions(self) -> PreFilterExtensions:
        return self

    def add_pod(self, state: CycleState, pod: corev1.Pod, added: PodInfo, node: NodeInfo) -> Status:
        state.read(STATE, TopologyCounts).update(added, node.labels, 1)
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: corev1.Pod, removed: PodInfo, node: NodeInfo) -> Status:
        state.read(STATE, TopologyCounts).update(removed, node.labels, -1)
        return SUCCESS

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        counts = state.read(STATE, TopologyCounts)
        labels = node.labels
        if not _affinity_met(counts, labels):
            return AFFINITY
        for term in counts.anti_terms:
            value = labels.get(term.topology_key)
            if value is not None and counts.anti.get((term.topology_key, value), 0) > 0:
                return ANTI_AFFINITY
        if counts.existing_anti and any(counts.existing_anti.get((key, value), 0) > 0 for key, value in labels.items()):
            return EXISTING_ANTI
        return SUCCESS

    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        codes = columns.judge_by_columns(state.read(STATE, TopologyCounts), table)
        return None if codes is None else Verdicts(codes, (AFFINITY, ANTI_AFFINITY, EXISTING_ANTI))

    def pre_score(self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Without preferred terms of its own the pod only meets those that have some."""
        info = PodInfo(pod)
        own = bool(info.preferred_affinity_terms or info.preferred_anti_affinity_terms)
        if not own and self._args.ignore_preferred_terms_of_existing_pods:
            return SKIP
        snapshot, namespaces_of = self._handle.snapshot(), self._namespaces_of()
        scores = AffinityScores(
            pod,
            self._labels_of(pod.namespace),
            _merged_weighted(info.preferred_affinity_terms, namespaces_of),
            _merged_weighted(info.preferred_anti_affinity_terms, namespaces_of),
            self._args.hard_pod_affinity_weight,
        )
        table = table_of(snapshot)
        if table is not None:
            columns.score_by_columns(scores, table)
        else:
            for node in snapshot.list() if own else snapshot.have_pods_with_affinity():
                scores.process_node(node, node.pods if own else node.pods_with_affinity)
        if not scores.scores:
            return SKIP
        state.write(SCORE_STATE, scores)
        return SUCCESS

    def score(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> tuple[int, Status]:
        scores = state.read(SCORE_STATE, AffinityScores)
        return (scores.of(node.node) if node.node is not None else 0), SUCCESS

    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        column = state.read(SCORE_STATE, AffinityScores).column
        return column.per_node[rows] if column is not None and column.table is table else None

    def normalize_columns(self, state: CycleState, pod: corev1.Pod, scores: IntColumn, rows: Rows) -> IntColumn | None:
        return columns.stretched(scores)

    def normalize_score(self, state: CycleState, pod: corev1.Pod, scores: list[NodeScore]) -> Status:
        """The lowest is 0, the highest 100."""
        lowest = min((entry.score for entry in scores), default=0)
        highest = max((entry.score for entry in scores), default=0)
        for entry in scores:
            stretched = 0.0
            if highest > lowest:
                stretched = float(MAX_NODE_SCORE) * (float(entry.score - lowest) / float(highest - lowest))
            entry.score = int(stretched)
        return SUCCESS

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return hints.events_to_register()

    def _namespaces(self) -> Iterable[corev1.Namespace]:
        return cast("Iterable[corev1.Namespace]", self._handle.lister(corev1.Namespace).list())

    def _namespaces_of(self) -> NamespacesOf:
        return NamespacesOf(self._namespaces())

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        found = cast("corev1.Namespace | None", self._handle.lister(corev1.Namespace).get(namespace))
        return found.metadata.labels if found is not None else {}


def _count(counts: TopologyCounts, nodes: Sequence[NodeInfo], with_anti: Iterable[NodeInfo]) -> None:
    """with_anti: all nodes that have pods with required anti-affinity."""
    for node in with_anti:
        labels = node.labels
        for existing in node.pods_with_required_anti_affinity:
            counts.count_existing_anti(existing, labels, 1)
    if counts.affinity_terms or counts.anti_terms:
        for node in nodes:
            labels = node.labels
            for existing in node.pods:
                counts.count_own(existing.pod, labels, 1)


def _merged_weighted(
    terms: Iterable[WeightedAffinityTerm], namespaces_of: NamespacesOf
) -> tuple[WeightedAffinityTerm, ...]:
    return tuple(
        WeightedAffinityTerm(merged((weighted.term,), namespaces_of)[0], weighted.weight) for weighted in terms
    )


def _affinity_met(counts: TopologyCounts, labels: Mapping[str, str]) -> bool:
    """Every term has its pod in the node's domain; the first pod of a group that asks for itself needs none."""
    unmatched = False
    for term in counts.affinity_terms:
        value = labels.get(term.topology_key)
        if value is None:
            return False
        if counts.affinity.get((term.topology_key, value), 0) <= 0:
            unmatched = True
    if unmatched:
        return not counts.affinity and matches_all(counts.affinity_terms, counts.pod)
    return True
