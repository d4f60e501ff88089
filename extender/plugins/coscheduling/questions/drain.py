"""What a drain of a node does to gangs: which would fall below minMember, and where their members on it would go.

Each such gang is planned as if its members there waited again, on the cluster without the node: the gangs of higher priority first,
each beside the places that those before it would take. Nothing of it is noted. The page /drain/NODE asks.
No counterpart upstream: kubectl drain knows of pods and budgets only
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import replace as with_

from msgspec import structs

from extender.api import corev1
from extender.framework.hypothetical import with_nodes
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.events.gang_scheduler import GangScheduler
from extender.plugins.coscheduling.planner.request import BUDGET_SECONDS as PLAN_SECONDS
from extender.plugins.coscheduling.questions.budgets import used_up
from extender.plugins.coscheduling.questions.one_at_a_time import OneAtATime
from extender.plugins.coscheduling.questions.places import places_by_name
from extender.plugins.coscheduling.report.fit_analyses import shortfall_of
from extender.plugins.coscheduling.report.gang_report import GangReport
from extender.plugins.coscheduling.report.outlook import DrainedGang, DrainOutlook
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Member
from extender.plugins.coscheduling.state.quorum import minima_missed

BUDGET_SECONDS = 5.0
"""For all gangs of the node; a single plan has its own."""


@dataclass(frozen=True, slots=True)
class _Leaving:
    """A gang as it would be. group: a likeness, in which the members on the node wait. here: these, by UID."""

    group: Group
    here: Mapping[str, PodInfo]
    told: DrainedGang
    priority: int
    scheduler_name: str


@dataclass(eq=False)
class DrainQuestions:
    coscheduling: GangScheduler
    report: GangReport
    one_at_a_time: OneAtATime
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._manager = self.coscheduling.manager
        self._requests = self.coscheduling.rounds.requests
        self._reservations = self.coscheduling.rounds.reservations

    def ask(self, node_name: str) -> DrainOutlook | None:
        """None for a node that is not there. Raises BusyError. Takes as long as a plan for each gang, at most BUDGET_SECONDS in all."""
        given = self.coscheduling.dependencies
        with self.one_at_a_time.turn():
            snapshot = given.newest_snapshot()
            try:
                node = snapshot.get(node_name)
            except KeyError:
                return None
            with self._manager.lock:
                uids = [info.pod.uid for info in node.pods]
                groups = self._manager.groups_with(uids)
                others = sum(not self._manager.is_member(uid) for uid in uids)
                coming = {slot.group for slot in self._manager.slots.on_node(node_name) if slot.group}
                groups += [self._manager.groups[key] for key in sorted(coming - {each.key for each in groups})]
            leaving = [found for group in groups if (found := self._leaving(group, node_name)) is not None]
            leaving.sort(key=lambda each: (-each.priority, each.group.key))
            gangs = list(self._planned(leaving, snapshot, node))
        gangs.sort(key=lambda gang: not gang.below)
        evicting = given.preemption
        budgets = used_up((info.pod for info in node.pods), evicting.pdbs() if evicting is not None else ())
        return DrainOutlook(
            node_name,
            tuple(gangs),
            others,
            node.unschedulable,
            standby=not given.may_plan(),
            budgets=tuple(budgets),
        )

    def _leaving(self, group: Group, node_name: str) -> _Leaving | None:
        """None for a group that is set aside, or of which nothing is on the node. Takes the lock."""
        manager = self._manager
        with manager.lock:
            return manager.quarantine.for_gang(group.key, "page", lambda: self._read(group, node_name), None)

    def _read(self, group: Group, node_name: str) -> _Leaving | None:
        """Lock held."""
        manager, spec = self._manager, self._manager.specs.of(group)
        running = group.assigned | group.starting
        likeness = Group(
            group.key,
            pod_group=group.pod_group,
            in_tree=group.in_tree,
            spec=group.spec,
            standing=manager.line.standing(group),
            steps=group.steps.copy(),
        )
        here: dict[str, PodInfo] = {}
        for uid, member in group.members.items():
            if uid in running and member.node_name == node_name:
                here[uid] = PodInfo(_waiting(member.pod))
                likeness.add(uid, Member(here[uid], member.ref))
            elif uid in running or uid in group.in_permit:
                likeness.add(uid, member)
        coming = [slot.pod.name for slot in manager.slots.on_node(node_name) if slot.group == group.key]
        coming += [group.members[uid].pod.name for uid in group.in_permit if group.held.get(uid) == node_name]
        if not here and not coming:
            return None
        left = running - here.keys()
        known = spec is not None and not spec.invalid
        told = DrainedGang(
            group=group.key,
            min_member=spec.asked if spec is not None else 0,
            here=tuple(sorted(info.pod.name for info in here.values())),
            left=len(left),
            below=bool(here and spec is not None and known and minima_missed(group, spec, left, group.ended.values())),
            fits=not here,
            promised=tuple(sorted(set(coming))),
        )
        name = next(iter(here.values())).pod.spec.scheduler_name if here else ""
        return _Leaving(likeness, here, told, manager.line.priority_of(group), name)

    def _planned(self, leaving: Iterable[_Leaving], snapshot: NodeInfoLister, node: NodeInfo) -> Iterator[DrainedGang]:
        until = self.clock() + BUDGET_SECONDS
        empty = _drained(node)
        taken: list[tuple[str, PodInfo]] = []
        for each in leaving:
            left = until - self.clock()
            if not each.here or each.group.spec is None or each.group.spec.invalid:
                yield each.told
                continue
            if left <= 0:
                yield structs.replace(each.told, asked=False)
                continue
            question = self._question(each, snapshot, empty, taken, min(PLAN_SECONDS, left))
            result = self.report.analyses.plan(question)
            if isinstance(result, planner.NoPlacement):
                yield structs.replace(each.told, reason=result.reason, shortfall=shortfall_of(result))
                continue
            taken += [(name, each.here[uid]) for uid, name in result.nodes.items() if uid in each.here]
            places = places_by_name([each.group], result.nodes)
            yield structs.replace(each.told, fits=True, places=places)

    def _question(
        self,
        leaving: _Leaving,
        snapshot: NodeInfoLister,
        empty: NodeInfo,
        taken: Iterable[tuple[str, PodInfo]],
        seconds: float,
    ) -> PlanQuestion:
        """As for its members there, on the cluster without the node."""
        with self._manager.lock, self._requests.overlays.none_kept():
            asked = self._requests.question((leaving.group,), leaving.scheduler_name, snapshot)
            question = self._reservations.permitted((leaving.group,), asked)
            needed = self._requests.lacks(leaving.group).total
        request = with_(
            question.request,
            needed=needed,
            promised=[*question.request.promised, *taken],
            budget_seconds=seconds,
            tree=None,  # its other groups stay where they are
            foreseen=None,
        )
        return with_(question, request=request, cluster=with_nodes(question.cluster, {empty.name: empty}))


def _waiting(pod: corev1.Pod) -> corev1.Pod:
    """As its successor would be made."""
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=""), status=corev1.PodStatus())


def _drained(node: NodeInfo) -> NodeInfo:
    """Cordoned, and without pods."""
    if node.node is None:
        return node
    spec = structs.replace(node.node.spec, unschedulable=True)
    return NodeInfo(structs.replace(node.node, spec=spec))
