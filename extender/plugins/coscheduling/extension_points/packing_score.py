"""How well each node suits a pod that comes singly, so that free domains stay whole for gangs: arithmetic on columns.

A node whose use would break up the least comes first: one that is in use already, then a free one of a rack in use, then one
of a free rack of a block in use, and so on outwards; among equals the fullest, its domains counted too. An extra member of
a gang goes beside its siblings first. SinglePods gathers what is asked here.
No counterpart upstream; it is what allocators of memory call a buddy system.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from extender.config.types import Packing
from extender.framework.columnar import Rows, table_of
from extender.framework.interface import MAX_NODE_SCORE
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner.domains import NONE, Domains
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn

FREE = 0.1
"""A node with at most this share in use counts as free: agents that run on every node break nothing up."""

Shares: TypeAlias = NDArray[np.float64]
Amounts: TypeAlias = tuple[Shares, Shares]
"""(in use, allocatable) of one resource, one entry a node."""


@dataclass(frozen=True)
class Usage:
    """What is in use of the resources that count."""

    amounts: Sequence[Amounts]

    @classmethod
    def of(cls, snapshot: NodeInfoLister, resources: Iterable[str]) -> Usage:
        return cls(tuple(_amounts(snapshot, name) for name in sorted(set(resources))))

    def by_node(self) -> Shares:
        """Of that resource of which most is in use. A node without any of a resource has nothing of it in use."""
        return self._most((used, there) for used, there in self.amounts)

    def by_domain(self, domains: Domains, level: int) -> Shares:
        ids = domains.ids[level]
        inside, count = ids != NONE, len(domains.names[level])

        def sums(column: Shares) -> Shares:
            return np.bincount(ids[inside], column[inside], count).astype(np.float64)

        return self._most((sums(used), sums(there)) for used, there in self.amounts)

    def _most(self, amounts: Iterable[Amounts]) -> Shares:
        shares = [np.where(there > 0, used / np.maximum(there, 1.0), 0.0) for used, there in amounts]
        result: Shares = np.clip(np.max(shares, axis=0), 0.0, 1.0)
        return result


def _amounts(snapshot: NodeInfoLister, name: str) -> Amounts:
    table = table_of(snapshot)
    if table is not None:
        return table.requested(name).astype(np.float64), table.allocatable(name).astype(np.float64)
    nodes = snapshot.list()
    used = np.array([node.requested.amount(name) for node in nodes], dtype=np.float64)
    return used, np.array([node.allocatable.amount(name) for node in nodes], dtype=np.float64)


def breaks(domains: Domains, shares: Shares) -> IntColumn:
    """For each node: how many free things a pod there would break up, from the node itself outwards to the widest level."""
    free: BoolColumn = shares <= FREE
    result = free.astype(np.int64)
    for level in range(len(domains.levels) - 1, -1, -1):
        ids = domains.ids[level]
        in_use = np.zeros(len(domains.names[level]) + 1, dtype=np.bool_)
        in_use[ids[~free & (ids != NONE)]] = True
        in_use[-1] = True  # of nodes in no domain: NONE is the last
        free = free & ~in_use[ids]
        result += free
    return result


def fullness(domains: Domains, usage: Usage, shares: Shares) -> Shares:
    """In 0..1: the node's share in use and those of its domains, each level counting half of the one inside of it."""
    total, weights, weight = shares.copy(), 1.0, 1.0
    for level in range(len(domains.levels) - 1, -1, -1):
        weight /= 2
        by_domain = np.append(usage.by_domain(domains, level), 0.0)
        total += weight * by_domain[domains.ids[level]]
        weights += weight
    return total / weights


def nearness(domains: Domains, siblings: Mapping[int, int]) -> IntColumn:
    """For each node: of how many levels it shares its domain with a sibling. siblings: how many are on which node."""
    result = np.zeros(len(domains.ids[0]) if domains.ids else 0, dtype=np.int64)
    at = np.array(sorted(siblings), dtype=np.int64)
    for ids in domains.ids:
        here = ids[at]
        result += np.isin(ids, here[here != NONE])
    return result


@dataclass(frozen=True)
class Wishes:
    """siblings: how many of the pod's gang are on which node; empty for a pod of no gang."""

    packing: Packing = Packing.FEWEST_NODES
    siblings: Mapping[int, int] | None = None


def scores(domains: Domains, usage: Usage, wishes: Wishes, rows: Rows) -> IntColumn:
    """In 0..100 for each of the rows."""
    shares = usage.by_node()
    steps = len(domains.levels) + 2
    rank = steps - 1 - breaks(domains, shares)
    if wishes.siblings:
        beside = np.zeros(len(shares), dtype=np.int64)
        for at, count in wishes.siblings.items():
            beside[at] = count
        if wishes.packing is Packing.MOST_EVEN:
            rank = int(beside.max()) - beside
        else:
            rank = rank + steps * (beside > 0)
        if domains.levels:
            rank = rank + (int(rank.max()) + 1) * nearness(domains, wishes.siblings)
    return banded(rank[rows], fullness(domains, usage, shares)[rows])


def banded(rank: IntColumn, within: Shares) -> IntColumn:
    """A band of 0..100 for each rank that there is, the higher the better; inside of it by the second number.

    So the differences that matter stay, however few of the possible ones there are."""
    if not len(rank):
        return rank
    ranks, band = np.unique(rank, return_inverse=True)
    low, high = np.full(len(ranks), np.inf), np.full(len(ranks), -np.inf)
    np.minimum.at(low, band, within)
    np.maximum.at(high, band, within)
    spread = (high - low)[band]
    inside = np.where(spread > 0, (within - low[band]) / np.where(spread > 0, spread, 1.0), 1.0)
    return ((band + 0.9 * inside + 0.1) / len(ranks) * MAX_NODE_SCORE).astype(np.int64)
