"""How full all nodes would be with the pod on them, as scores; resource_allocation.py has the rules.

NodeResourcesFit scores by it. In whole numbers, as there; where they might not fit int64 the answer is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from extender.config.plugin_args import ResourceSpec, ScoringStrategy, ScoringStrategyType
from extender.framework.columnar import IntColumn, NodeTable, Rows
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.pod_requests import Amounts
from extender.framework.resource import CPU, MEMORY, PODS, is_scalar_resource_name
from extender.plugins.resource_allocation import MAX_UTILIZATION, broken_linear

ColumnScorer = Callable[[Amounts, NodeTable, Rows], IntColumn | None]
Score = Callable[[IntColumn, IntColumn], IntColumn]
"""(taken, there, nowhere 0) -> score."""

LARGEST = 2**55  # times 100 still fits


def column_scorer_of(strategy: ScoringStrategy) -> ColumnScorer:
    resources = strategy.resources
    match strategy.type:
        case ScoringStrategyType.LEAST_ALLOCATED:
            return lambda asked, table, rows: _weighted(_least, resources, asked, table, rows)
        case ScoringStrategyType.MOST_ALLOCATED:
            return lambda asked, table, rows: _weighted(_most, resources, asked, table, rows)
        case ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            at = broken_linear(strategy.shape)
            shape = np.array([at(utilization) for utilization in range(MAX_UTILIZATION + 1)], dtype=np.int64)
            return lambda asked, table, rows: _by_shape(shape, resources, asked, table, rows)


def requested_of(table: NodeTable, name: str) -> IntColumn:
    """Go: Resource has no count of the pods that are there, so `pods` is never taken."""
    return np.zeros(len(table), dtype=np.int64) if name == PODS else table.requested(name)


def _amounts(
    resources: Sequence[ResourceSpec], asked: Amounts, table: NodeTable, rows: Rows
) -> list[tuple[int, IntColumn, IntColumn]] | None:
    """(weight, taken, there) of each resource that counts."""
    result = []
    for resource in resources:
        name, amount = resource.name, asked.get(resource.name, 0)
        if is_scalar_resource_name(name) and amount == 0:
            continue
        if not 0 <= amount < LARGEST:
            return None
        taken = table.non_zero_requested(name) if name in (CPU, MEMORY) else requested_of(table, name)
        there, taken = table.allocatable(name)[rows], taken[rows] + amount
        for column in (there, taken):
            if column.size and not (column.min() >= 0 and column.max() < LARGEST):
                return None
        result.append((resource.weight, taken, there))
    return result


def _weighted(
    score: Score, resources: Sequence[ResourceSpec], asked: Amounts, table: NodeTable, rows: Rows
) -> IntColumn | None:
    amounts = _amounts(resources, asked, table, rows)
    if amounts is None:
        return None
    total, weights = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for weight, taken, there in amounts:
        counts = there != 0
        total += np.where(counts, score(taken, np.where(counts, there, 1)) * weight, 0)
        weights += np.where(counts, weight, 0)
    return np.where(weights != 0, total // np.where(weights != 0, weights, 1), 0)


def _least(taken: IntColumn, there: IntColumn) -> IntColumn:
    return np.where(taken > there, 0, (there - taken) * MAX_NODE_SCORE // there)


def _most(taken: IntColumn, there: IntColumn) -> IntColumn:
    return np.minimum(taken, there) * MAX_NODE_SCORE // there


def _by_shape(
    shape: IntColumn, resources: Sequence[ResourceSpec], asked: Amounts, table: NodeTable, rows: Rows
) -> IntColumn | None:
    amounts = _amounts(resources, asked, table, rows)
    if amounts is None:
        return None
    total, weights = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for weight, taken, there in amounts:
        utilization = np.minimum(taken, there) * MAX_UTILIZATION // np.where(there != 0, there, 1)
        score = np.where(there != 0, shape[utilization], 0)
        total += np.where(score > 0, score * weight, 0)
        weights += np.where(score > 0, weight, 0)
    ratio = total / np.where(weights != 0, weights, 1)
    return np.where(weights != 0, (ratio + 0.5).astype(np.int64), 0)
