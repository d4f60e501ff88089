"""Topology domains: which nodes share a zone, a block, a rack, and which of them a gang may and should use.

A domain is known by its values from the widest level down, so that racks of one name in two zones are two. A node without
a level's label belongs to no domain of that level. The scope of a gang is the level that it requires or prefers, the domain its
members are in already, and the domains that are tried, in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Protocol, runtime_checkable

import numpy as np

from extender.config.types import TopologyLevel
from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.planner.members import MemberClass
from extender.plugins.coscheduling.planner.request import Request, Topology
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn

NONE = -1  # of a node without the label
FEW = 8  # values of a label, of which each is tried though one node alone has it
KEPT_LEVELS = 16  # different lists of levels of which the domains are kept


def codes_of(snapshot: NodeInfoLister, key: str) -> tuple[IntColumn, Sequence[str]]:
    """(an index into the values, or NONE, for each node; the values)."""
    table = table_of(snapshot)
    if table is not None:
        column = table.label(key)
        return column.codes.astype(np.int64), column.values
    found = [node.labels.get(key) for node in snapshot.list()]
    values = sorted({value for value in found if value is not None})
    number: dict[str | None, int] = {value: i for i, value in enumerate(values)}
    return np.array([number.get(value, NONE) for value in found], dtype=np.int64), values


def label_of(node: NodeInfo, key: str) -> str | None:
    return node.labels.get(key)


def coarse_groups(snapshot: NodeInfoLister, keys: Iterable[str]) -> IntColumn:
    """A number for each combination of values of these labels. Values that one node alone has, as a host's, count as one: what members do
    elsewhere opens and closes all these nodes alike."""
    groups = np.zeros(len(snapshot.list()), dtype=np.int64)
    for key in sorted(keys):
        codes, values = codes_of(snapshot, key)
        alone, first = (
            1,
            2,
        )  # the numbers of such a value, and of the first of the others; 0 is for nodes without the label
        number = np.where(_shared(codes, len(values)), codes + first, np.where(codes == NONE, 0, alone))
        groups = np.unique(groups * (len(values) + first) + number, return_inverse=True)[1].astype(np.int64)
    return groups


def nodes_by_value(snapshot: NodeInfoLister, key: str) -> list[BoolColumn]:
    """The nodes of each value of a label, in the order of the values; where there are many, of those that several nodes have."""
    codes, values = codes_of(snapshot, key)
    here = range(len(values)) if len(values) <= FEW else np.unique(codes[_shared(codes, len(values))]).tolist()
    return [codes == code for code in sorted(here, key=lambda code: values[code])]


def _shared(codes: IntColumn, values: int) -> BoolColumn:
    """The nodes of which another node has the value as well."""
    numbers = np.bincount(codes + 1, minlength=values + 1)
    several: BoolColumn = (codes != NONE) & (numbers[codes + 1] > 1)
    return several


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

    def outer(self, level: int, wider: int) -> IntColumn:
        """For each domain of the level, the domain of a wider one that it is in, or NONE."""
        result = np.full(len(self.names[level]), NONE, dtype=np.int64)
        inside = self.ids[level] != NONE
        result[self.ids[level][inside]] = self.ids[wider][inside]
        return result

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
        """levels: those that are configured, which most gangs ask for."""
        self.levels = tuple(levels)
        # levels -> (node generation, number of nodes, domains)
        self._kept: dict[tuple[TopologyLevel, ...], tuple[int, int, Domains]] = {}

    def of(self, snapshot: NodeInfoLister, levels: tuple[TopologyLevel, ...] | None = None) -> Domains:
        """levels: None for those that are configured."""
        levels = self.levels if levels is None else levels
        if not isinstance(snapshot, _Labelled):
            return Domains(snapshot, levels)
        known, count = self._kept.get(levels), len(snapshot.list())
        if known is not None and known[:2] == (snapshot.node_generation, count):
            return known[2]
        domains = Domains(snapshot, levels)
        if len(self._kept) >= KEPT_LEVELS:  # owners of groups may name any label
            self._kept.clear()
        self._kept[levels] = (snapshot.node_generation, count, domains)
        return domains


class UnknownLevelError(Exception):
    """The group names a level that is not configured, or that is not inside of another. The text is for the group's owner.

    levels: those that there are; constant while the extender runs, as a refusal has to be."""

    def __init__(self, name: str, levels: Sequence[TopologyLevel], inside: str = "") -> None:
        known = ", ".join(level.name for level in levels)
        has = f"has the levels {known}" if len(levels) > 1 else f"has the level {known}" if levels else "has no levels"
        super().__init__(
            f'topology level "{name}" is not inside of "{inside}"'
            if inside
            else f'topology level "{name}" is not configured: the key `topology` {has}'
        )


def level_of(topology: Topology, name: str) -> int | None:
    """By a level's name or its label; None where nothing is asked for. Raises UnknownLevelError."""
    if not name:
        return None
    for index, level in enumerate(topology.levels):
        if name in (level.name, level.key):
            return index
    raise UnknownLevelError(name, topology.levels)


