"""InterPodAffinity for all nodes at once: the same counts and sums, from pods by class and labels by value.

The plugin's PreFilter and PreScore build by it where the snapshot has columns; topology_counts.py, scoring.py and
plugin.py have the rules. AddPod and RemovePod change the counts, and then the exact rule is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from extender.framework.columnar import AffinityClass, IntColumn, Mask, NodeTable, PodClass
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.pod_info import AffinityTerm
from extender.plugins.inter_pod_affinity.scoring import AffinityScores, ScoreColumn
from extender.plugins.inter_pod_affinity.topology_counts import (
    ByKey,
    Counts,
    TopologyColumns,
    TopologyCounts,
    matches_all,
)

_encode = msgspec.msgpack.Encoder().encode


def count_by_columns(counts: TopologyCounts, table: NodeTable, among: Mask | None) -> None:
    """Fills empty counts. among: the nodes whose pods count for the incoming pod's own terms; None for all."""
    existing_anti = _sums(table, _existing_anti(counts, table))
    affinity: dict[str, IntColumn] = {}
    anti: dict[str, IntColumn] = {}
    if counts.affinity_terms:
        met = _pods_that_meet(table, counts.affinity_terms, among)
        for term in counts.affinity_terms:
            _add(affinity, term.topology_key, met)
    for term in counts.anti_terms:
        _add(anti, term.topology_key, _pods_that_meet(table, (term,), among))
    columns = TopologyColumns(table, existing_anti, _sums(table, affinity), _sums(table, anti))
    counts.existing_anti = _pairs(table, columns.existing_anti)
    counts.affinity = _pairs(table, columns.affinity)
    counts.anti = _pairs(table, columns.anti)
    counts.columns = columns


def _add(per_node: dict[str, IntColumn], key: str, more: IntColumn) -> None:
    per_node[key] = per_node[key] + more if key in per_node else more


def _sums(table: NodeTable, per_node: Mapping[str, IntColumn]) -> ByKey:
    sums = {key: table.label(key).sums(amounts) for key, amounts in per_node.items()}
    return {key: amounts for key, amounts in sums.items() if amounts.any()}


def _pairs(table: NodeTable, by_key: ByKey) -> Counts:
    return {
        (key, table.label(key).values[at]): amount
        for key, amounts in by_key.items()
        for at, amount in enumerate(amounts.tolist())
        if amount
    }


def _pods_that_meet(table: NodeTable, terms: Sequence[AffinityTerm], among: Mask | None) -> IntColumn:
    """Pods per node that every one of the incoming pod's terms meets; their namespaces are merged already."""
    namespaces: frozenset[str] | None = None
    for term in terms:
        if term.namespace_selector is None or not term.namespace_selector.matches({}):
            namespaces = term.namespaces if namespaces is None else namespaces & term.namespaces
    key = _encode([(sorted(term.namespaces), term.selector, term.namespace_selector) for term in terms])

    def meets(kind: PodClass) -> bool:
        return matches_all(terms, kind.pod)

    per_node = table.pods().matching(("terms", key), meets, namespaces)
    return per_node if among is None else np.where(among, per_node, 0)


def _existing_anti(counts: TopologyCounts, table: NodeTable) -> dict[str, IntColumn]:
    """Per node: the required anti terms of its pods that meet the incoming pod."""
    weights: dict[str, dict[int, int]] = {}
    for number, kind in table.affinity().of_namespace(counts.pod.namespace):
        for term in kind.required_anti:
            if term.matches(counts.pod, counts.namespace_labels):
                of_key = weights.setdefault(term.topology_key, {})
                of_key[number] = of_key.get(number, 0) + 1
    return {key: table.affinity().per_node(of_key) for key, of_key in weights.items()}


