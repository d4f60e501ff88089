"""Members that do not look at each other: placed by the free room of each node, class by class; no filter runs twice.

Domains are tried from the narrowest level that is asked for to the widest that is allowed, the one with the least room
first. For a single class this finds a placement wherever there is one. Packing is arithmetic on capacities: as few domains and
nodes as can be, or as evenly as can be; the largest first until the rest fits into one, then the one with the least room that
holds the rest, so that few are broken up and what stays free stays whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from extender.config.types import Packing
from extender.framework.listers import NodeInfoLister
from extender.plugins import names
from extender.plugins.coscheduling.planner.domains import NONE, Domains, Scope
from extender.plugins.coscheduling.planner.members import MemberClass
from extender.plugins.coscheduling.planner.request import Deadline, Judge
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn, Refusals, Room


def fewest(capacity: IntColumn, count: int) -> IntColumn:
    """What each takes of count, which all together hold. Ties go to the first."""
    taken = np.zeros_like(capacity)
    if count <= 0:
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

Takes = list[tuple[int, int, int]]
"""(class, node, how many)."""


@dataclass(frozen=True)
class Alike:
    """A class with the nodes that the filters let it on to. but_for_room: with those that only lack room."""

    members: MemberClass
    passing: BoolColumn
    but_for_room: BoolColumn

    def capacity(self, room: Room) -> IntColumn:
        return np.where(self.passing, room.capacity(self.members.asked), 0)


def judged(
    snapshot: NodeInfoLister,
    classes: Sequence[MemberClass],
    room: Room,
    scope: Scope,
    judge: Judge,
    refusals: Refusals,
    deadline: Deadline,
) -> list[Alike]:
    """Each class with its nodes; members of one shape are judged once, whichever nodes they are kept to."""
    by_shape: dict[object, list[Alike]] = {}
    for members in classes:
        known = by_shape.setdefault(members.shape, [])
        if known:
            plain = known[0]
        else:
            statuses = judge.begin(members.first.pod, snapshot).filter_all()
            deadline.check()
            passing = np.array([s.success for s in statuses], dtype=np.bool_)
            fit = np.array([s.success or s.plugin == names.NODE_RESOURCES_FIT for s in statuses], dtype=np.bool_)
            refusals.count(s for s in statuses if not s.success)
            plain = Alike(replace(members, allowed=None, excluded=frozenset()), passing, fit)
            known.append(plain)
        known.append(_kept(plain, members, room, scope))
    return _merged(by_shape)


def _kept(plain: Alike, members: MemberClass, room: Room, scope: Scope) -> Alike:
    """The class on the nodes that it is kept to; all of them, if those are all that matter."""
    if not members.restricted:
        return replace(plain, members=members)
    may = scope.may_go(members)
    left_out = plain.capacity(room)[~may]
    if not left_out.any():
        return replace(plain, members=replace(members, allowed=None, excluded=frozenset()))
    return Alike(members, plain.passing & may, plain.but_for_room & may)


def _merged(by_shape: dict[object, list[Alike]]) -> list[Alike]:
    """Of one shape, those that may go anywhere together, after those that are kept to some nodes."""
    result: list[Alike] = []
    for of_shape in by_shape.values():
        free = [one for one in of_shape[1:] if not one.members.restricted]
        result += [one for one in of_shape[1:] if one.members.restricted]
        if free:
            all_members = tuple(member for one in free for member in one.members.members)
            result.append(replace(free[0], members=replace(free[0].members, members=all_members)))
    return result


class AlikePacker:
    """Finds places for counts of each class. `room` is what is free before."""

    def __init__(self, classes: Sequence[Alike], room: Room, scope: Scope, deadline: Deadline) -> None:
        self._classes = classes
        self._room = room
        self._scope = scope
        self._deadline = deadline

    def all(self) -> Takes | None:
        """Places for every member: in one domain, the narrowest that can be, or across domains where that is allowed."""
        counts = [len(one.members) for one in self._classes]
        capacities = [one.capacity(self._room) for one in self._classes]
        if any(int(capacity.sum()) < count for capacity, count in zip(capacities, counts, strict=True)):
            return None
        for level in self._scope.levels_to_try():
            for at in islice(self._scope.holding(level, capacities, counts), TRIES):
                self._deadline.check()
                if takes := self._whole(self._room.copy(), at, level + 1, counts):
                    return takes
        if self._scope.required is not None:
            return None
        return self._whole(self._room.copy(), self._scope.everywhere, 0, counts)

    def most_in_each(self) -> Iterator[tuple[IntColumn, Takes]]:
        """As many members as there is room for in the whole cluster, or in each domain of the required level, of which
        those with the most room are tried."""
        capacities = [one.capacity(self._room) for one in self._classes]
        counts = [len(one.members) for one in self._classes]

        def at_most(at: IntColumn) -> int:
            return sum(min(n, int(capacity[at].sum())) for n, capacity in zip(counts, capacities, strict=True))

        for at in sorted(self._scope.widest(), key=at_most, reverse=True)[:TRIES]:
            yield at, self._most(at)

    def _most(self, at: IntColumn) -> Takes:
        """In the order of classes that places more."""
        best: Takes = []
        orders = [range(len(self._classes)), range(len(self._classes) - 1, -1, -1)]
        for order in orders[: len(self._classes)]:
            room = self._room.copy()
            takes: Takes = []
            for number in order:
                one = self._classes[number]
                capacity = one.capacity(room)
                count = min(len(one.members), int(capacity[at].sum()))
                takes += self._take(room, number, capacity, at, self._scope.level_below, count)
            self._deadline.check()
            if count_of(takes) > count_of(best):
                best = takes
        return best

    def _whole(self, room: Room, at: IntColumn, level: int, counts: Sequence[int]) -> Takes | None:
        """All classes among these nodes: together in one narrower domain, or class by class. Lessens the room."""
        if len(counts) > 1 and level < len(self._scope.domains.levels):
            inside = np.zeros(len(self._scope.node_names), dtype=np.bool_)
            inside[at] = True
            capacities = [np.where(inside, one.capacity(room), 0) for one in self._classes]
            for narrower in islice(self._scope.holding(level, capacities, counts), TRIES):
                self._deadline.check()
                if takes := self._whole(room.copy(), np.intersect1d(narrower, at), level + 1, counts):
                    return takes
        result: Takes = []
        for number, count in enumerate(counts):
            capacity = self._classes[number].capacity(room)
            if int(capacity[at].sum()) < count:
                return None
            result += self._take(room, number, capacity, at, level, count)
        return result

    def _take(self, room: Room, number: int, capacity: IntColumn, at: IntColumn, level: int, count: int) -> Takes:
        shares = split(self._scope.domains, self._scope.packing, capacity, at, level, count) if count else []
        if shares:
            index, amounts = np.array(shares, dtype=np.int64).T
            room.take(index, self._classes[number].members.asked, amounts)
        return [(number, node, taken) for node, taken in shares]


def count_of(takes: Takes) -> int:
    return sum(taken for _, _, taken in takes)


def places(takes: Takes, classes: Sequence[Alike], node_names: Sequence[str]) -> dict[str, str]:
    """UID -> node name: the members of a class in their order, on its nodes in theirs."""
    result: dict[str, str] = {}
    waiting = [iter(one.members.members) for one in classes]
    for number, node, taken in takes:
        for member in islice(waiting[number], taken):
            result[member.pod.metadata.uid] = node_names[node]
    return result