def _names(snapshot: NodeInfoLister) -> Sequence[str]:
    table = table_of(snapshot)
    return table.names if table is not None else [node.name for node in snapshot.list()]


class Scope:
    """required: the index of the level of which one domain has to hold all; None: any nodes will do."""

    def __init__(self, snapshot: NodeInfoLister, request: Request) -> None:
        topology = request.topology
        self.required = level_of(topology, request.topology.required)
        preferred = level_of(topology, request.topology.preferred)
        self.packing = topology.packing
        nodes = snapshot.list()
        self.node_names = _names(snapshot)
        self.domains = Domains(snapshot, topology.levels)
        narrowest = len(topology.levels) - 1
        self.start = max(
            narrowest if preferred is None else preferred, NONE if self.required is None else self.required
        )
        here = set(request.placed)
        self._placed = [i for i, name in enumerate(self.node_names) if name in here] if here else []
        self.everywhere = np.arange(len(nodes), dtype=np.int64)

    def requiring(self, level: int | None) -> Scope:
        """The same with another level required, narrower ones not tried."""
        other = copy(self)
        other.required = level
        other.start = level if level is not None else NONE
        return other

    def mask(self, at: IntColumn) -> BoolColumn:
        inside = np.zeros(len(self.everywhere), dtype=np.bool_)
        inside[at] = True
        return inside

    def may_go(self, members: MemberClass) -> BoolColumn | None:
        """The nodes that kube-scheduler named, without those that were tried and refused; None for all."""
        allowed, excluded = members.allowed, members.excluded
        if not members.restricted:
            return None
        return np.array(
            [(allowed is None or name in allowed) and name not in excluded for name in self.node_names], dtype=np.bool_
        )

    def required_domains(self) -> frozenset[int]:
        """Those that the gang may go to as a whole: all of the level, or the one that its members are in already."""
        if self.required is None:
            return frozenset()
        pinned = self.domains.with_nodes(self.required, self._placed)
        return pinned or frozenset(range(len(self.domains.names[self.required])))

    def levels_to_try(self) -> range:
        """From the narrowest to the widest."""
        return range(self.start, (self.required or 0) - 1, -1)

    def holding(self, level: int, capacities: Sequence[IntColumn], counts: Sequence[int]) -> Iterator[IntColumn]:
        """The nodes of each domain of the level that has room for every class by itself: where the gang is already, then
        the least room, then what is broken up already around it, then by name."""
        domains = self.domains
        room = np.zeros(len(domains.names[level]), dtype=np.int64)
        around = np.zeros_like(room)
        enough = np.ones(len(room), dtype=np.bool_)
        for capacity, count in zip(capacities, counts, strict=True):
            sums = domains.sums(level, capacity)
            enough &= sums >= count
            room += sums
            around += domains.parent_sums(level, capacity)
        enough &= self._within_required(level)
        here = np.ones_like(room)
        here[list(domains.with_nodes(level, self._placed))] = 0
        fitting = np.flatnonzero(enough)
        for i in np.lexsort((fitting, around[fitting], room[fitting], here[fitting])):
            yield domains.nodes_of(level, int(fitting[i]))

    def _within_required(self, level: int) -> BoolColumn:
        """By domain of the level: whether it is one that the gang may go to, or inside of one."""
        domains = self.domains
        if self.required is None:
            return np.ones(len(domains.names[level]), dtype=np.bool_)
        return np.isin(domains.outer(level, self.required), sorted(self.required_domains()))

    def widest(self) -> list[IntColumn]:
        """The nodes among which the gang has to stay: all, or those of each domain of the required level."""
        if self.required is None:
            return [self.everywhere]
        return [self.domains.nodes_of(self.required, domain) for domain in sorted(self.required_domains())]

    @property
    def level_below(self) -> int:
        """From which level on the inside of `widest` is divided."""
        return 0 if self.required is None else self.required + 1
