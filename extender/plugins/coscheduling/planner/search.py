"""Which attempts are made for members that look at each other: the regions, the orders and the preferences, in turn.

Regions from narrow to wide, as the topology asks; in each, members with required affinity to one another are tried in one
domain after the other before they are let loose. Orders: those first that others need, then the largest, then those with the
fewest nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np

from extender.config.types import Packing
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import AffinityTerm, PodInfo
from extender.plugins.coscheduling.planner.constrained import Attempt, Preference, Shape
from extender.plugins.coscheduling.planner.domains import Scope, coarse_groups, nodes_by_value
from extender.plugins.coscheduling.planner.members import topology_keys
from extender.plugins.coscheduling.planner.request import Deadline, OutOfTimeError
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn, Room

TRIES = 32  # domains of one level
NARROW = 0.4  # of the time budget: after it, only what is tried everywhere
CONTENT = 0.5  # of the time budget: after it, minMember placed is good enough

Order = list[tuple[int, PodInfo]]


class Search:
    def __init__(
        self, snapshot: NodeInfoLister, shapes: Sequence[Shape], room: Room, scope: Scope, deadline: Deadline
    ) -> None:
        self._snapshot = snapshot
        self._nodes = snapshot.list()
        self._shapes = shapes
        self._room = room
        self._scope = scope
        self._deadline = deadline
        self._counts = [len(shape.members) for shape in shapes]
        self._bounds = [np.where(shape.open_, room.capacity(shape.asked), 0) for shape in shapes]
        keys = topology_keys(shape.members.first for shape in shapes)
        self._groups = coarse_groups(snapshot, keys)
        self._orders = orders(shapes, self._bounds)
        self._preferences = list(dict.fromkeys((_preference(scope.packing), Preference.FULLEST, Preference.EVEN)))
        self.best: Attempt | None = None

    def run(self, needed: int) -> Attempt | None:
        """The first attempt that places all, else the one that places most, if that is `needed`. `best` stays for
        explanations. Raises OutOfTimeError where the time ended the search before that."""
        try:
            for narrow in self._narrow(needed):
                attempt = self._attempt(narrow, self._orders[0], self._preferences[0])
                if not attempt.unplaced:
                    return attempt
                if self._deadline.spent(NARROW):
                    break
            for regions, order, preference in self._wide(needed):
                attempt = self._attempt(regions, order, preference)
                if not attempt.unplaced or (self._enough(needed) and self._deadline.spent(CONTENT)):
                    return self.best
        except OutOfTimeError:
            if not self._enough(needed):
                raise
        return self.best if self._enough(needed) else None

    def _enough(self, needed: int) -> bool:
        return self.best is not None and len(self.best.sequence) >= needed

    def _attempt(self, regions: Sequence[BoolColumn], order: Order, preference: Preference) -> Attempt:
        attempt = Attempt(
            self._shapes, list(self._nodes), self._room.copy(), regions, self._groups, preference, self._deadline
        )
        try:
            attempt.run(order)
        finally:
            if self.best is None or len(attempt.sequence) > len(self.best.sequence):
                self.best = attempt
        return attempt

    def _narrow(self, needed: int) -> Iterator[list[BoolColumn]]:
        """The domains that have room for all, from narrow to wide."""
        for level in self._scope.levels_to_try():
            for at in islice(self._scope.holding(level, self._bounds, self._counts), TRIES):
                yield from self._regions(at)

    def _wide(self, needed: int) -> Iterator[tuple[list[BoolColumn], Order, Preference]]:
        """All that is allowed, in every way. Domains without room for minMember are left out."""
        for at in self._scope.widest():
            if self.could_place(at) >= needed:
                for regions in self._regions(at):
                    for order, preference in product(self._orders, self._preferences):
                        yield regions, order, preference

    def _regions(self, at: IntColumn) -> Iterator[list[BoolColumn]]:
        """For each shape its part of these nodes: first with those together that required affinity binds, then all of it."""
        region = np.zeros(len(self._nodes), dtype=np.bool_)
        region[at] = True
        yield from self._together(region)
        yield [region] * len(self._shapes)

    def could_place(self, at: IntColumn) -> int:
        """At most, among these nodes."""
        return sum(min(n, int(bound[at].sum())) for n, bound in zip(self._counts, self._bounds, strict=True))

    def _together(self, region: BoolColumn) -> Iterator[list[BoolColumn]]:
        """Those that a required affinity binds to members kept to one of its domains, the smallest that may do first."""
        for key, bound in sorted(bound_together(self._shapes).items()):
            domains: list[tuple[int, int, BoolColumn]] = []
            for domain in nodes_by_value(self._snapshot, key):
                inside = domain & region
                sums = [int(self._bounds[number][inside].sum()) for number in sorted(bound)]
                if all(total >= self._counts[n] for total, n in zip(sums, sorted(bound), strict=True)):
                    domains.append((sum(sums), len(domains), inside))
            for _, _, inside in sorted(domains, key=lambda entry: entry[:2])[:TRIES]:
                yield [inside if number in bound else region for number in range(len(self._shapes))]


def _preference(packing: Packing) -> Preference:
    return Preference.EVEN if packing is Packing.MOST_EVEN else Preference.FEW


def _asks_for(term: AffinityTerm, member: PodInfo) -> bool:
    """As far as it can be told without the namespaces' labels: a hint for the order, the filters have the word."""
    return term.matches(member.pod, {})


