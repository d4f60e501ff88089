"""Topology domains: which nodes share a zone, a block, a rack, by the labels that the configuration names.

A domain is known by its values from the widest level down, so that racks of one name in two zones are two. A node without
a level's label belongs to no domain of that level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from extender.config.types import TopologyLevel
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner.labels import NONE, codes_of
from extender.plugins.coscheduling.planner.room import IntColumn


class Domains:
    """ids[level][node]: a small number for the domain, in the order of the domains' names, or NONE."""

    def __init__(self, snapshot: NodeInfoLister, levels: Sequence[TopologyLevel]) -> None:
        self.levels = tuple(levels)
        self.ids: list[IntColumn] = []
        self.names: list[list[str]] = []
        outer = np.zeros(len(snapshot.list()), dtype=np.int64)  # which path of values each node has so far
        paths: list[tuple[str, ...]] = [()]
        for level in levels:
            codes, values = codes_of(snapshot, level.key)
            pairs, outer = np.unique(outer * (len(values) + 1) + codes + 1, return_inverse=True)
            inner = pairs % (len(values) + 1) - 1
            paths = [
                (*paths[path], values[code] if code != NONE else "")
                for path, code in zip((pairs // (len(values) + 1)).tolist(), inner.tolist(), strict=True)
            ]
            known = sorted((path, i) for i, path in enumerate(paths) if inner[i] != NONE)
            number = np.full(len(paths), NONE, dtype=np.int64)
            number[[i for _, i in known]] = np.arange(len(known))
            self.ids.append(number[outer])
            self.names.append(["/".join(value for value in path if value) for path, _ in known])

    def sums(self, level: int, amounts: IntColumn, among: IntColumn | None = None) -> IntColumn:
        """By domain of the level; nodes without one count nowhere. among: indices of nodes."""
        ids = self.ids[level] if among is None else self.ids[level][among]
        amounts = amounts if among is None else amounts[among]
        inside = ids != NONE
        sums = np.zeros(len(self.names[level]), dtype=np.int64)
        np.add.at(sums, ids[inside], amounts[inside])
        return sums

    def name_of(self, level: int, at: IntColumn) -> str:
        """Of the domain of the level that these nodes are in."""
        return self.names[level][int(self.ids[level][at[0]])]

    def nodes_of(self, level: int, domain: int) -> IntColumn:
        return np.flatnonzero(self.ids[level] == domain)

    def with_nodes(self, level: int, at: Iterable[int]) -> frozenset[int]:
        """The domains that some nodes are in."""
        return frozenset(int(self.ids[level][i]) for i in at) - {NONE}

    def parent_sums(self, level: int, amounts: IntColumn) -> IntColumn:
        """For each domain of the level, the sum of the next wider domain that it is in."""
        if level == 0:
            return np.full(len(self.names[0]), int(amounts.sum()), dtype=np.int64)
        sums = self.sums(level - 1, amounts)
        result = np.zeros(len(self.names[level]), dtype=np.int64)
        both = (self.ids[level] != NONE) & (self.ids[level - 1] != NONE)
        result[self.ids[level][both]] = sums[self.ids[level - 1][both]]
        return result

    def narrowest_with(self, at: Sequence[int]) -> str:
        """The name of the narrowest domain that holds all these nodes; empty if there is none."""
        for level in range(len(self.levels) - 1, -1, -1):
            ids = {int(self.ids[level][i]) for i in at}
            if len(ids) == 1 and NONE not in ids:
                return self.names[level][ids.pop()]
        return ""


@runtime_checkable
class _Labelled(Protocol):
    """A snapshot that knows when which nodes there are, or a label of one, last changed."""

    node_generation: int


class DomainCache:
    """The domains by the labels that were seen last. Not locked: a thread that comes late computes them once more."""

    def __init__(self, levels: Sequence[TopologyLevel]) -> None:
        self.levels = tuple(levels)
        self._kept: tuple[int, int, Domains] | None = None  # (node generation, number of nodes, domains)

    def of(self, snapshot: NodeInfoLister) -> Domains:
        if not isinstance(snapshot, _Labelled):
            return Domains(snapshot, self.levels)
        known, count = self._kept, len(snapshot.list())
        if known is not None and known[:2] == (snapshot.node_generation, count):
            return known[2]
        domains = Domains(snapshot, self.levels)
        self._kept = (snapshot.node_generation, count, domains)
        return domains
