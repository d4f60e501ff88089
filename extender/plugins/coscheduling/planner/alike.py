"""Members that do not look at each other: placed by the free room of each node, class by class; no filter runs twice.

Domains are tried from the narrowest level that is asked for to the widest that is allowed, the one with the least room
first. For a single class this finds a placement wherever there is one. Packing is arithmetic on capacities: few domains and nodes, or
even ones. Fills the largest domains first; the remainder goes to the smallest domain that holds it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from extender.config.types import Packing
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.domains import NONE, Domains
from extender.plugins.coscheduling.planner.gang import Gang
from extender.plugins.coscheduling.planner.members import MemberClass, Shape
from extender.plugins.coscheduling.planner.request import DomainFit, Placement
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn, Room
from extender.plugins.coscheduling.planner.slicing.parts import Part
from extender.plugins.coscheduling.planner.slicing.ranks import with_members


def fewest(capacity: IntColumn, count: int) -> IntColumn:
    """What each takes of count, which all together hold. Ties go to the first."""
    taken = np.zeros_like(capacity)
    if count <= 0:
        return taken
    holds_all = capacity >= count
    if holds_all.any():  # nothing to sort: filter calls ask for one member at a time
        taken[np.argmin(np.where(holds_all, capacity, np.iinfo(capacity.dtype).max))] = count
        return taken
    order = np.argsort(-capacity, kind="stable")
    falling = capacity[order]
    sums = np.cumsum(falling)
    full = int(np.searchsorted(sums, count))  # so many are filled before the rest fits into one
    rest = count - (int(sums[full - 1]) if full else 0)
    taken[order[:full]] = falling[:full]
    least = falling[full:][falling[full:] >= rest][-1]  # the smallest that holds the rest
    last = full + int(np.argmax(falling[full:] == least))
    taken[order[last]] = rest
    return taken


def most_even(capacity: IntColumn, count: int) -> IntColumn:
    """The same with the largest share as small as it can be."""
    if count <= 0:
        return np.zeros_like(capacity)
    low, high = 1, int(capacity.max())
    while low < high:  # the least height at which all are in
        middle = (low + high) // 2
        if int(np.minimum(capacity, middle).sum()) >= count:
            high = middle
        else:
            low = middle + 1
    taken = np.minimum(capacity, low - 1)
    rest = count - int(taken.sum())
    higher = np.flatnonzero(capacity >= low)
    taken[higher[np.argsort(-capacity[higher], kind="stable")][:rest]] += 1
    return taken


def split(
    domains: Domains, packing: Packing, capacity: IntColumn, at: IntColumn, level: int, count: int
) -> list[tuple[int, int]]:
    """(node, how many) for count members on the nodes `at`, which hold them, by domains from `level` down."""
    if level == len(domains.levels):
        share = most_even if packing is Packing.MOST_EVEN else fewest
        taken = share(capacity[at], count)
        return [(int(at[i]), int(taken[i])) for i in np.flatnonzero(taken)]
    ids = domains.ids[level][at]
    sums = domains.sums(level, capacity, at)
    inside = min(count, int(sums.sum()))
    result: list[tuple[int, int]] = []
    by_domain = fewest(sums, inside)
    for domain in np.flatnonzero(by_domain):
        part = at[ids == domain]
        result += split(domains, packing, capacity, part, level + 1, int(by_domain[domain]))
    if count > inside:  # nodes without the label come last
        result += split(domains, packing, capacity, at[ids == NONE], level + 1, count - inside)
    return result


TRIES = 32  # domains of one level that are tried for a gang of several sizes


@dataclass(frozen=True, slots=True)
class Take:
    """So many members of a class on a node. part: the slice that they are of; None for members of none."""

    number: int
    node: int
    count: int
    part: Part | None = None


Takes = list[Take]
Packed = tuple[Room, Takes]
"""What is left, and what has been taken."""


class AlikeGang(Gang):
    """Finds places for counts of each class."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._shapes = self._judged()
        self._counts = [len(shape.members) for shape in self._shapes]
        self._best: Takes = []
        self._best_at: IntColumn = self.scope.everywhere[:0]
        self._holds: list[DomainFit] = []
        self.slice_up(self._shapes)

    def _judged(self) -> list[Shape]:
        """Members of one shape are judged once, whichever nodes they are kept to. Of one shape, those that may go anywhere are
        together, after those that are kept to some nodes."""
        by_shape: dict[object, list[MemberClass]] = {}
        for members in self.classes:
            by_shape.setdefault(members.shape, []).append(members)
        result: list[Shape] = []
        for alike in by_shape.values():
            plain = self.judged(alike[0])
            capacity = plain.capacity(self.room)
            free: list[PodInfo] = []
            for members in alike:
                may = self.scope.may_go(members)
                if may is None or not capacity[~may].any():  # the nodes that it is kept to are all that matter
                    free += members.members
                else:
                    result.append(plain.within(members, may))
            if free:
                result.append(replace(plain, members=MemberClass(tuple(free), plain.members.shape)))
        return result

    # Placing

    def place(self) -> Placement | None:
        takes: Takes | None = None
        for parts in self.choices:
            self.choose(parts)
            if (takes := self._all()) is not None:
                break
        if takes is None:
            takes = self._most()
        if count_of(takes) < self.needed:
            return None
        steps = [(take.number, take.part, take.node) for take in takes for _ in range(take.count)]
        members = [shape.members.members for shape in self._shapes]
        found = with_members(steps, members, self.layout, self.scope.domains, self.request)
        names, at = self.scope.node_names, [node for *_, node in steps]
        nodes = {info.pod.metadata.uid: names[node] for info, node in zip(found, at, strict=True)}
        return Placement(nodes, (frozenset(nodes),) if nodes else (), self.scope.domains.narrowest_with(at))

    def _all(self) -> Takes | None:
        """Places for every member: in one domain, the narrowest that can be, or across domains where that is allowed."""
        counts = self._counts
        capacities = [shape.capacity(self.room) for shape in self._shapes]
        if any(int(capacity.sum()) < count for capacity, count in zip(capacities, counts, strict=True)):
            return None
        for level in self.scope.levels_to_try():
            holding = self.scope.holding(level, capacities, counts)
            for at in islice(filter(self._may_hold_all, holding), TRIES):
                self.deadline.check()
                if takes := self._slices_first(at, level + 1):
                    return takes
        if self.scope.required is not None:
            return None
        return self._slices_first(self.scope.everywhere, 0)

    def _may_hold_all(self, at: IntColumn) -> bool:
        """Where the gang barely fits, many domains hold each class by itself and not all of them: none of these counts as tried."""
        if len(self._shapes) == 1:
            return True
        asked: Counter[str] = Counter()
        for shape, count in zip(self._shapes, self._counts, strict=True):
            asked.update({name: amount * count for name, amount in shape.asked.items()})
        return self.room.may_hold(at, asked, sum(self._counts))

    def _slices_first(self, at: IntColumn, level: int) -> Takes | None:
        """All members among these nodes: the slices, each in a domain of its own level, then those of none."""
        laid: Packed | None = self.nothing()
        if self.layout.parts:
            laid = self.layout.all(laid, self.scope.mask(at))
        loose = self._whole(laid[0].copy(), at, level, self._loose) if laid is not None else None
        return [*laid[1], *loose] if laid is not None and loose is not None else None

    @property
    def _loose(self) -> list[int]:
        """How many of each class are in no slice."""
        if not self.layout.parts:
            return self._counts
        return self._counted(self.kinds.keys() - {uid for part in self.layout.parts for uid in part.uids})

    def _counted(self, uids: Iterable[str]) -> list[int]:
        counts = Counter(self.kinds[uid] for uid in uids)
        return [counts[number] for number in range(len(self._shapes))]

    def nothing(self) -> Packed:
        return self.room, []

    def capacity(self, state: Packed, kind: int) -> IntColumn:
        return self._shapes[kind].capacity(state[0])

    def put(self, state: Packed, part: Part, at: BoolColumn, *, whole: bool) -> Packed | None:
        room, nodes, counts = state[0].copy(), np.flatnonzero(at), self._counted(part.uids)
        takes = self._whole(room, nodes, part.level + 1, counts)
        if takes is None and whole:
            return None
        if takes is None:
            room = state[0].copy()
            takes = self._as_many(room, nodes, part.level + 1, counts, range(len(counts)))
        return room, [*state[1], *(replace(take, part=part) for take in takes)]

    def _whole(self, room: Room, at: IntColumn, level: int, counts: Sequence[int]) -> Takes | None:
        """All of them among these nodes: together in one narrower domain, or class by class. Lessens the room."""
        if sum(map(bool, counts)) > 1 and level < len(self.scope.domains.levels):
            inside = self.scope.mask(at)
            capacities = [np.where(inside, shape.capacity(room), 0) for shape in self._shapes]
            for narrower in islice(self.scope.holding(level, capacities, counts), TRIES):
                self.deadline.check()
                inner = room.copy()
                if takes := self._whole(inner, np.intersect1d(narrower, at), level + 1, counts):
                    room.become(inner)
                    return takes
        result: Takes = []
        for number, count in enumerate(counts):
            if not count:
                continue
            capacity = self._shapes[number].capacity(room)
            if int(capacity[at].sum()) < count:
                return None
            result += self._take(room, number, capacity, at, level, count)
        return result

    def _take(self, room: Room, number: int, capacity: IntColumn, at: IntColumn, level: int, count: int) -> Takes:
        shares = split(self.scope.domains, self.scope.packing, capacity, at, level, count) if count else []
        if shares:
            index, amounts = np.array(shares, dtype=np.int64).T
            room.take(index, self._shapes[number].asked, amounts)
        return [Take(number, node, taken) for node, taken in shares]

    # As many as fit

    def _most(self) -> Takes:
        for at, takes, missing in self._most_in_each():
            count = count_of(takes)
            if not self._holds or count > self.placed:
                self._best, self._best_at, self.placed = takes, at, count
                self.without_place = missing
            if self.scope.required is not None:
                name = self.scope.domains.name_of(self.scope.required, at)
                self._holds.append(DomainFit(name, count))
        return self._best

    def _most_in_each(self) -> Iterator[tuple[IntColumn, Takes, Part | None]]:
        """As many members as there is room for in the whole cluster, or in each domain of the required level, of which
        those with the most room are tried; and the first slice that found no domain."""
        capacities = [shape.capacity(self.room) for shape in self._shapes]

        def at_most(at: IntColumn) -> tuple[int, int]:
            rooms = [int(capacity[at].sum()) for capacity in capacities]
            return sum(map(min, self._counts, rooms)), sum(rooms)

        for at in sorted(self.scope.widest(), key=at_most, reverse=True)[:TRIES]:
            yield at, *self._most_among(at)

    def _most_among(self, at: IntColumn) -> tuple[Takes, Part | None]:
        """Slices first, then in the order of classes that places more."""
        (room, sliced), missing = self.nothing(), None
        if self.layout.parts:
            (room, sliced), missing = self.layout.most((room, sliced), self.scope.mask(at))
        best: Takes = []
        orders = [range(len(self._shapes)), range(len(self._shapes) - 1, -1, -1)]
        for order in orders[: len(self._shapes)]:
            takes = self._as_many(room.copy(), at, self.scope.level_below, self._loose, order)
            self.deadline.check()
            if count_of(takes) > count_of(best):
                best = takes
        return [*sliced, *best], missing

    def _as_many(self, room: Room, at: IntColumn, level: int, counts: Sequence[int], order: Iterable[int]) -> Takes:
        """As many of each class as still fit, in this order. Lessens the room."""
        takes: Takes = []
        for number in order:
            capacity = self._shapes[number].capacity(room)
            count = min(counts[number], int(capacity[at].sum()))
            takes += self._take(room, number, capacity, at, level, count)
        return takes

    def fits(self) -> bool:
        return any(count_of(takes) >= self.needed for _, takes, _ in self._most_in_each())

    def domains(self) -> Sequence[DomainFit]:
        return self._holds

    def explain(self) -> tuple[str, int]:
        room = self.room.copy()
        placed = [0] * len(self._shapes)
        for take in self._best:
            room.take(take.node, self._shapes[take.number].asked, take.count)
            placed[take.number] += take.count
        for shape, count in zip(self._shapes, placed, strict=True):
            if count < len(shape.members):
                inside = self.scope.mask(self._best_at)
                self.refusals.short(room.short_of(shape.asked, shape.but_for_room & inside))
                return self.missing(shape.members)
        return "", 0


def count_of(takes: Takes) -> int:
    return sum(take.count for take in takes)