def judge_by_columns(counts: TopologyCounts, table: NodeTable) -> IntColumn | None:
    """0 passes, 1 affinity, 2 anti-affinity, 3 existing anti-affinity; None where the counts have changed since."""
    columns = counts.columns
    if columns is None or columns.table is not table:
        return None
    codes = np.zeros(len(table), dtype=np.int64)
    for key in columns.existing_anti:
        codes[_met(table, key, columns.existing_anti)] = 3
    for key in {term.topology_key for term in counts.anti_terms}:
        codes[_met(table, key, columns.anti)] = 2
    missing, unmatched = np.zeros(len(table), dtype=np.bool_), np.zeros(len(table), dtype=np.bool_)
    for key in {term.topology_key for term in counts.affinity_terms}:
        missing |= table.label(key).codes < 0
        unmatched |= ~_met(table, key, columns.affinity)
    if counts.affinity or not matches_all(counts.affinity_terms, counts.pod):
        missing |= unmatched
    codes[missing] = 1
    return codes


def _met(table: NodeTable, key: str, by_key: ByKey) -> Mask:
    """Nodes in a domain that has some."""
    amounts = by_key.get(key)
    return np.zeros(len(table), dtype=np.bool_) if amounts is None else table.label(key).of_nodes(amounts > 0, False)


def score_by_columns(scores: AffinityScores, table: NodeTable) -> None:
    """Fills empty scores: by topology key and value, and for each node."""
    per_node: dict[str, IntColumn] = {}
    touched: dict[str, Mask] = {}
    for terms, sign in ((scores.preferred, 1), (scores.preferred_anti, -1)):
        for weighted in terms:
            met = _pods_that_meet(table, (weighted.term,), None)
            _add(per_node, weighted.term.topology_key, met * (sign * weighted.weight))
            _touch(touched, weighted.term.topology_key, met)
    for key, of_key in _weights_of_existing(scores, table).items():
        _add(per_node, key, table.affinity().per_node(of_key))
        _touch(touched, key, table.affinity().per_node(dict.fromkeys(of_key, 1)))
    total = np.zeros(len(table), dtype=np.int64)
    for key, amounts in per_node.items():
        column = table.label(key)
        if not (touched[key] & (column.codes >= 0)).any():
            continue
        sums = column.sums(amounts)
        scores.scores[key] = {column.values[at]: amount for at, amount in enumerate(sums.tolist()) if amount}
        total += column.of_nodes(sums, 0)
    scores.column = ScoreColumn(table, total)


def _touch(touched: dict[str, Mask], key: str, met: IntColumn) -> None:
    touched[key] = touched[key] | (met > 0) if key in touched else met > 0


def _weights_of_existing(scores: AffinityScores, table: NodeTable) -> dict[str, dict[int, int]]:
    """Topology key -> class -> what one pod of the class adds where it runs."""
    weights: dict[str, dict[int, int]] = {}
    for number, kind in table.affinity().of_namespace(scores.pod.namespace):
        for term, weight in _terms(kind, scores.hard_weight):
            if term.matches(scores.pod, scores.namespace_labels):
                of_key = weights.setdefault(term.topology_key, {})
                of_key[number] = of_key.get(number, 0) + weight
    return weights


def _terms(kind: AffinityClass, hard_weight: int) -> list[tuple[AffinityTerm, int]]:
    return [
        *((term, hard_weight) for term in (kind.required if hard_weight > 0 else ())),
        *((weighted.term, weighted.weight) for weighted in kind.preferred),
        *((weighted.term, -weighted.weight) for weighted in kind.preferred_anti),
    ]


def stretched(scores: IntColumn) -> IntColumn:
    """The lowest is 0, the highest 100."""
    lowest, highest = (int(scores.min()), int(scores.max())) if scores.size else (0, 0)
    if highest <= lowest:
        return np.zeros(len(scores), dtype=np.int64)
    share = (scores - lowest).astype(np.float64) / float(highest - lowest)
    return (float(MAX_NODE_SCORE) * share).astype(np.int64)
