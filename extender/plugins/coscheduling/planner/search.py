"""Which attempts are made for members that look at each other: the regions, the orders and the preferences, in turn.

Regions from narrow to wide, as the topology asks; in each, members with required affinity to one another are tried in one
domain after the other before they are let loose. Orders: those first that others need, then the largest, then those with the
fewest nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, product

import numpy as np

from extender.config.types import Packing
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.constrained import Arrangement, Preference, Step
from extender.plugins.coscheduling.planner.domains import coarse_groups, nodes_by_value
from extender.plugins.coscheduling.planner.gang import Gang
from extender.plugins.coscheduling.planner.members import Shape, asks_for, may_be_first, topology_keys
from extender.plugins.coscheduling.planner.request import (
    DomainFit,
    OutOfTimeError,
    Placement,
)
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn
from extender.plugins.coscheduling.planner.slicing.parts import Part, members_by_part
from extender.plugins.coscheduling.planner.slicing.ranks import with_members
from extender.plugins.coscheduling.planner.waves import waves

TRIES = 32  # domains of one level
NARROW = 0.4  # of the time budget: after it, only what is tried everywhere
CONTENT = 0.5  # of the time budget: after it, minMember placed is good enough

Order = list[tuple[int, PodInfo]]


class ConstrainedGang(Gang):
    def __post_init__(self) -> None:
        super().__post_init__()
        shapes = map(self.judged, self.classes)
        self._shapes = [
            shape if (may := self.scope.may_go(shape.members)) is None else shape.within(shape.members, may)
            for shape in shapes
        ]
        self._counts = [len(shape.members) for shape in self._shapes]
        self._bounds = [np.where(shape.open_, self.room.capacity(shape.asked), 0) for shape in self._shapes]
        self._groups = coarse_groups(self.snapshot, topology_keys(shape.members.first for shape in self._shapes))
        self._orders = orders(self._shapes, self._bounds)
        preferred = Preference.EVEN if self.scope.packing is Packing.MOST_EVEN else Preference.FEW
        self._preferences = list(dict.fromkeys((preferred, Preference.FULLEST, Preference.EVEN)))
        self._best: Arrangement | None = None
        self.slice_up(self._shapes)

    def place(self) -> Placement | None:
        attempt: Arrangement | None = None
        for parts in self.choices:
            self.choose(parts)
            if (attempt := self._run()) is not None:
                break
        if attempt is None:
            return None
        names = self.scope.node_names
        sequence = self._by_rank(attempt.sequence) if self.request.sliced else attempt.sequence
        return Placement(
            {member.pod.metadata.uid: names[at] for _, member, at in sequence},
            waves(self.snapshot.list(), self._shapes, sequence, self.deadline),
            self.scope.domains.narrowest_with([at for _, _, at in sequence]),
        )

    def _by_rank(self, sequence: Sequence[Step]) -> list[Step]:
        part_of = members_by_part(self.layout.parts)
        steps = [(number, part_of.get(member.pod.metadata.uid), at) for number, member, at in sequence]
        members = [shape.members.members for shape in self._shapes]
        found = with_members(steps, members, self.layout, self.scope.domains, self.request)
        return [(number, member, at) for (number, _, at), member in zip(steps, found, strict=True)]

    def fits(self) -> bool:
        self._best, self.placed = None, 0
        return self._run() is not None

    def domains(self) -> Sequence[DomainFit]:
        """What room and filters would take at most, if the members did not mind each other."""
        required, name_of = self.scope.required, self.scope.domains.name_of
        return [
            DomainFit(name_of(required, at), self._could_place(at))
            for at in self.scope.widest()
            if required is not None
        ]

    def explain(self) -> tuple[str, int]:
        best = self._best
        if best is None:  # no region has room enough for it to be tried
            for shape in self._shapes:
                self.refusals.short(self.room.short_of(shape.asked, shape.but_for_room))
            return self.missing(self._shapes[0].members)
        best.explain(self.refusals)
        return self.missing(self._shapes[best.unplaced[0]].members) if best.unplaced else ("", 0)

    def _run(self) -> Arrangement | None:
        """The first attempt that places all, else the one that places most, if that is `needed`. The best stays for
        explanations. Raises OutOfTimeError where the time ended the search before that."""
        if self.layout.parts:
            return self._run_in_slices()
        try:
            for narrow in self._narrow():
                attempt = self._attempt(narrow, self._orders[0], self._preferences[0])
                if not attempt.unplaced:
                    return attempt
                if self.deadline.spent(NARROW):
                    break
            for regions, order, preference in self._wide():
                attempt = self._attempt(regions, order, preference)
                if not attempt.unplaced or (self._enough and self.deadline.spent(CONTENT)):
                    return self._best
        except OutOfTimeError:
            if not self._enough:
                raise
        return self._best if self._enough else None

    @property
    def _enough(self) -> bool:
        return self._best is not None and self.placed >= self.needed

    def _run_in_slices(self) -> Arrangement | None:
        """Slices first, each in a domain of its own level, then the members of none."""
        sliced = {uid for part in self.layout.parts for uid in part.uids}
        widest = min(part.level for part in self.layout.parts)
        if len(sliced) < sum(self._counts):
            widest = len(self.scope.domains.levels)
        tight = [
            at
            for level in self.scope.levels_to_try()
            if level < widest  # slices keep to few domains of their own level by themselves
            for at in islice(self.scope.holding(level, self._bounds, self._counts), TRIES)
        ]
        wide = self.scope.widest()
        for at in [*tight, *wide]:
            laid = self.layout.all(self.nothing(), self.scope.mask(at))
            attempt = self._with_the_loose(laid, sliced, at) if laid is not None else None
            if attempt is not None and not attempt.unplaced:
                self._best, self.placed = attempt, len(attempt.sequence)
                return attempt
        for at in sorted(wide, key=self._could_place, reverse=True)[:TRIES]:
            some, missing = self.layout.most(self.nothing(), self.scope.mask(at))
            attempt = self._with_the_loose(some, sliced, at)
            if self._best is None or len(attempt.sequence) > self.placed:
                self._best, self.placed, self.without_place = attempt, len(attempt.sequence), missing
        return self._best if self._enough else None

    def _with_the_loose(self, state: Arrangement, sliced: Collection[str], at: IntColumn) -> Arrangement:
        """With the members of no slice, and what is missing of all."""
        attempt = state.on(self.scope.mask(at))
        attempt.run([step for step in self._orders[0] if step[1].pod.metadata.uid not in sliced])
        placed = Counter(number for number, *_ in attempt.sequence)
        attempt.unplaced = [n for n, count in enumerate(self._counts) for _ in range(count - placed[n])]
        return attempt

    def nothing(self) -> Arrangement:
        return self._beginning([self.scope.mask(self.scope.everywhere)] * len(self._shapes), self._preferences[0])

    def capacity(self, state: Arrangement, kind: int) -> IntColumn:
        return state.capacity(kind)

    def put(self, state: Arrangement, part: Part, at: BoolColumn, *, whole: bool) -> Arrangement | None:
        uids = frozenset(part.uids)
        best: Arrangement | None = None
        for order, preference in product(self._orders, self._preferences):
            attempt = state.on(at)
            attempt.preference = preference
            attempt.run([step for step in order if step[1].pod.metadata.uid in uids])
            if not attempt.unplaced:
                return attempt
            if best is None or len(attempt.sequence) > len(best.sequence):
                best = attempt
        return best if not whole else None

    def _beginning(self, regions: Sequence[BoolColumn], preference: Preference) -> Arrangement:
        nodes = list(self.snapshot.list())
        return Arrangement(self._shapes, nodes, self.room.copy(), regions, self._groups, preference, self.deadline)

    def _attempt(self, regions: Sequence[BoolColumn], order: Order, preference: Preference) -> Arrangement:
        attempt = self._beginning(regions, preference)
        try:
            attempt.run(order)
        finally:
            if self._best is None or len(attempt.sequence) > self.placed:
                self._best, self.placed = attempt, len(attempt.sequence)
        return attempt

    def _narrow(self) -> Iterator[list[BoolColumn]]:
        """The domains that have room for all, from narrow to wide."""
        for level in self.scope.levels_to_try():
            for at in islice(self.scope.holding(level, self._bounds, self._counts), TRIES):
                yield from self._regions(at)

    def _wide(self) -> Iterator[tuple[list[BoolColumn], Order, Preference]]:
        """All that is allowed, in every way. Domains without room for minMember are left out."""
        for at in self.scope.widest():
            if self._could_place(at) >= self.needed:
                for regions in self._regions(at):
                    for order, preference in product(self._orders, self._preferences):
                        yield regions, order, preference

    def _regions(self, at: IntColumn) -> Iterator[list[BoolColumn]]:
        """For each shape its part of these nodes: first with those together that required affinity binds, then all of it."""
        region = self.scope.mask(at)
        yield from self._together(region)
        yield [region] * len(self._shapes)

    def _could_place(self, at: IntColumn) -> int:
        """At most, among these nodes."""
        return sum(min(n, int(bound[at].sum())) for n, bound in zip(self._counts, self._bounds, strict=True))

    def _together(self, region: BoolColumn) -> Iterator[list[BoolColumn]]:
        """Those that a required affinity binds to members kept to one of its domains, the smallest that may do first."""
        for key, bound in sorted(bound_together(self._shapes).items()):
            domains: list[tuple[int, int, BoolColumn]] = []
            for domain in nodes_by_value(self.snapshot, key):
                inside = domain & region
                sums = [int(self._bounds[number][inside].sum()) for number in sorted(bound)]
                if all(total >= self._counts[n] for total, n in zip(sums, sorted(bound), strict=True)):
                    domains.append((sum(sums), len(domains), inside))
            for _, _, inside in sorted(domains, key=lambda entry: entry[:2])[:TRIES]:
                yield [inside if number in bound else region for number in range(len(self._shapes))]


def bound_together(shapes: Sequence[Shape]) -> dict[str, frozenset[int]]:
    """Topology key -> the shapes that required affinity to members binds to one domain, askers and asked."""
    result: dict[str, set[int]] = {}
    for asker, shape in enumerate(shapes):
        for term in shape.members.first.required_affinity_terms:
            asked = {n for n, other in enumerate(shapes) if asks_for(term, other.members.first)}
            if asked:
                result.setdefault(term.topology_key, set()).update(asked | {asker})
    return {key: frozenset(numbers) for key, numbers in result.items()}


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
            if other is not shape and asks_for(term, other.members.first)
        }
        for shape in shapes
    ]
    depth = [0] * len(shapes)
    for _ in shapes:  # longer chains than this are circles
        before, depth = depth, [max((depth[n] + 1 for n in needed), default=0) for needed in needs]
        depth = [min(d, len(shapes)) for d in depth]
        if depth == before:
            break
    return depth
