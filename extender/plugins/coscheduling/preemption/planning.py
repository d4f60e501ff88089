"""Victims for a whole gang: the cheapest that let all its minMember members fit, or none at all.

A pure function, run as the planner is: no lock, no I/O, no log. It asks the planner about clusters in which some pods are
gone: first whether anything helps, then how important the most important victim has to be, then on how few and how cheap
nodes; on those, whoever need not go is spared, the most important first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from extender.api import policyv1
from extender.framework.node_info import NodeInfo
from extender.framework.preemption.disruption_budgets import split_by_violation
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY, more_important_pod
from extender.framework.sort_slice import sort_slice
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner import Judge, Placement, Request, Verdict
from extender.plugins.coscheduling.planner.request import Deadline
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind, with_their_gangs
from extender.plugins.coscheduling.preemption.sparing import Sparing

DISPENSING_SHARE = 0.2  # of the planner's time budget

Cost = tuple[int, int, int, int, int]
"""(violations, top priority, gangs broken, sum of priorities, victims): the smaller the better."""


@dataclass(frozen=True, slots=True)
class VictimPlan:
    """Where the gang goes once the victims are gone. awaited: UIDs of pods on these nodes that are going already."""

    placement: Placement
    victims: tuple[Evictable, ...]
    cost: Cost
    awaited: frozenset[str] = frozenset()

    @property
    def broken_gangs(self) -> frozenset[str]:
        return frozenset(victim.gang for victim in self.victims if victim.kind is Kind.BREAKING)


def plan_with_victims(
    nodes: Sequence[NodeInfo],
    request: Request,
    judge: Judge,
    evictable: Sequence[Evictable],
    pdbs: Sequence[policyv1.PodDisruptionBudget],
    going: Collection[str] = (),
) -> VictimPlan | Verdict:
    """going: UIDs of pods that give their room back without anybody's doing; their room counts as free.

    The verdict is that of the cluster without anybody who may go: then nobody goes.
    """
    return _Problem(nodes, request, judge, evictable, pdbs, going).solve()


class _Problem:
    def __init__(
        self,
        nodes: Sequence[NodeInfo],
        request: Request,
        judge: Judge,
        evictable: Sequence[Evictable],
        pdbs: Sequence[policyv1.PodDisruptionBudget],
        going: Collection[str],
    ) -> None:
        self._request = request
        self._judge = judge
        self._pdbs = pdbs
        self._evictable = evictable
        gone = frozenset(going)
        self._left_from = {
            info.pod.metadata.uid: node.name
            for node in (nodes if gone else ())
            for info in node.pods
            if info.pod.metadata.uid in gone
        }
        self._nodes = [_without(node, gone) for node in nodes] if gone else list(nodes)
        self._at = {node.name: index for index, node in enumerate(self._nodes)}

    def solve(self) -> VictimPlan | Verdict:
        free = self._plan(())
        if isinstance(free, Placement):
            return self._chosen(free, ())
        everything = self._plan(self._evictable)
        if not isinstance(everything, Placement):
            return everything
        best = self._among(self._least_important(), everything)
        if best.cost[0]:  # a pod of higher priority may save a budget
            best = min(best, self._among(self._evictable, everything), key=lambda plan: plan.cost)
        return best

    def _among(self, allowed: Sequence[Evictable], everything: Placement) -> VictimPlan:
        """A plan with victims from among these, whose going is known to help."""
        chosen = self._dispensed(self._cheapest_nodes(allowed))
        placement = self._plan(chosen)
        if not isinstance(placement, Placement):  # the planner's budget ran out half way: what is known to do does
            chosen, placement = list(self._evictable), everything
        return self._chosen(placement, self._unspared(placement, chosen))

    def _plan(self, gone: Collection[Evictable]) -> Placement | Verdict:
        return planner.plan(self._stripped(gone), self._request, self._judge)

    def _fits_without(self, gone: Collection[Evictable]) -> bool:
        return isinstance(self._plan(gone), Placement)

    def _stripped(self, gone: Collection[Evictable]) -> list[NodeInfo]:
        nodes = list(self._nodes)
        for name, uids in _by_node(gone).items():
            nodes[self._at[name]] = _without(nodes[self._at[name]], uids)
        return nodes

    def _least_important(self) -> list[Evictable]:
        """The smallest set of the kind 'everybody up to here' that helps: budgets first, then priority, then gangs."""
        violating = self._violating(self._evictable)

        def rank(victim: Evictable) -> tuple[bool, int, bool]:
            return victim.uid in violating, victim.pod.priority, victim.kind is Kind.BREAKING

        ranks = sorted({rank(victim) for victim in self._evictable})

        def up_to(position: int) -> list[Evictable]:
            return [victim for victim in self._evictable if rank(victim) <= ranks[position]]

        return up_to(_first(len(ranks) - 1, lambda position: self._fits_without(up_to(position))))

    def _violating(self, victims: Sequence[Evictable]) -> set[str]:
        """Those beyond what their budgets allow, if all went: the least important use the budget up."""
        infos = [victim.info for victim in victims]
        sort_slice(infos, lambda a, b: more_important_pod(b.pod, a.pod))
        return {info.pod.metadata.uid for info in split_by_violation(infos, self._pdbs)[0]}

    def _cheapest_nodes(self, allowed: Sequence[Evictable]) -> list[Evictable]:
        """Who goes if only as many nodes are cleared as it takes, the cheapest for what they give first."""
        by_node: dict[str, list[Evictable]] = {}
        for victim in allowed:
            by_node.setdefault(victim.node_name, []).append(victim)
        order = sorted(by_node, key=lambda name: (self._price(name, by_node[name]), self._at[name]))

        def on(count: int) -> list[Evictable]:
            return [victim for name in order[:count] for victim in by_node[name]]

        return on(_first(len(order), lambda count: self._fits_without(on(count))))

    def _dispensed(self, chosen: Sequence[Evictable]) -> list[Evictable]:
        """Without those that another placement can do without, the costliest first, for as long as there is time."""
        started = Deadline.of(self._request)
        left = self._costliest_first(chosen)
        for victim in list(left):
            if started.spent(DISPENSING_SHARE):
                break
            others = [other for other in left if other is not victim]
            if self._fits_without(others):
                left = others
        return left

    def _costliest_first(self, victims: Sequence[Evictable]) -> list[Evictable]:
        """Whoever breaks a gang, then whom a budget protects, then by importance."""
        violating = self._violating(victims)

        def before(a: Evictable, b: Evictable) -> bool:
            first = a.kind is Kind.BREAKING, a.uid in violating, a.kind
            second = b.kind is Kind.BREAKING, b.uid in violating, b.kind
            return first > second if first != second else more_important_pod(a.pod, b.pod)

        ordered = list(victims)
        sort_slice(ordered, before)
        return ordered

    def _price(self, node_name: str, victims: Sequence[Evictable]) -> tuple[float, ...]:
        """Of clearing a node as far as the gang can use it, for each member that finds room there by it."""
        node = self._nodes[self._at[node_name]]
        asked = self._request.members[0].requests
        most = len(self._request.members)
        before = min(most, planner.capacity_for(node, asked))
        after, taken = before, []
        node = node.clone()
        for victim in _cheapest_first(victims):
            if after >= most:
                break
            node.remove_pod(victim.pod)
            taken.append(victim)
            after = min(most, planner.capacity_for(node, asked))
        gained = max(after - before, 1e-9)
        violations, _, gangs, total, count = self._cost(taken)
        return violations / gained, gangs / gained, total / gained, count / gained

    def _unspared(self, placement: Placement, gone: Collection[Evictable]) -> list[Evictable]:
        """Who of those has to go for this placement. Whoever breaks a gang is asked about first, then by importance."""
        used = set(placement.nodes.values())
        order = self._costliest_first([victim for victim in gone if victim.node_name in used])
        sparing = Sparing(self._stripped(gone), self._request, self._judge, placement)
        return with_their_gangs([victim for victim in order if not sparing.spare(victim)], self._evictable)

    def _chosen(self, placement: Placement, victims: Sequence[Evictable]) -> VictimPlan:
        used = set(placement.nodes.values())
        awaited = frozenset(uid for uid, name in self._left_from.items() if name in used)
        ordered = list(victims)
        sort_slice(ordered, lambda a, b: more_important_pod(a.pod, b.pod))
        return VictimPlan(placement, tuple(ordered), self._cost(ordered), awaited)

    def _cost(self, victims: Sequence[Evictable]) -> Cost:
        return (
            len(self._violating(victims)),
            max((victim.pod.priority for victim in victims), default=0),
            len({victim.gang for victim in victims if victim.kind is Kind.BREAKING}),
            sum(victim.pod.priority + ABOVE_ANY_PRIORITY for victim in victims),
            len(victims),
        )


def _first(last: int, holds: Callable[[int], bool]) -> int:
    """The smallest position at which it holds; `last` is known to."""
    return bisect_left(range(last), True, key=holds)


def _by_node(victims: Collection[Evictable]) -> dict[str, set[str]]:
    uids: dict[str, set[str]] = {}
    for victim in victims:
        uids.setdefault(victim.node_name, set()).add(victim.uid)
    return uids


def _without(node: NodeInfo, uids: Collection[str]) -> NodeInfo:
    """A copy without these pods; the node itself where it has none of them."""
    here = [info for info in node.pods if info.pod.metadata.uid in uids]
    if not here:
        return node
    node = node.clone()
    for info in here:
        node.remove_pod(info.pod)
    return node


def _cheapest_first(victims: Sequence[Evictable]) -> list[Evictable]:
    ordered = list(victims)
    sort_slice(ordered, lambda a, b: a.kind < b.kind if a.kind != b.kind else more_important_pod(b.pod, a.pod))
    return ordered
