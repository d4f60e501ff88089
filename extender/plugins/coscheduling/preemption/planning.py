"""Selects victims for a whole gang: the cheapest set with which all its minMember members fit, or no victim at all.

A pure function, like the planner: no lock, no I/O, no log. It runs the planner on copies of the cluster without some pods:

1. Does the gang fit if all pods that it may preempt are gone?
2. How important does the most important victim have to be, at least?
3. On how few, and how cheap, nodes do pods have to go?
4. On these nodes, victims that the gang can do without are spared, the most important first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from operator import attrgetter

from extender.api import policyv1
from extender.framework.hypothetical import Cluster, snapshot_of, with_pods, without_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.preemption.fewest_violations import Budgets, FewestViolations
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY, more_important_pod
from extender.framework.sort_slice import sort_slice
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner import Judge, NoPlacement, Placement, Request
from extender.plugins.coscheduling.planner.domains import NONE, Domains, level_of
from extender.plugins.coscheduling.planner.request import Deadline
from extender.plugins.coscheduling.preemption.clearing import Clearing, Price
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind, grouped, with_their_gangs
from extender.plugins.coscheduling.preemption.sparing import RoomEstimate, Sparing

DOMAINS = 8  # the most domains of the required level in which victims are looked for
BUDGETS_SHARE = DISPENSING_SHARE = 0.2  # of the planner's time budget

Cost = tuple[int, int, int, int, int]
"""(violations, top priority, gangs broken, sum of priorities, victims): the smaller the better."""


@dataclass(frozen=True, slots=True)
class VictimPlan:
    """Where the gang goes once the victims are gone. going: UIDs of pods on its nodes that are terminating already; awaited: those of them
    whose room it needs."""

    placement: Placement
    victims: tuple[Evictable, ...]
    cost: Cost
    going: frozenset[str] = frozenset()
    awaited: frozenset[str] = frozenset()

    @property
    def broken_gangs(self) -> frozenset[str]:
        return frozenset(victim.gang for victim in self.victims if victim.kind is Kind.BREAKING)

    def all_needed(self, placement: Placement) -> bool:
        """Whether each victim is on a node of this placement, or belongs to a gang that the plan breaks."""
        used, broken = set(placement.nodes.values()), self.broken_gangs
        return all(victim.node_name in used or victim.gang in broken for victim in self.victims)


def plan_with_victims(
    cluster: Cluster,
    request: Request,
    judge: Judge,
    evictable: Sequence[Evictable],
    pdbs: Sequence[policyv1.PodDisruptionBudget],
    going: Collection[str] = (),
) -> VictimPlan | NoPlacement:
    """Returns the victims and the placement, or, if no victims help, why the gang would not fit even without all evictable pods.

    going: UIDs of pods that are terminating without our doing; their room counts as free.
    """
    problem = _Problem(snapshot_of(cluster), request, judge, evictable, pdbs, going)
    at_once = problem.plan(())
    if isinstance(at_once, Placement):
        return problem.awaiting(problem.chosen(at_once, ()))
    if not problem.useful:
        return at_once
    if RoomEstimate.applies(request):
        estimate = RoomEstimate(problem.cluster, request, judge, problem.useful)
        if estimate.fits(problem.useful) and (found := problem.search(estimate.fits)) is not None:
            return problem.awaiting(problem.settled(found))
    everything = problem.plan(problem.useful)
    if not isinstance(everything, Placement):
        return everything
    found = problem.search(lambda gone: isinstance(problem.plan(gone), Placement))
    if found is None:  # the planner's time budget ran out during the search: evict what is known to be enough
        found = problem.chosen(everything, problem.unspared(everything, problem.useful))
    return problem.awaiting(problem.settled(found))


Fits = Callable[[Collection[Evictable]], bool]


@dataclass(eq=False)
class _Problem:
    """useful: evictable pods on nodes of the cluster, whose eviction frees room. The others are members of gangs on nodes that are gone,
    and are evicted with the rest of their gang.
    """

    cluster: NodeInfoLister
    request: Request
    judge: Judge
    evictable: Sequence[Evictable]
    pdbs: Sequence[policyv1.PodDisruptionBudget]
    going: Collection[str]

    def __post_init__(self) -> None:
        self._budgets = Budgets(self.pdbs, self.evictable)
        self._as_it_is, gone = self.cluster, frozenset(self.going)
        self._going = [
            Evictable(info, node.name, Kind.LONE)
            for node in (self.cluster.list() if gone else ())
            for info in node.pods
            if info.pod.metadata.uid in gone
        ]
        self.cluster = _without(self.cluster, self._going)
        self._at = {node.name: index for index, node in enumerate(self.cluster.list())}
        self.useful = [victim for victim in self.evictable if victim.node_name in self._at]

    def plan(self, gone: Collection[Evictable]) -> Placement | NoPlacement:
        return planner.plan(_without(self.cluster, gone), self.request, self.judge)

    def search(self, fits: Fits) -> VictimPlan | None:
        """The cheapest plan of all regions; None if there is none. The caller knows that evicting all useful pods is enough."""
        found = [plan for region in self._regions(fits) if (plan := self._in_region(region, fits)) is not None]
        return min(found, key=lambda plan: plan.cost, default=None)

    def _regions(self, fits: Fits) -> Iterator[Sequence[Evictable]]:
        """Sets of pods among which to look for victims: all useful pods, or those of one domain each if the gang has to stay in one."""
        topology = self.request.topology
        level = level_of(topology, topology.required)
        if level is None:
            yield self.useful
            return
        ids = Domains(self.cluster, topology.levels).ids[level]
        domains = grouped(self.useful, lambda victim: int(ids[self._at[victim.node_name]]))
        domains.pop(NONE, None)
        in_order = sorted(domains, key=lambda domain: (self._cost(domains[domain]), domain))
        helpful = (domains[domain] for domain in in_order if fits(domains[domain]))
        yield from islice(helpful, DOMAINS)

    def _in_region(self, region: Sequence[Evictable], fits: Fits) -> VictimPlan | None:
        best = self._among(self._least_important(region, fits), fits)
        if best is None or not best.cost[0]:
            return best
        time = Deadline.of(self.request)
        few = FewestViolations(region, self._budgets, fits, lambda: time.spent(BUDGETS_SHARE)).allowed(best.cost[0])
        others = (self._among(allowed, fits) for allowed in (region, few) if allowed)
        return min((best, *filter(None, others)), key=lambda plan: plan.cost)

    def _among(self, allowed: Sequence[Evictable], fits: Fits) -> VictimPlan | None:
        """The plan with victims of `allowed`, all of which together are enough; None if the planner finds no placement."""
        chosen = self._dispensed(self._cheapest_nodes(allowed, fits), fits)
        placement = self.plan(chosen)
        if not isinstance(placement, Placement):
            return None
        return self.chosen(placement, self.unspared(placement, chosen))

    def _least_important(self, region: Sequence[Evictable], fits: Fits) -> list[Evictable]:
        """The pods of the lowest ranks, as few ranks as it takes: by (violates a budget, priority, breaks a gang)."""
        violating = self._budgets.violating(region)
        rank = {
            victim.uid: (victim.uid in violating, victim.priority, victim.kind is Kind.BREAKING) for victim in region
        }
        ranks = sorted(set(rank.values()))

        def up_to(position: int) -> list[Evictable]:
            return [victim for victim in region if rank[victim.uid] <= ranks[position]]

        return up_to(_first(len(ranks) - 1, lambda position: fits(up_to(position))))

    def _cheapest_nodes(self, allowed: Sequence[Evictable], fits: Fits) -> list[Evictable]:
        """The pods on as few nodes as it takes, in the order of what a node costs for the room that it gives."""
        clearing = Clearing(self.cluster, self.request, self.judge, self._budgets.violating, self._price)
        steps = clearing.in_order(allowed)

        def on(count: int) -> list[Evictable]:
            return [victim for step in steps[:count] for victim in step]

        return on(_first(len(steps), lambda count: fits(on(count))))

    def _dispensed(self, chosen: Sequence[Evictable], fits: Fits) -> list[Evictable]:
        """Leaves out pods, the costliest first, while the gang still fits, if on other nodes, and there is time."""
        started = Deadline.of(self.request)
        left = self._costliest_first(chosen)
        for victim in list(left):
            if started.spent(DISPENSING_SHARE):
                break
            others = [other for other in left if other is not victim]
            if fits(others):
                left = others
        return left

    def _costliest_first(self, victims: Sequence[Evictable]) -> list[Evictable]:
        """Pods whose eviction breaks a gang, then those that a budget protects, then by importance."""
        violating = self._budgets.violating(victims)
        return sorted(
            victims,
            key=lambda each: (each.kind is Kind.BREAKING, each.uid in violating, each.kind, each.importance),
            reverse=True,
        )

    def _price(self, victims: Sequence[Evictable]) -> Price:
        violations, _, gangs, total, count = self._cost(victims)
        return violations, gangs, total, count

    def unspared(self, placement: Placement, gone: Collection[Evictable]) -> list[Evictable]:
        """The pods that have to go for this placement. Pods are spared in the order of `_costliest_first`."""
        used = set(placement.nodes.values())
        order = self._costliest_first([victim for victim in gone if victim.node_name in used])
        sparing = self._sparing(placement, gone)
        return with_their_gangs([victim for victim in order if not sparing.spare(victim)], self.evictable)

    def _sparing(self, placement: Placement, gone: Collection[Evictable]) -> Sparing:
        promised = with_pods(_without(self.cluster, gone), self.request.promised)
        return Sparing(list(promised.list()), self.request, self.judge, placement)

    def settled(self, found: VictimPlan) -> VictimPlan:
        """Spares victims until each is needed where the gang goes.

        With only these victims gone the planner may prefer other nodes, and will do so when the gang is planned after the eviction:
        victims that are in no member's way there stay. Each round has fewer victims.
        """
        for _ in found.victims:
            placement = self.plan(found.victims)
            if not isinstance(placement, Placement):  # the budget ran out
                break
            if found.all_needed(placement):
                return self.chosen(placement, found.victims)
            found = self.chosen(placement, self.unspared(placement, found.victims))
        return found

    def chosen(self, placement: Placement, victims: Sequence[Evictable]) -> VictimPlan:
        ordered = list(victims)
        sort_slice(ordered, lambda a, b: more_important_pod(a.pod, b.pod))
        return VictimPlan(placement, tuple(ordered), self._cost(ordered))

    def awaiting(self, found: VictimPlan) -> VictimPlan:
        """With the pods that are going on its nodes. The gang waits for none beside which it has its places too: the last to go are tried
        first. It waits for all of them if the planner, with the others there, would not go where the victims are.
        """
        used = set(found.placement.nodes.values())
        going = sorted((each for each in self._going if each.node_name in used), key=_end, reverse=True)
        if not going:
            return found
        sparing = self._sparing(found.placement, found.victims)
        needed = [each for each in going if not sparing.spare(each)]
        if len(needed) < len(going):
            left = _without(self._as_it_is, (*found.victims, *needed))
            placement = planner.plan(left, self.request, self.judge)
            if not isinstance(placement, Placement) or not found.all_needed(placement):
                needed = going
        return replace(found, going=frozenset(map(_uid, going)), awaited=frozenset(map(_uid, needed)))

    def _cost(self, victims: Sequence[Evictable]) -> Cost:
        return (
            len(self._budgets.violating(victims)),
            max((victim.priority for victim in victims), default=0),
            len({victim.gang for victim in victims if victim.kind is Kind.BREAKING}),
            sum(victim.priority + ABOVE_ANY_PRIORITY for victim in victims),
            len(victims),
        )


_uid = attrgetter("uid")


def _end(going: Evictable) -> float:
    """A held member that lets go does so at once."""
    stamp = going.pod.metadata.deletion_timestamp
    return stamp.timestamp() if stamp is not None else 0.0


def _without(cluster: NodeInfoLister, gone: Collection[Evictable]) -> NodeInfoLister:
    by_node = grouped(gone, attrgetter("node_name"))
    return without_pods(cluster, {name: {each.uid for each in here} for name, here in by_node.items()})


def _first(last: int, holds: Callable[[int], bool]) -> int:
    """The smallest position for which `holds` is true, by bisection; at `last` it is known to be."""
    return bisect_left(range(last), True, key=holds)
