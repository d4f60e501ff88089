"""What stands in a gang's way, and the least that would have to change: the planner asked again with a relaxed request.

A pure function of frozen values, as the planner itself; FitAnalyses runs it off the event loop, and only when a page asks.
No counterpart upstream.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from extender.api import corev1
from extender.framework.hypothetical import snapshot_of
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import PODS
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.planner.domains import Domains, level_of
from extender.plugins.coscheduling.report.gang_status import Relaxation, amount_text
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import without_refusals
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion

HOSTNAME = "kubernetes.io/hostname"
ANYWHERE = "cluster"  # planner.NoPlacement.fits_at: without any required level
BUDGET_SECONDS = 2.0  # for everything
SHARE_SECONDS = 0.5  # for one question
SHAPES = 3  # kinds of nodes that are tried as further ones


@dataclass(frozen=True, slots=True)
class Analysis:
    """verdict None: it fits, by this placement."""

    verdict: planner.NoPlacement | None
    relaxations: Sequence[Relaxation] = field(default_factory=tuple)
    placement: planner.Placement | None = None


Clock = Callable[[], float]


def analyse(question: PlanQuestion, min_member: int, judge: planner.Judge, clock: Clock = time.monotonic) -> Analysis:
    """min_member: of the group that it is shown for."""
    result = planner.plan(question.cluster, question.request, judge)
    if isinstance(result, planner.Placement):
        return Analysis(None, placement=result)
    return _Relaxing(question, min_member, judge, result, clock).run()


@dataclass(eq=False)
class _Relaxing:
    question: PlanQuestion
    min_member: int
    judge: planner.Judge
    verdict: planner.NoPlacement
    clock: Clock

    def __post_init__(self) -> None:
        self._request = replace(self.question.request, budget_seconds=SHARE_SECONDS)
        self._question = self.question.asking(self._request)
        self._cluster = self.question.cluster
        self._nodes = self.question.cluster.list()
        self._until = self.clock() + BUDGET_SECONDS

    def run(self) -> Analysis:
        found: list[Relaxation] = []
        if self._request.excluded and self._fits(self._cluster, without_refusals(self._request)):
            found.append(Relaxation("Retry", "the places that kube-scheduler refused, tried again in some seconds"))
        elif self._fits_without_others():
            found.append(Relaxation("Reservations", "the places that are promised to others, once they are free"))
        found += [*self._fewer_members(), *self._wider_topology(), *self._more_nodes()]
        return Analysis(self.verdict, tuple(found))

    def _plan(self, cluster: NodeInfoLister, request: planner.Request) -> planner.Placement | None:
        if self.clock() >= self._until:
            return None
        result = planner.plan(cluster, request, self.judge)
        return result if isinstance(result, planner.Placement) else None

    def _fits(self, cluster: NodeInfoLister, request: planner.Request) -> bool:
        return self._plan(cluster, request) is not None

    def _fits_without_others(self) -> bool:
        without = self._question.without_others()
        return self._question.others and self._fits(without.cluster, without.request)

    def _fewer_members(self) -> Iterator[Relaxation]:
        """The planner places as many as fit beyond those that it must, so one answer tells how many that are."""
        if self._request.minima:
            yield from self._lower_minima()
            return
        least = max(1, min(self.verdict.placed, self._request.needed - 1))
        placement = (
            self._plan(self._cluster, replace(self._request, needed=least)) if self._request.needed > 1 else None
        )
        if placement is None:
            return
        asked = self.min_member
        fits = min(asked - 1, asked - self._request.needed + len(placement.nodes))
        yield Relaxation("MinMember", f"minMember {fits} instead of {asked}")

    def _lower_minima(self) -> Iterator[Relaxation]:
        """One minimum lower, and that of the group as a whole with it, all others as they are."""
        for minimum in self._request.minima:
            others = [self._without(minimum, each) for each in self._request.minima if each is not minimum]
            kept = [each for each in others if each.needed > 0]
            needed = max((each.needed for each in kept), default=0)
            placement = self._plan(self._cluster, replace(self._request, minima=kept, needed=needed))
            fits = len(minimum.uids & placement.nodes.keys()) if placement is not None else 0
            left = minimum.asked - minimum.needed + fits
            if placement is not None and 0 < left < minimum.asked:
                yield Relaxation("MinMember", f"{minimum.name} {left} instead of {minimum.asked}")

    def _without(self, dropped: planner.Minimum, other: planner.Minimum) -> planner.Minimum:
        """A role's minimum counts towards that of its group; lowering the group's own leaves its roles' as they are."""
        if not dropped.uids < other.uids:
            return other
        return replace(other, needed=max(0, other.needed - dropped.needed))

    def _wider_topology(self) -> Iterator[Relaxation]:
        required, wider = self._request.topology.required, self.verdict.fits_at
        if self.verdict.slices and wider:
            yield Relaxation("Topology", f"its members in any {self.verdict.level}, without slices")
        elif required and wider:
            text = f"without topology-required {required}"
            if wider != ANYWHERE:
                text = f"topology-required {wider} instead of {required}"
            yield Relaxation("Topology", text)

    def _more_nodes(self) -> Iterator[Relaxation]:
        """Further nodes of the kind that takes the fewest of them."""
        member = self._hardest()
        if member is None or self.verdict.cause is planner.Cause.BUDGET:
            return
        shapes = self._shapes(member)
        if not shapes:
            yield from self._smaller_members(member)
            return
        best: tuple[int, NodeInfo] | None = None
        for template in shapes:
            count = self._count_of(template, member, best[0] - 1 if best else self._request.needed)
            if count and (best is None or count < best[0]):
                best = count, template
        if best is not None:
            yield Relaxation("MoreNodes", self._nodes_text(best[0], best[1], member))

    def _hardest(self) -> PodInfo | None:
        """The member that asks for most of what runs out; all alike in most gangs."""
        resource = self.verdict.resource
        return max(
            self._request.members,
            key=lambda info: (
                info.requests.amount(resource) if resource and resource != PODS else 0,
                info.requests.milli_cpu,
                info.requests.memory,
            ),
            default=None,
        )

    def _shapes(self, member: PodInfo) -> list[NodeInfo]:
        """One empty node of each kind that would take the member, the roomiest first; of the best domain, if one is required."""
        seen: dict[object, NodeInfo] = {}
        for node in self._in_best_domain():
            if node.node is not None:
                seen.setdefault(_kind(node.node), node)
        fitting = []
        for node in seen.values():
            empty = _copy(node, "further-0")
            if planner.capacity_for(empty, member.requests) > 0 and self._passes(member, empty):
                fitting.append(node)
        fitting.sort(key=lambda node: (-planner.capacity_for(_copy(node, "0"), member.requests), node.name))
        return fitting[:SHAPES]

    def _passes(self, member: PodInfo, empty: NodeInfo) -> bool:
        """Beside all others, since filters look at more than the node they judge."""
        if self.clock() >= self._until:
            return False
        trial = self.judge.begin(member.pod, [*self._nodes, empty])
        return trial.filter(empty).success

    def _in_best_domain(self) -> Sequence[NodeInfo]:
        level, domains = self.verdict.level, self.verdict.domains
        levels = self._request.topology.levels
        if not domains or not any(level in (each.name, each.key) for each in levels):
            return self._nodes  # a tree of groups may fail at a level that only the tree asks for
        of, at_level = Domains(self._cluster, levels), level_of(self._request.topology, level)
        best = of.nodes_of(at_level, of.names[at_level].index(domains[0].name)) if at_level is not None else ()
        return [self._nodes[at] for at in best]

    def _count_of(self, template: NodeInfo, member: PodInfo, most: int) -> int:
        """The fewest further nodes of this kind with which the gang fits; 0 where `most` are too few."""
        capacity = planner.capacity_for(_copy(template, "0"), member.requests)
        low, high = max(1, -(-self.verdict.short // capacity)), most
        if low > high or not self._fits_with(template, high):
            return 0
        while low < high:
            middle = (low + high) // 2
            if self._fits_with(template, middle):
                high = middle
            else:
                low = middle + 1
        return high

    def _fits_with(self, template: NodeInfo, count: int) -> bool:
        further = [_copy(template, f"further-{number}") for number in range(count)]
        return self._fits(snapshot_of([*self._nodes, *further]), self._request)

    def _nodes_text(self, count: int, template: NodeInfo, member: PodInfo) -> str:
        resource = self.verdict.resource or next(iter(_asked(member)), PODS)
        amount = amount_text(resource, template.allocatable.amount(resource))
        nodes = "node" if count == 1 else "nodes"
        where = f" in {self.verdict.level} {self.verdict.domains[0].name}" if self.verdict.domains else ""
        return f"{count} more {nodes} with {resource} {amount}{where}, like {template.name}"

    def _smaller_members(self, member: PodInfo) -> Iterator[Relaxation]:
        """No node is large enough for one, however empty."""
        resource = self.verdict.resource
        if not resource or resource == PODS:
            return
        largest = max((node.allocatable.amount(resource) for node in self._nodes), default=0)
        asked = member.requests.amount(resource)
        if not largest:
            wanted = f"nodes with {resource} {amount_text(resource, asked)}"
            yield Relaxation("MoreNodes", f"{wanted}: no node of the cluster offers this resource")
        elif largest < asked:
            text = f"members with at most {resource} {amount_text(resource, largest)} instead of {amount_text(resource, asked)}"
            yield Relaxation("SmallerMembers", f"{text}: no node has more, however empty")


def _kind(node: corev1.Node) -> object:
    """Equal for nodes that differ in their names only."""
    labels = tuple(sorted((key, value) for key, value in node.labels.items() if key != HOSTNAME))
    allocatable = tuple(sorted((name, quantity.text) for name, quantity in node.status.allocatable.items()))
    return labels, allocatable, repr(node.spec.taints), node.spec.unschedulable


def _copy(template: NodeInfo, name: str) -> NodeInfo:
    """The node as it was when it was new, under another name."""
    node = template.node
    if node is None:
        raise ValueError("a node that is gone")
    labels = {**node.labels, **({HOSTNAME: name} if HOSTNAME in node.labels else {})}
    metadata = msgspec.structs.replace(node.metadata, name=name, uid=name, labels=labels)
    return NodeInfo(msgspec.structs.replace(node, metadata=metadata))


def _asked(member: PodInfo) -> list[str]:
    requests = member.requests
    names = [*sorted(requests.scalar), "cpu", "memory", "ephemeral-storage"]
    return [name for name in names if requests.amount(name) > 0]