def bound_together(shapes: Sequence[Shape]) -> dict[str, frozenset[int]]:
    """Topology key -> the shapes that required affinity to members binds to one domain, askers and asked."""
    result: dict[str, set[int]] = {}
    for asker, shape in enumerate(shapes):
        for term in shape.members.first.required_affinity_terms:
            asked = {n for n, other in enumerate(shapes) if _asks_for(term, other.members.first)}
            if asked:
                result.setdefault(term.topology_key, set()).update(asked | {asker})
    return {key: frozenset(numbers) for key, numbers in result.items()}


def may_be_first(shape: Shape) -> bool:
    """Whether required affinity lets a member go anywhere as long as there is no pod that it asks for: it asks for its like."""
    first = shape.members.first
    terms = first.required_affinity_terms
    return bool(terms) and all(term.namespace_selector is not None or _asks_for(term, first) for term in terms)


def orders(shapes: Sequence[Shape], bounds: Sequence[IntColumn]) -> list[Order]:
    """Each order once. Shapes come in with the largest first."""
    depth = _depths(shapes)
    nodes = [int(np.count_nonzero(bound)) for bound in bounds]
    wanted = [
        sorted(range(len(shapes)), key=lambda n: (depth[n], n)),
        list(range(len(shapes))),
        sorted(range(len(shapes)), key=lambda n: (nodes[n], n)),
        sorted(range(len(shapes)), key=lambda n: (depth[n], -n)),
        sorted(
            range(len(shapes)), key=lambda n: (not may_be_first(shapes[n]), n)
        ),  # where there is none, they may go anywhere
    ]
    unique = dict.fromkeys(tuple(numbers) for numbers in wanted)
    return [[(n, member) for n in numbers for member in shapes[n].members.members] for numbers in unique]


def _depths(shapes: Sequence[Shape]) -> list[int]:
    """How many have to be in place before: 0 for those that need none, one more than those that one needs."""
    needs = [
        {
            n
            for term in shape.members.first.required_affinity_terms
            for n, other in enumerate(shapes)
            if other is not shape and _asks_for(term, other.members.first)
        }
        for shape in shapes
    ]
    depth = [0] * len(shapes)
    for _ in shapes:  # longer chains than this are circles
        depth = [max((depth[n] + 1 for n in needed), default=0) for needed in needs]
        depth = [min(d, len(shapes)) for d in depth]
    return depth
