"""Chooses a domain for each slice: in as few wide domains as can be, then in as few of its own level; or evenly over these.

Where all slices ask for the same, what is found first is right. Where they differ (roles, node selectors), those that may go to the
fewest domains come first, and some steps are taken back and tried otherwise. How members find room in a domain is the
ground's: by counting (`alike`), or by the filters (`search`).
Kueue: pkg/cache/scheduler/tas_flavor_snapshot.go has the like for slices that are all alike
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic, Protocol, TypeVar

import numpy as np

from extender.plugins.coscheduling.planner.domains import NONE, Domains
from extender.plugins.coscheduling.planner.request import Deadline
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn
from extender.plugins.coscheduling.planner.slicing.parts import Part

TRIES = 64  # domains for one slice
TAKEN_BACK = 400  # slices that are placed otherwise, where they are not all alike

S = TypeVar("S")


class Ground(Protocol[S]):
    """Where members are placed. A state has some of them in place, and is not changed; kinds are numbers of shapes."""

    def capacity(self, state: S, kind: int) -> IntColumn:
        """For each node how many of a kind it takes at most."""
        ...

    def put(self, state: S, part: Part, at: BoolColumn, *, whole: bool) -> S | None:
        """With the members of a narrowest part on these nodes; None where they are not all placed, though that is asked for."""
        ...


Signature = tuple[object, ...]
"""Equal for parts that any domain treats alike."""


class Layout(Generic[S]):
    """kinds: of each member (by UID)."""

    def __init__(
        self, domains: Domains, ground: Ground[S], parts: Sequence[Part], kinds: Mapping[str, int], deadline: Deadline
    ) -> None:
        self._domains = domains
        self._ground = ground
        self._deadline = deadline
        self.parts = parts
        self._counts: dict[Part, Counter[int]] = {}
        self._signatures: dict[Part, Signature] = {}
        for part in parts:
            self._note(part, kinds)
        self._several = len({self._signatures[part] for part in parts if not part.pinned}) > 1
        self._outers: dict[tuple[int, int], IntColumn] = {}
        self._left = 0

    def _note(self, part: Part, kinds: Mapping[str, int]) -> None:
        self._counts[part] = Counter(kinds[uid] for uid in part.uids)
        for inner in part.inside:
            self._note(inner, kinds)
        inside = tuple(self._signatures[inner] for inner in part.inside)
        self._signatures[part] = (part.level, tuple(sorted(self._counts[part].items())), inside)

    def signature(self, part: Part) -> Signature:
        return self._signatures[part]

    def all(self, state: S, region: BoolColumn) -> S | None:
        """With every part placed whole among these nodes."""
        self._left = TAKEN_BACK if self._several else 0
        if not self._could(state, region):
            return None
        return self._best(state, self.parts, region)

    def most(self, state: S, region: BoolColumn) -> tuple[S, Part | None]:
        """(with as many members placed as are found, the first part that is not placed whole)."""
        self._left = 0
        missing: list[Part] = []
        closed_to: dict[Signature, set[int]] = {}
        for part in self._in_order(state, self.parts, region):
            closed = closed_to.setdefault(self._signatures[part], set())
            found = next(self._ways_of(state, part, region, Counter(), 1, closed), None)
            if found is None:
                missing.append(part)
            else:
                state = found[0]
        for part in missing:
            state = self._some(state, part, region)
        return state, missing[0] if missing else None

    def fitting(self, state: S, part: Part, region: BoolColumn) -> IntColumn:
        """For each domain of the part's level how many like it have room there, as if the kinds were not in each other's way."""
        return self._units(part, self._sums(state, part, region))

    def _could(self, state: S, region: BoolColumn) -> bool:
        """False where there are surely too few domains for the narrowest parts, by counting them."""
        leaves = [leaf for part in self.parts for leaf in part.leaves() if not leaf.pinned]
        alike = Counter(self._signatures[leaf] for leaf in leaves)
        first = {self._signatures[leaf]: leaf for leaf in reversed(leaves)}
        return all(int(self.fitting(state, first[each], region).sum()) >= count for each, count in alike.items())

    def _best(self, state: S, parts: Sequence[Part], region: BoolColumn) -> S | None:
        """The first way; where it is to be even, once more over as many domains as that took, those with the most room."""
        order = self._in_order(state, parts, region)
        found = next(self._ways(state, order, region, None), None)
        if found is None or not parts[0].balanced:
            return found[0] if found is not None else None
        used = set(found[1])
        units = self.fitting(state, parts[0], region)
        near = self._outer(parts[0].level, max(0, parts[0].level - 1))
        near = near if parts[0].level else np.zeros_like(near)
        inside = np.isin(near, near[sorted(used)]) & (units > 0)
        candidates = np.flatnonzero(inside)
        largest = candidates[np.lexsort((candidates, -units[candidates]))][: len(used)]
        even = next(self._ways(state, order, region, frozenset(largest.tolist())), None)
        return (even or found)[0]

    def _in_order(self, state: S, parts: Sequence[Part], region: BoolColumn) -> list[Part]:
        """Those that may go to the fewest domains first, then the largest; equals as they are."""
        if len({self._signatures[part] for part in parts}) == 1:
            return sorted(parts, key=lambda part: not part.pinned)
        known: dict[Signature, int] = {}
        for part in parts:
            if self._signatures[part] not in known:
                known[self._signatures[part]] = int(np.count_nonzero(self.fitting(state, part, region)))
        return sorted(parts, key=lambda part: (not part.pinned, known[self._signatures[part]], -len(part.uids)))

    def _ways(
        self, state: S, order: Sequence[Part], region: BoolColumn, evenly: frozenset[int] | None
    ) -> Iterator[tuple[S, list[int]]]:
        """(all parts placed, the domain of each), in every way that is tried. No recursion: a gang may have thousands of parts."""
        like = Counter(self._signatures[part] for part in order)
        chosen: list[int] = []
        stack: list[Iterator[tuple[S, int]]] = []
        closed: list[set[int]] = []

        def push(state: S) -> None:
            part = order[len(stack)]
            rest = like[self._signatures[part]]
            like[self._signatures[part]] -= 1
            again = bool(stack) and self._signatures[part] == self._signatures[order[len(stack) - 1]]
            closed.append(set(closed[-1]) if again else set())  # what took none like it takes none after it
            stack.append(self._ways_of(state, part, region, Counter(chosen), rest, closed[-1], evenly))

        push(state)
        while stack:
            self._deadline.check()
            if len(chosen) == len(stack):  # what was chosen here leads nowhere
                chosen.pop()
                if not self._left:
                    return
                self._left -= 1
            found = next(stack[-1], None)
            if found is None:
                stack.pop()
                closed.pop()
                like[self._signatures[order[len(stack)]]] += 1
                continue
            chosen.append(found[1])
            if len(chosen) == len(order):
                yield found[0], list(chosen)
            else:
                push(found[0])

    def _ways_of(
        self,
        state: S,
        part: Part,
        region: BoolColumn,
        used: Counter[int],
        rest: int,
        closed: set[int],
        evenly: frozenset[int] | None = None,
    ) -> Iterator[tuple[S, int]]:
        """rest: how many like this one are still to come, itself included. closed: domains that take none, to which it adds."""
        ids = self._domains.ids[part.level]
        candidates = self._candidates(state, part, region, used, rest, evenly)
        for domain in islice((each for each in candidates if each not in closed), TRIES):
            at = region & (ids == domain)
            inside = (
                self._best(state, part.inside, at) if part.inside else self._ground.put(state, part, at, whole=True)
            )
            if inside is not None:
                yield inside, domain
            else:
                closed.add(domain)

    def _candidates(
        self,
        state: S,
        part: Part,
        region: BoolColumn,
        used: Counter[int],
        rest: int,
        evenly: frozenset[int] | None,
    ) -> Iterator[int]:
        """From the widest level inwards: a domain that has a part already, else the smallest that has room for all the rest, else the
        largest. evenly: the domains to choose from, first the one with the fewest parts."""
        sums = self._sums(state, part, region)
        units = self._units(part, sums)
        fitting = np.flatnonzero(units > 0)
        if part.pinned:
            fitting = fitting[np.isin(fitting, sorted(part.pinned))]
        elif evenly is not None:
            fitting = fitting[np.isin(fitting, sorted(evenly))]
        if not len(fitting):
            return
        keys: list[IntColumn] = [fitting, np.add.reduce(list(sums.values()))[fitting]]  # the most important last
        domains = np.array(sorted(used), dtype=np.int64)
        for level in range(part.level, -1, -1):
            outer = self._outer(part.level, level) + 1
            room = np.bincount(outer[fitting], weights=units[fitting])[outer[fitting]].astype(np.int64)
            unused = ~np.isin(outer[fitting], outer[domains])
            keys += [np.where(room >= rest, room, rest + 2 * int(room.max()) - room), unused.astype(np.int64)]
        if evenly is not None:
            keys.append(np.array([used[int(domain)] for domain in fitting], dtype=np.int64))
        yield from fitting[np.lexsort(keys)].tolist()

    def _sums(self, state: S, part: Part, region: BoolColumn) -> dict[int, IntColumn]:
        """Kind -> for each domain of the part's level how many it takes at most."""
        return {
            kind: self._domains.sums(part.level, np.where(region, self._ground.capacity(state, kind), 0))
            for kind in self._counts[part]
        }

    def _units(self, part: Part, sums: Mapping[int, IntColumn]) -> IntColumn:
        units: IntColumn = np.minimum.reduce([sums[kind] // count for kind, count in self._counts[part].items()])
        return units

    def _outer(self, level: int, wider: int) -> IntColumn:
        if (level, wider) not in self._outers:
            self._outers[level, wider] = self._domains.outer(level, wider)
        return self._outers[level, wider]

    def _some(self, state: S, part: Part, region: BoolColumn) -> S:
        """With as many of the part's members as the roomiest domain takes."""
        ids, counts = self._domains.ids[part.level], self._counts[part]
        sums = self._sums(state, part, region)
        room = np.add.reduce([np.minimum(sums[kind], count) for kind, count in counts.items()])
        allowed = sorted(part.pinned) or range(len(room))
        best = max(allowed, key=lambda domain: int(room[domain]), default=NONE)
        if best == NONE or not int(room[best]):
            return state
        at = region & (ids == best)
        for inner in part.inside:
            state = self._some(state, inner, at)
        if not part.inside:
            placed = self._ground.put(state, part, at, whole=False)
            state = state if placed is None else placed
        return state
