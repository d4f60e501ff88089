"""Topology domains: which nodes share a zone, a block, a rack, by the labels that the configuration names.

A domain is known by its values from the widest level down, so that racks of one name in two zones are two. A node without
a level's label belongs to no domain of that level.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from extender.config.types import TopologyLevel
from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.planner.members import node_labels
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn

NONE = -1  # the id of no domain


class Domains:
    """ids[level][node]: a small number for the domain, in the order of the domains' names, or NONE."""

    def __init__(self, nodes: Sequence[NodeInfo], levels: Sequence[TopologyLevel]) -> None:
        self.levels = tuple(levels)
        self.ids: list[IntColumn] = []
        self.names: list[list[str]] = []
        paths: list[tuple[str, ...]] = [()] * len(nodes)
        labels = [node_labels(node) for node in nodes]
        for level in levels:
            values = [of_node.get(level.key) for of_node in labels]
            paths = [(*path, value or "") for path, value in zip(paths, values, strict=True)]
            known = sorted({path for path, value in zip(paths, values, strict=True) if value is not None})
            number = {path: i for i, path in enumerate(known)}
            self.ids.append(
                np.array([NONE if v is None else number[p] for p, v in zip(paths, values, strict=True)], dtype=np.int64)
            )
            self.names.append(["/".join(value for value in path if value) for path in known])

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


def coarse_groups(nodes: Sequence[NodeInfo], keys: Iterable[str]) -> IntColumn:
    """A number for each combination of values of these labels that many nodes share; labels of single nodes are left out."""
    groups = np.zeros(len(nodes), dtype=np.int64)
    labels = [node_labels(node) for node in nodes]
    for key in sorted(keys):
        values = [of_node.get(key, "") for of_node in labels]
        number = {value: i for i, value in enumerate(dict.fromkeys(values))}
        if len(number) * 2 > len(nodes) and len(number) > 8:
            continue
        column = np.array([number[value] for value in values], dtype=np.int64)
        groups = groups * len(number) + column
        groups = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    return groups


def values_of(nodes: Sequence[NodeInfo], key: str) -> list[BoolColumn]:
    """The nodes of each value of a label that several nodes share, in the order of the values."""
    values = [node_labels(node).get(key) for node in nodes]
    known = sorted({value for value in values if value is not None})
    if len(known) * 2 > len(nodes) and len(known) > 8:
        return []
    return [np.array([value == one for value in values], dtype=np.bool_) for one in known]
