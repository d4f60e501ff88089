"""The slices of a request: which members have to be in one domain of a level together, and the narrower slices inside of them.

With ranks a slice is a run of ranks, whichever of its members there are. Without, members are interchangeable: those without a place
first complete the slices of those that have one, the fullest first, and the rest makes new ones.
Kueue: pkg/cache/scheduler/tas_flavor_snapshot.go (slices); it knows one level of them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from extender.plugins.coscheduling.planner.domains import NONE, Scope, UnknownLevelError, level_of
from extender.plugins.coscheduling.planner.request import Request, Sliced, Topology

Row = int
"""A node's row in the snapshot."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Members (UIDs, without a place) that have to be in one domain of a level. inside: the narrower parts that they are in there.

    size: of a whole slice, 0 for all that there are. pinned: the domains that its other members are in; empty: any will do.
    """

    level: int
    uids: tuple[str, ...]
    size: int
    name: str
    pinned: frozenset[int] = frozenset()
    inside: tuple[Part, ...] = ()
    balanced: bool = False

    def leaves(self) -> Iterator[Part]:
        """The narrowest ones, in order."""
        if not self.inside:
            yield self
        for part in self.inside:
            yield from part.leaves()


Reach = Callable[[str], tuple[int, ...]]
"""The narrowest domains that a member (by UID) may go to."""


CHOICES = 9  # of members without ranks for slices


def choices_of(request: Request, scope: Scope, reach: Reach) -> list[list[Part]]:
    """The parts of the request's members, in each way that is worth a try: several where members without ranks may not all go to the
    same domains. Raises UnknownLevelError."""
    asked = [sliced for sliced in request.sliced if sliced.sizes]
    here = {info.pod.metadata.uid for info in request.members} if asked else frozenset[str]()
    loose = {reach(uid) for sliced in asked if not sliced.ranks for uid in sliced.uids & here}
    return [_parts_of(request, asked, scope, reach, number) for number in range(min(CHOICES, max(1, len(loose))))]


def _parts_of(request: Request, asked: Sequence[Sliced], scope: Scope, reach: Reach, choice: int) -> list[Part]:
    if not asked:
        return []
    rows = {name: row for row, name in enumerate(scope.node_names)}
    coming = {info.pod.metadata.uid: node for node, info in request.promised}
    parts: list[Part] = []
    for sliced in asked:
        uids = [info.pod.metadata.uid for info in request.members if info.pod.metadata.uid in sliced.uids]
        placed = [*sliced.placed, *((uid, coming[uid]) for uid in sorted(sliced.uids & coming.keys()))]
        known = [(uid, rows[node]) for uid, node in placed if node in rows]
        parts += _Slicing(request.topology, scope, sliced, reach, choice).parts(uids, known)
    return parts


class _Slicing:
    """choice: which of the members that may not go everywhere are left over for the slice that is not full."""

    def __init__(self, topology: Topology, scope: Scope, sliced: Sliced, reach: Reach, choice: int) -> None:
        self._domains = scope.domains
        self._sliced = sliced
        self._levels = _levels(topology, sliced)
        self._reach = reach
        self._choice = choice

    def parts(self, uids: Sequence[str], placed: Sequence[tuple[str, Row]]) -> list[Part]:
        if self._sliced.ranks:
            return self._ranked(0, sorted(uids, key=self._rank), placed)
        return self._unranked(0, uids, [row for _, row in placed])

    def _rank(self, uid: str) -> int:
        return self._sliced.ranks.get(uid, 0)

    def _ranked(self, depth: int, uids: Sequence[str], placed: Sequence[tuple[str, Row]]) -> list[Part]:
        """uids: by rank."""
        if depth == len(self._levels):
            return []
        level, size = self._levels[depth]
        there: dict[int, list[tuple[str, Row]]] = {}
        for uid, row in placed:
            there.setdefault(self._number(uid, size), []).append((uid, row))
        parts = []
        for number, members in groupby(uids, key=lambda uid: self._number(uid, size)):
            own, with_place = tuple(members), there.get(number, [])
            pinned = self._domains.with_nodes(level, [row for _, row in with_place])
            inside = tuple(self._ranked(depth + 1, own, with_place))
            name = f"slice {number} (ranks {number * size} to {number * size + size - 1})" if size else ""
            parts.append(self._part(depth, own, name, pinned, inside))
        return parts

    def _number(self, uid: str, size: int) -> int:
        return self._rank(uid) // size if size else 0

    def _unranked(self, depth: int, uids: Sequence[str], rows: Sequence[Row]) -> list[Part]:
        if depth == len(self._levels):
            return []
        level, size = self._levels[depth]
        by_domain: dict[int, list[Row]] = {}
        for row in rows:
            if (domain := int(self._domains.ids[level][row])) != NONE:
                by_domain.setdefault(domain, []).append(row)
        if not size:
            inside = tuple(self._unranked(depth + 1, uids, rows))
            return [self._part(depth, tuple(uids), "", frozenset(by_domain), inside)] if uids else []
        parts, rest = [], list(uids)
        begun = [(len(there) % size, domain) for domain, there in by_domain.items() if len(there) % size]
        for full, domain in sorted(begun, key=lambda each: (-each[0], each[1])):
            own, rest = tuple(rest[: size - full]), rest[size - full :]
            inside = tuple(self._unranked(depth + 1, own, by_domain[domain]))
            if own:
                parts.append(self._part(depth, own, f"a slice of {size}", frozenset((domain,)), inside))
        for own in self._chunks(rest, size) if rest else ():
            inside = tuple(self._unranked(depth + 1, own, ()))
            parts.append(self._part(depth, own, f"a slice of {size}", frozenset(), inside))
        return parts

    def _chunks(self, uids: Sequence[str], size: int) -> Iterator[tuple[str, ...]]:
        """Members that may go to the same domains are together; slices that they do not fill are filled by those that may go to most,
        but for one, which the last slice may be of."""
        alike: dict[tuple[int, ...], list[str]] = {}
        for uid in uids:
            alike.setdefault(self._reach(uid), []).append(uid)
        *narrow, (_, wide) = sorted(alike.items(), key=lambda each: (len(each[0]), each[0]))
        left: list[str] = []
        for number, (_, some) in enumerate(narrow):
            whole = len(some) // size * size
            yield from (tuple(some[at : at + size]) for at in range(0, whole, size))
            rest = some[whole:]
            lacking = size - len(rest) if rest and number != self._choice else 0
            if lacking and lacking <= len(wide):
                yield (*rest, *wide[:lacking])
                rest, wide = [], wide[lacking:]
            left += rest
        whole = len(wide) // size * size
        yield from (tuple(wide[at : at + size]) for at in range(0, whole, size))
        left += wide[whole:]
        yield from (tuple(left[at : at + size]) for at in range(0, len(left), size))

    def _part(
        self, depth: int, uids: tuple[str, ...], name: str, pinned: frozenset[int], inside: tuple[Part, ...]
    ) -> Part:
        level, size = self._levels[depth]
        name = " of ".join(filter(None, (name or "all members", self._sliced.name)))
        return Part(level, uids, size, name, pinned, inside, self._sliced.balanced)


def _levels(topology: Topology, sliced: Sliced) -> list[tuple[int, int]]:
    """(level, members of a slice), from wide to narrow."""
    found: list[tuple[int, int]] = []
    for name, size in sliced.sizes:
        level = level_of(topology, name)
        if level is None or (found and level <= found[-1][0]):
            raise UnknownLevelError(name, topology.levels, topology.levels[found[-1][0]].name if found else "")
        found.append((level, size))
    return found


def members_by_part(parts: Sequence[Part]) -> Mapping[str, Part]:
    """UID -> the narrowest part that it is in."""
    return {uid: leaf for part in parts for leaf in part.leaves() for uid in leaf.uids}
