"""Node selectors and taints against all nodes at once; node_selector.py and the plugins have the rules, node by node.

NodeAffinity, TaintToleration and PodTopologySpread ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from extender.api import corev1
from extender.api.corev1.toleration import NO_EXECUTE, NO_SCHEDULE
from extender.framework.columnar import LabelColumn, Mask, NodeTable
from extender.framework.node_selector import METADATA_NAME, requirement_matches
from extender.framework.selector_errors import expression_is_readable


def _nowhere(table: NodeTable) -> Mask:
    return np.zeros(len(table), dtype=np.bool_)


def _everywhere(table: NodeTable) -> Mask:
    return np.ones(len(table), dtype=np.bool_)


def _one_of(column: LabelColumn, values: Iterable[str]) -> Mask:
    """Nodes whose label has one of the values."""
    wanted = [column.index[value] for value in values if value in column.index]
    hit = np.zeros(len(column.values) + 1, dtype=np.bool_)
    hit[wanted] = True
    return hit[column.codes]


def requirement_nodes(table: NodeTable, requirement: corev1.NodeSelectorRequirement) -> Mask:
    """One requirement on labels; one that cannot be read matches nothing."""
    if not expression_is_readable(requirement):
        return _nowhere(table)
    column = table.label(requirement.key)
    match requirement.operator:
        case "In":
            return _one_of(column, requirement.values)
        case "NotIn":
            return ~_one_of(column, requirement.values)
        case "Exists":
            return column.codes >= 0
        case "DoesNotExist":
            return column.codes < 0
    hit = [requirement_matches(requirement, {requirement.key: value}) for value in column.values]
    return np.array([*hit, requirement_matches(requirement, {})], dtype=np.bool_)[column.codes]


def field_nodes(table: NodeTable, requirement: corev1.NodeSelectorRequirement) -> Mask:
    """metadata.name, In and NotIn with one value."""
    if len(requirement.values) != 1 or requirement.operator not in ("In", "NotIn"):
        return _nowhere(table)
    found = requirement.operator == "In"
    if requirement.key != METADATA_NAME:  # a field without a value
        return _everywhere(table) if found == (requirement.values[0] == "") else _nowhere(table)
    mask = _nowhere(table) if found else _everywhere(table)
    row = table.position(requirement.values[0])
    if row is not None:
        mask[row] = found
    return mask


def term_nodes(table: NodeTable, term: corev1.NodeSelectorTerm) -> Mask:
    """All expressions and fields; an empty term matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return _nowhere(table)
    mask = _everywhere(table)
    for requirement in term.match_expressions:
        mask &= requirement_nodes(table, requirement)
    for requirement in term.match_fields:
        mask &= field_nodes(table, requirement)
    return mask


def selector_nodes(table: NodeTable, terms: Iterable[corev1.NodeSelectorTerm]) -> Mask:
    """Any of the terms."""
    mask = _nowhere(table)
    for term in terms:
        mask |= term_nodes(table, term)
    return mask


def _labelled(table: NodeTable, wanted: Mapping[str, str]) -> Mask:
    mask = _everywhere(table)
    for key, value in wanted.items():
        mask &= _one_of(table.label(key), (value,))
    return mask


def required_node_affinity_nodes(table: NodeTable, pod: corev1.Pod) -> Mask | None:
    """nodeSelector and required node affinity; None where the pod asks for nothing."""
    mask = _labelled(table, pod.spec.node_selector) if pod.spec.node_selector else None
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return mask
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    if required is None:
        return mask
    found = selector_nodes(table, required.node_selector_terms)
    return found if mask is None else mask & found


def repelled_nodes(table: NodeTable, pod: corev1.Pod) -> Mask:
    """Those with a taint, NoSchedule or NoExecute, that the pod does not tolerate."""

    def repels(taints: Sequence[corev1.Taint]) -> bool:
        return any(
            taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in pod.spec.tolerations)
            for taint in taints
        )

    return table.taints().nodes_where(repels)
