"""In which order nodes are cleared for a gang: the cheapest for what they give first, and for a gang in slices those that together hold
one more slice, all in one domain.

The search for victims takes as many steps of the order as it needs. A step is only a guess at what helps: the planner says whether it does.
No counterpart upstream: kube-scheduler looks for victims on one node at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from extender.framework.hypothetical import with_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.resource import PODS
from extender.plugins.coscheduling.planner import Judge, Request
from extender.plugins.coscheduling.planner.members import MemberClass, judged
from extender.plugins.coscheduling.planner.room import IntColumn, Room, asked_of, free
from extender.plugins.coscheduling.planner.slicing.node_order import in_slices
from extender.plugins.coscheduling.preemption.evictable import Evictable, grouped

Price = tuple[int, int, int, int]
"""(violations, gangs broken, sum of priorities, victims)."""
FREE: Price = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Cleared:
    """A node without those of its victims that are in the way. holds: how many members find room there then; gained: so many more."""

    victims: Sequence[Evictable]
    price: Price
    holds: int
    gained: int

    @property
    def each(self) -> tuple[float, ...]:
        """The price of room for one member."""
        return tuple(part / max(self.gained, 1e-9) for part in self.price)


class Clearing:
    """protected: of some victims the UIDs of those that budgets protect. price: of victims, however many."""

    def __init__(
        self,
        cluster: NodeInfoLister,
        request: Request,
        judge: Judge,
        protected: Callable[[Sequence[Evictable]], set[str]],
        price: Callable[[Sequence[Evictable]], Price],
    ) -> None:
        self._cluster = cluster
        self._request = request
        self._judge = judge
        self._protected = protected
        self._price = price
        self._most = len(request.members)
        self._asked = asked_of(request.members[0].requests) if request.members else {}

    def in_order(self, allowed: Sequence[Evictable]) -> list[list[Evictable]]:
        """All of them, in steps, the cheapest first."""
        nodes = [node.name for node in self._cluster.list()]
        at = {name: row for row, name in enumerate(nodes)}
        here = {at[name]: victims for name, victims in grouped(allowed, attrgetter("node_name")).items()}
        cleared = {row: self._cleared(nodes[row], victims) for row, victims in here.items()}
        by_price = sorted(cleared, key=lambda row: (cleared[row].each, row))
        if not any(each.sizes for each in self._request.sliced):
            return [here[row] for row in by_price]
        holds = self._holding()
        free_ones = [row for row in holds.nonzero()[0].tolist() if row not in cleared]
        for row, node in cleared.items():
            holds[row] = node.holds

        def price(row: int) -> Price:
            return cleared[row].price if row in cleared else FREE

        steps = in_slices(self._cluster, self._request, [*free_ones, *by_price], holds, price)
        order = steps if steps is not None else [(row,) for row in by_price]
        return [[victim for row in rows for victim in here.get(row, ())] for rows in order]

    def _cleared(self, node_name: str, victims: Sequence[Evictable]) -> Cleared:
        """As far as the gang can use it: a pod that a budget protects goes last, one after the last that gave a member room stays."""
        node, asked = self._cluster.get(node_name), {**self._asked, PODS: 1}
        left = {name: free(node, name) for name in asked}
        before = after = _holds(left, asked, self._most)
        taken: list[Evictable] = []
        useful, protected = 0, self._protected(victims)
        for victim in sorted(victims, key=lambda each: (each.kind, each.uid in protected, each.importance)):
            if after >= self._most:
                break
            for name in left:
                left[name] += 1 if name == PODS else victim.info.requests.amount(name)
            taken.append(victim)
            if (holds := _holds(left, asked, self._most)) > after:
                after, useful = holds, len(taken)
        return Cleared(taken[:useful], self._price(taken[:useful]), after, after - before)

    def _holding(self) -> IntColumn:
        """For each node how many members it takes now; none where they may not go."""
        promised = with_pods(self._cluster, self._request.promised)
        shape, _ = judged(MemberClass((self._request.members[0],), None), promised, self._judge)
        return Room.of(promised, self._asked).capacity(self._asked) * shape.but_for_room


def _holds(left: Mapping[str, int], asked: Mapping[str, int], most: int) -> int:
    return max(0, min(most, *(left[name] // amount for name, amount in asked.items())))
