"""Where a gang may and should go: the level that it requires or prefers, the domain its members are in already, and the
domains that are tried, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy

import numpy as np

from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner.domains import Domains
from extender.plugins.coscheduling.planner.labels import NONE
from extender.plugins.coscheduling.planner.members import MemberClass
from extender.plugins.coscheduling.planner.request import Request, Topology
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn


class UnknownLevelError(Exception):
    """The group names a level that is not configured. `text` is for the group's owner."""

    def __init__(self, name: str) -> None:
        super().__init__(f'topology level "{name}" is not configured')


def level_of(topology: Topology, name: str) -> int | None:
    """By a level's name or its label; None where nothing is asked for. Raises UnknownLevelError."""
    if not name:
        return None
    for index, level in enumerate(topology.levels):
        if name in (level.name, level.key):
            return index
    raise UnknownLevelError(name)


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

    def may_go(self, members: MemberClass) -> BoolColumn:
        """The nodes that kube-scheduler named, without those that were tried and refused."""
        allowed, excluded = members.allowed, members.excluded
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
        outer = np.full(len(domains.names[level]), NONE, dtype=np.int64)
        inside = domains.ids[level] != NONE
        outer[domains.ids[level][inside]] = domains.ids[self.required][inside]
        return np.isin(outer, sorted(self.required_domains()))

    def widest(self) -> list[IntColumn]:
        """The nodes among which the gang has to stay: all, or those of each domain of the required level."""
        if self.required is None:
            return [self.everywhere]
        return [self.domains.nodes_of(self.required, domain) for domain in sorted(self.required_domains())]

    @property
    def level_below(self) -> int:
        """From which level on the inside of `widest` is divided."""
        return 0 if self.required is None else self.required + 1
