"""How many members find room in whole slices, by counting alone: of a gang that is all alike and is in one set of slices, all of them full.

The search for victims asks it in place of a plan. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner.domains import NONE, Domains, UnknownLevelError, level_of
from extender.plugins.coscheduling.planner.request import Request, Sliced
from extender.plugins.coscheduling.planner.room import IntColumn


class SliceCount:
    """levels: (a level, members of a slice), from wide to narrow."""

    def __init__(self, domains: Domains, levels: Sequence[tuple[int, int]]) -> None:
        self._domains = domains
        self._levels = levels

    @classmethod
    def of(cls, request: Request, snapshot: NodeInfoLister) -> SliceCount | None:
        """None for a gang without slices. request: one that `applies` is true of."""
        levels = _levels(request)
        return cls(Domains(snapshot, request.topology.levels), levels) if levels else None

    @staticmethod
    def applies(request: Request) -> bool:
        """Whether counting says all of it: of a gang without slices, too. All members are in one set of full slices, none has a place."""
        asked = [each for each in request.sliced if each.sizes]
        if not asked:
            return True
        if len(asked) > 1 or request.placed or asked[0].placed or request.needed < len(request.members):
            return False
        uids = {info.pod.metadata.uid for info in request.members}
        coming = {info.pod.metadata.uid for _, info in request.promised}
        levels = _levels(request)
        if uids != asked[0].uids or not coming.isdisjoint(uids) or not levels or not _in_runs(asked[0]):
            return False
        sizes = [len(uids), *(size for _, size in levels)]
        return all(wider % size == 0 for wider, size in pairwise(sizes))

    def members(self, holds: IntColumn) -> int:
        """Of those for which there is room on each node, how many whole slices of the widest level hold."""
        (_, largest), (level, size) = self._levels[0], self._levels[-1]
        slices = self._domains.sums(level, holds) // size
        for (inner, inside), (wider, members) in pairwise(reversed(self._levels)):
            outer = self._domains.outer(inner, wider)
            sums = np.zeros(len(self._domains.names[wider]), dtype=np.int64)
            np.add.at(sums, outer[outer != NONE], slices[outer != NONE])
            slices = sums // (members // inside)
        return int(slices.sum()) * largest


def _levels(request: Request) -> list[tuple[int, int]]:
    """Empty where there are no slices, or one is of a level that is not configured."""
    sliced = next((each for each in request.sliced if each.sizes), None)
    if sliced is None:
        return []
    try:
        found = [(level_of(request.topology, name), size or len(sliced.uids)) for name, size in sliced.sizes]
    except UnknownLevelError:
        return []
    known = [(level, size) for level, size in found if level is not None]
    in_order = all(wide < narrow for (wide, _), (narrow, _) in pairwise(known))
    return known if len(known) == len(found) and in_order else []


def _in_runs(sliced: Sliced) -> bool:
    """Whether the slices by rank are full: no rank is missing among those of the members, or there are no ranks."""
    ranks = sorted(sliced.ranks.values())
    return ranks in ([], list(range(len(sliced.uids))))
