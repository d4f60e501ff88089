"""NodeResourcesBalancedAllocation's score for all nodes at once; the file beside it has the rule.

float64 in the same order of operations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from extender.api.quantity import MAX_INT64
from extender.framework.columnar import IntColumn, Mask, NodeTable, Rows
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.pod_requests import Amounts
from extender.framework.resource import is_scalar_resource_name
from extender.plugins.resource_allocation_columns import requested_of

Floats = NDArray[np.float64]


def balanced_scores(asked: Amounts, resources: Sequence[str], table: NodeTable, rows: Rows) -> IntColumn | None:
    parts: list[
        tuple[Mask, Floats, Floats]
    ] = []  # the node has the resource at all; how full with the pod, and without
    for name in resources:
        amount = asked.get(name, 0)
        if is_scalar_resource_name(name) and amount == 0:
            continue
        there, taken = table.allocatable(name)[rows], requested_of(table, name)[rows]
        if taken.size and taken.max() > MAX_INT64 - amount:
            return None
        has = there != 0
        parts.append((has, _fraction(taken + amount, there, has), _fraction(taken, there, has)))
    half = MAX_NODE_SCORE // 2
    difference = half + _balance([(has, full) for has, full, _ in parts], len(rows))
    difference -= _balance([(has, full) for has, _, full in parts], len(rows))
    return half + (difference / 2).astype(np.int64)


def _fraction(taken: IntColumn, there: IntColumn, has: Mask) -> Floats:
    return np.minimum(1.0, taken.astype(np.float64) / np.where(has, there, 1).astype(np.float64))


def _balance(parts: Sequence[tuple[Mask, Floats]], count: int) -> IntColumn:
    """Nodes that have the same of the resources are computed together."""
    if all(has.all() for has, _ in parts):
        return _scores(_spread([full for _, full in parts], count))
    which = np.zeros(count, dtype=np.int64)
    for bit, (has, _) in enumerate(parts):
        which |= has.astype(np.int64) << bit
    result = np.zeros(count, dtype=np.int64)
    for bits in np.unique(which).tolist():
        here = which == bits
        spread = _spread([full[here] for bit, (_, full) in enumerate(parts) if bits >> bit & 1], int(here.sum()))
        result[here] = _scores(spread)
    return result


def _scores(spread: Floats) -> IntColumn:
    return ((1 - spread) * float(MAX_NODE_SCORE)).astype(np.int64)


def _spread(fractions: Sequence[Floats], count: int) -> Floats:
    """The standard deviation."""
    if len(fractions) == 2:
        return np.abs((fractions[0] - fractions[1]) / 2)
    if len(fractions) < 2:
        return np.zeros(count)
    total = np.zeros(count)
    for fraction in fractions:
        total = total + fraction
    mean = total / float(len(fractions))
    variance = np.zeros(count)
    for fraction in fractions:
        variance = variance + (fraction - mean) * (fraction - mean)
    return np.sqrt(variance / float(len(fractions)))
