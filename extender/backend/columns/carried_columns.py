"""Columns that are computed on first use and carried from snapshot to snapshot while only some rows change, come or go.

The table of a snapshot keeps each of its kinds of column in one. No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from extender.framework.columnar import IntColumn
from extender.framework.node_info import NodeInfo

REBUILD_COLUMNS_SHARE = 4  # built anew where more than 1/4 of the rows have changed since the last ones


class Updatable(Protocol):
    """Frozen; computed of nodes."""

    def updated(self, nodes: Sequence[NodeInfo], rows: Sequence[int]) -> Self:
        """For the same nodes in the same order, of which those at `rows`, in ascending order, differ."""
        ...

    def taken(self, order: IntColumn) -> Self:
        """These rows in this order. -1: one that `updated` is told of, next; whatever it has until then."""
        ...


C = TypeVar("C", bound=Updatable)


class CarriedColumns(Generic[C]):
    """Columns of one kind. Two threads that ask for them first at the same time compute the same."""

    __slots__ = ("_base", "_build", "_stale", "_value")

    def __init__(
        self, build: Callable[[Sequence[NodeInfo]], C], base: C | None = None, stale: frozenset[int] = frozenset()
    ) -> None:
        self._build = build
        self._value: C | None = None
        self._base = base
        self._stale = stale

    def get(self, nodes: Sequence[NodeInfo]) -> C:
        value, base = self._value, self._base
        if value is None:
            if base is None:
                value = self._build(nodes)
            else:
                value = base.updated(nodes, sorted(self._stale)) if self._stale else base
            self._value = value
            self._base = None
        return value

    def next(self, rows: frozenset[int], count: int) -> CarriedColumns[C]:
        """For a snapshot of as many nodes, in which these rows differ."""
        base, stale = self._base, self._stale | rows
        value = self._value  # read after the base: another thread may be computing it just now
        if value is not None:
            base, stale = value, rows
        if base is None or len(stale) * REBUILD_COLUMNS_SHARE > count:
            return CarriedColumns(self._build)
        return CarriedColumns(self._build, base, stale)

    def reordered(self, order: IntColumn) -> CarriedColumns[C]:
        """For a snapshot whose rows were these before; -1 for one that was not there, or differs."""
        base, stale = self._base, self._stale
        value = self._value
        if value is not None:
            base, stale = value, frozenset()
        fresh = frozenset(np.flatnonzero((order < 0) | np.isin(order, list(stale))).tolist())
        if base is None or len(fresh) * REBUILD_COLUMNS_SHARE > len(order):
            return CarriedColumns(self._build)
        return CarriedColumns(self._build, base.taken(order), fresh)
