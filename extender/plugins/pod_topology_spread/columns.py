"""PodTopologySpread for all nodes at once: the same counts and scores, from pods by class and labels by value.

The plugin's PreFilter and PreScore build by it where the snapshot has columns; filtering.py and scoring.py have the rules.
AddPod and RemovePod change the counts, and then the exact rule is asked again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from extender.api import corev1
from extender.framework.columnar import Codes, IntColumn, Mask, NodeTable, PodClass, Rows
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.node_selector_columns import repelled_nodes, required_node_affinity_nodes
from extender.plugins.pod_topology_spread.constraints import HOSTNAME, Constraint
from extender.plugins.pod_topology_spread.filtering import DomainCounts, FilterColumn, SpreadCounts
from extender.plugins.pod_topology_spread.scoring import ScoreColumn, SpreadScores

_encode = msgspec.msgpack.Encoder().encode


def count_by_columns(
    pod: corev1.Pod, constraints: Sequence[Constraint], table: NodeTable, among: Mask | None
) -> SpreadCounts:
    """among: the nodes that are looked at; None for all."""
    labelled = _with_all_keys(table, constraints)
    if among is not None:
        labelled &= among
    counts = []
    for constraint in constraints:
        column = table.label(constraint.topology_key)
        there = labelled & _takes(table, constraint, pod)
        matching = np.where(there, _matching(table, constraint, pod), 0)
        counts.append(DomainCounts(column.sums(matching), column.occupied(there)))
    by_value = [c.as_dict(table.label(own.topology_key).values) for c, own in zip(counts, constraints, strict=True)]
    return SpreadCounts(tuple(constraints), by_value, FilterColumn(table, counts))


def _with_all_keys(table: NodeTable, constraints: Sequence[Constraint]) -> Mask:
    mask = np.ones(len(table), dtype=np.bool_)
    for constraint in constraints:
        mask &= table.label(constraint.topology_key).codes >= 0
    return mask


def _takes(table: NodeTable, constraint: Constraint, pod: corev1.Pod) -> Mask:
    mask = required_node_affinity_nodes(table, pod) if constraint.honor_affinity else None
    if mask is None:
        mask = np.ones(len(table), dtype=np.bool_)
    if constraint.honor_taints:
        mask &= ~repelled_nodes(table, pod)
    return mask


def _matching(table: NodeTable, constraint: Constraint, pod: corev1.Pod) -> IntColumn:
    """Pods per node that count; an empty selector counts none."""
    selector = constraint.selector
    if selector.empty or selector.nothing:
        return np.zeros(len(table), dtype=np.int64)

    def counts(kind: PodClass) -> bool:
        return not kind.terminating and selector.matches(kind.pod.metadata.labels)

    return table.pods().matching(
        ("spread", pod.namespace, _encode(selector.parts)), counts, frozenset((pod.namespace,))
    )


def judge_by_columns(spread: SpreadCounts, pod: corev1.Pod, table: NodeTable) -> Codes | None:
    """0 passes, 1 a label is missing, 2 skewed; None where the counts have changed since."""
    columns = spread.columns
    if columns is None or columns.table is not table:
        return None
    codes = np.zeros(len(table), dtype=np.int32)
    for constraint, counts in zip(spread.constraints, columns.counts, strict=True):
        label = table.label(constraint.topology_key)
        present = counts.per_value[counts.present]
        lowest = int(present.min(initial=np.iinfo(np.int64).max)) if present.size else 0
        if len(present) < constraint.min_domains:
            lowest = 0
        itself = 1 if constraint.selector.matches(pod.metadata.labels) else 0
        skewed = label.of_nodes(counts.per_value, 0) + (itself - lowest) > constraint.max_skew
        verdict = np.where(label.codes < 0, 1, np.where(skewed, 2, 0))
        codes = np.where(codes == 0, verdict, codes).astype(np.int32)
    return codes


def prepare_by_columns(scores: SpreadScores, pod: corev1.Pod, table: NodeTable, feasible: Rows) -> None:
    """Fills empty scores."""
    everywhere = np.ones(len(table), dtype=np.bool_)
    labelled = _with_all_keys(table, scores.constraints) if scores.require_all else everywhere
    chosen = np.zeros(len(table), dtype=np.bool_)
    chosen[feasible] = True
    ignored = chosen & ~labelled
    scores.ignored = {table.names[row] for row in np.flatnonzero(ignored).tolist()}
    chosen &= labelled
    per_node = []
    counts: dict[str, int]
    for constraint in scores.constraints:
        matching = _matching(table, constraint, pod)
        if constraint.topology_key == HOSTNAME:
            counts, size, here = {}, len(feasible) - len(scores.ignored), matching
        else:
            counting = np.where(labelled & _takes(table, constraint, pod), matching, 0)
            counts, here = _domains(table, constraint, chosen, counting)
            size = len(counts)
        scores.counts.append(counts)
        scores.weights.append(math.log(float(size + 2)))
        per_node.append(here)
    scores.column = ScoreColumn(table, ignored, per_node)


def _domains(
    table: NodeTable, constraint: Constraint, chosen: Mask, counting: IntColumn
) -> tuple[dict[str, int], IntColumn]:
    """The domains of the chosen nodes with their counts, and each node's; nodes without the label are the domain ""."""
    label = table.label(constraint.topology_key)
    missing = label.codes < 0
    per_value = label.sums(counting)
    unlabelled = int(counting[missing].sum())
    nameless = label.index.get("")
    if nameless is not None:
        per_value[nameless] += unlabelled
        unlabelled = int(per_value[nameless])
    counts = DomainCounts(per_value, label.occupied(chosen)).as_dict(label.values)
    if (chosen & missing).any():
        counts[""] = unlabelled
    return counts, label.of_nodes(per_value, 0)


def scores_by_columns(scores: SpreadScores, table: NodeTable, rows: Rows) -> IntColumn | None:
    column = scores.column
    if column is None or column.table is not table:
        return None
    total = np.zeros(len(rows), dtype=np.float64)
    for constraint, here, weight in zip(scores.constraints, column.per_node, scores.weights, strict=True):
        labelled = table.label(constraint.topology_key).codes[rows] >= 0
        more = here[rows].astype(np.float64) * weight + float(constraint.max_skew - 1)
        total = np.where(labelled, total + more, total)
    rounded = np.copysign(np.floor(np.abs(total) + 0.5), total).astype(np.int64)
    return np.where(column.ignored[rows], 0, rounded)


def normalized_by_columns(scores: SpreadScores, raw: IntColumn, rows: Rows) -> IntColumn | None:
    """The most crowded gets the least, ignored nodes nothing."""
    if scores.column is None:
        return None
    ignored = scores.column.ignored[rows]
    counted = raw[~ignored]
    highest, lowest = max(0, int(counted.max(initial=0))), int(counted.min()) if counted.size else 0
    if highest == 0:
        return np.where(ignored, 0, MAX_NODE_SCORE)
    return np.where(ignored, 0, MAX_NODE_SCORE * (highest + lowest - raw) // highest)
