"""How full all nodes would be with the pod on them, as scores; resource_allocation.py has the rules.

NodeResourcesFit scores by it. In whole numbers, as there; where they might not fit int64 the answer is None.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.config.plugin_args import ResourceSpec, ScoringStrategy, ScoringStrategyType
from extender.framework.columnar import IntColumn, Mask, NodeTable, Rows
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.pod_requests import Amounts
from extender.framework.resource import CPU, MEMORY, PODS, is_scalar_resource_name
from extender.plugins.resource_allocation import MAX_UTILIZATION, broken_linear

ColumnScorer = Callable[[Amounts, NodeTable, Rows], IntColumn | None]

LARGEST = 2**55  # times 100 still fits


@dataclass(frozen=True, slots=True)
class _Strategy:
    """score: (taken, there, nowhere 0) of one resource -> 0..100. counts: (score, there) -> whether it does, by node.

    mean: (sum of score times weight, sum of the weights, nowhere 0), of the resources that count.
    """

    score: Callable[[IntColumn, IntColumn], IntColumn]
    counts: Callable[[IntColumn, IntColumn], Mask]
    mean: Callable[[IntColumn, IntColumn], IntColumn]


def column_scorer_of(strategy: ScoringStrategy) -> ColumnScorer:
    resources, columns = strategy.resources, _columns_of(strategy)
    return lambda asked, table, rows: _scores(columns, resources, asked, table, rows)


def _columns_of(strategy: ScoringStrategy) -> _Strategy:
    match strategy.type:
        case ScoringStrategyType.LEAST_ALLOCATED:
            return _Strategy(_least, _is_there, _rounded_down)
        case ScoringStrategyType.MOST_ALLOCATED:
            return _Strategy(_most, _is_there, _rounded_down)
        case ScoringStrategyType.REQUESTED_TO_CAPACITY_RATIO:
            at = broken_linear(strategy.shape)
            shape = np.array([at(utilization) for utilization in range(MAX_UTILIZATION + 1)], dtype=np.int64)
            return _Strategy(lambda taken, there: _by_shape(shape, taken, there), _scores_something, _rounded)


def _least(taken: IntColumn, there: IntColumn) -> IntColumn:
    return np.where(taken > there, 0, (there - taken) * MAX_NODE_SCORE // there)


def _most(taken: IntColumn, there: IntColumn) -> IntColumn:
    return np.minimum(taken, there) * MAX_NODE_SCORE // there


def _by_shape(shape: IntColumn, taken: IntColumn, there: IntColumn) -> IntColumn:
    """shape: the score by utilization in percent."""
    return shape[np.minimum(taken, there) * MAX_UTILIZATION // there]


def _is_there(score: IntColumn, there: IntColumn) -> Mask:
    return there.astype(np.bool_)


def _scores_something(score: IntColumn, there: IntColumn) -> Mask:
    return score > 0


def _rounded_down(total: IntColumn, weights: IntColumn) -> IntColumn:
    return total // weights


def _rounded(total: IntColumn, weights: IntColumn) -> IntColumn:
    return (total / weights + 0.5).astype(np.int64)


def _scores(
    strategy: _Strategy, resources: Sequence[ResourceSpec], asked: Amounts, table: NodeTable, rows: Rows
) -> IntColumn | None:
    amounts = _amounts(resources, asked, table, rows)
    if amounts is None:
        return None
    total, weights = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for weight, taken, there in amounts:
        score = np.where(there != 0, strategy.score(taken, np.where(there != 0, there, 1)), 0)
        counts = strategy.counts(score, there)
        total += np.where(counts, score * weight, 0)
        weights += np.where(counts, weight, 0)
    return np.where(weights != 0, strategy.mean(total, np.where(weights != 0, weights, 1)), 0)


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
