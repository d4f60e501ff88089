"""Searches victims for a gang: what the search is given, what it finds, and why the gang may not preempt.

GangPreemption acts on the result, the pages show it. No counterpart upstream.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from extender.api import corev1, policyv1
from extender.framework.giving_way import GIVING_WAY
from extender.framework.hypothetical import without_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dependencies import PreemptionDependencies
from extender.plugins.coscheduling.events.gang_scheduler import GangScheduler
from extender.plugins.coscheduling.preemption.evictable import (
    Kind,
    Rules,
    RunningGang,
    evictable_pods,
    releasable,
    running_gangs,
    running_members,
    starting_members,
)
from extender.plugins.coscheduling.preemption.planning import VictimPlan, plan_with_victims
from extender.plugins.coscheduling.report.gang_status import PreemptionView, Victim
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.counts.standing import counts_at
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, by_turns

GOING_SECONDS = 60.0  # how much longer than its grace period a pod that is being deleted may take
LONGEST_END_SECONDS = 3600.0  # a pod that is deleted with a longer grace period stays, for all that a plan knows


@dataclass(frozen=True, slots=True)
class VictimQuestion:
    """question: what may be planned: victims open no nodes that are kept free for a gang before it. released: held members of others
    that would let go, UID -> group. starting: UIDs of members that are being bound: they may go as those that run may. closed: UID -> the
    only nodes that a member may have where no pod goes.

    It is older than what is read of the gangs that run: a start that has begun in between keeps its members.
    """

    gang_set: Sequence[Group]
    question: PlanQuestion
    rules: Rules
    released: dict[str, str]
    starting: set[str]
    closed: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Looked:
    """What is shown, and the plan that it was read off; None where no eviction would help, or victims are going."""

    view: PreemptionView
    plan: VictimPlan | None = None


@dataclass(eq=False)
class VictimSearch:
    """Reads the groups under the manager's lock; the search itself takes none but its own."""

    coscheduling: GangScheduler
    dependencies: PreemptionDependencies

    def __post_init__(self) -> None:
        self._manager = self.coscheduling.manager
        self._with = self.coscheduling.dependencies
        self._requests = self.coscheduling.rounds.requests
        self._reservations = self.coscheduling.rounds.reservations
        self._judge = self.coscheduling.dependencies.judges.new()
        self._searching = threading.Lock()  # one search at a time, by its own judge; no other lock is taken under it

    def barred(self, gang_set: Sequence[Group]) -> str:
        """Why the gang set may evict no pod; empty if it may. Lock held."""
        pending = [info.pod for group in gang_set for info in group.pending()]
        if not self.dependencies.rules.enabled:
            return messages.PREEMPTION_OFF
        specs = [self._manager.specs.of(group) for group in gang_set]
        above = [spec for group in gang_set for spec in self._manager.composites.ancestors(group.key)]
        never = any(pod.spec.preemption_policy == "Never" for pod in pending)
        if never or not all(spec.preempts for spec in (*specs, *above) if spec is not None):
            return messages.PREEMPTION_NEVER
        return "" if self.dependencies.evictor.allowed() else messages.PREEMPTION_NOT_PERMITTED

    def situation(self, gang_set: Sequence[Group], scheduler_name: str, snapshot: NodeInfoLister) -> VictimQuestion:
        """Lock held."""
        manager, configured = self._manager, self.dependencies.rules
        priority = min(map(manager.line.priority_of, gang_set))
        started = self.dependencies.wall() - configured.minimum_run_seconds if configured.minimum_run_seconds else None
        question = self._requests.question(gang_set, scheduler_name, snapshot, evicting=True)
        return VictimQuestion(
            gang_set,
            self._reservations.permitted(gang_set, question),
            Rules(priority, configured.gang_victims, started_before=started),
            releasable(manager, manager.groups.values(), priority),
            starting_members(manager.groups.values()),
            self._requests.confined(gang_set, evicting=False),
        )

    def search(self, situation: VictimQuestion) -> VictimPlan | str:
        """Or why no eviction would help. Off the event loop; no lock held."""
        gangs, assumed = self._running_gangs(), set(self.dependencies.assumed())
        with self._searching:
            found: VictimPlan | planner.NoPlacement = self._with.offload(
                self._searched, situation, gangs, assumed, self.dependencies.pdbs()
            )
        if not isinstance(found, VictimPlan):
            late = found.cause is planner.Cause.BUDGET
            return messages.PREEMPTION_OUT_OF_TIME if late else messages.NO_VICTIMS_HELP
        if _contradicts_kube_scheduler(situation, found):
            return messages.NO_VICTIMS_HELP
        return self.gap(situation.gang_set, situation.question.snapshot, found) or found

    def _searched(
        self,
        situation: VictimQuestion,
        gangs: Sequence[RunningGang],
        assumed: AbstractSet[str],
        pdbs: Sequence[policyv1.PodDisruptionBudget],
    ) -> VictimPlan | planner.NoPlacement:
        """On a native thread: every pod of the cluster is looked at.

        Pods that are being deleted, and held members that would let go, give room for nothing.
        """
        question, nodes = situation.question, situation.question.snapshot.list()
        going = assumed & situation.released.keys()
        for node in nodes:
            GIVING_WAY.look_up()
            going |= {info.pod.uid for info in node.pods if info.pod.deleting and self._goes_anyway(info.pod)}
        rules = replace(situation.rules, protected=assumed - situation.starting)
        evictable = evictable_pods(nodes, gangs, rules)
        request = question.request
        if situation.closed:
            names = {victim.node_name for victim in evictable}
            names.update(node.name for node in nodes if any(info.pod.uid in going for info in node.pods))
            request = only_where_pods_go(request, situation.closed, names)
        return plan_with_victims(question.cluster, request, self._judge, evictable, pdbs, going)

    def _running_gangs(self) -> list[RunningGang]:
        """Each as it is at one time, under the lock; others have their turn in between."""
        manager, found = self._manager, list[RunningGang]()
        with manager.lock:
            keys = list(manager.groups)
        for some in by_turns(keys):
            with manager.lock:
                found += running_gangs(manager, [manager.groups[key] for key in some if key in manager.groups])
        return found

    def may_yet(self, situation: VictimQuestion) -> bool:
        """Whether the search may find victims without any event: the gang is kept from nodes for a while, as after a refusal there, or a
        pod that is not evictable now (being bound, or not running for long) will become so. A member that may have no node at all is
        no reason: kube-scheduler asks about it first. No lock held."""
        request = situation.question.request
        if request.excluded or any(request.allowed.values()):
            return True
        bound_by_then = set(self.dependencies.assumed()) - situation.starting - situation.released.keys()
        if situation.rules.started_before is None and not bound_by_then:
            return False
        now, by_then = situation.rules, replace(situation.rules, started_before=None)
        at = {
            uid: counts_at(info.pod.priority, gang.priority)
            for gang in self._running_gangs()
            for uid, (info, _) in gang.running.items()
        }
        return any(
            by_then.may_go(info.pod, at.get(info.pod.uid))
            and (info.pod.uid in bound_by_then or not now.may_go(info.pod, at.get(info.pod.uid)))
            for node in situation.question.snapshot.list()
            for info in node.pods
        )

    def gap(self, gang_set: Sequence[Group], snapshot: NodeInfoLister, found: VictimPlan) -> str:
        """What the cluster would still have too little of for minResources once all have gone, those included for which the gang need not
        wait; empty if nothing: no pod goes in vain."""
        with self._manager.lock:
            specs = [(group, spec) for group in gang_set if (spec := self._manager.specs.of(group)) is not None]
            specs = [(group, spec) for group, spec in specs if spec.min_resources is not None]
        if not specs:
            return ""
        left = without(snapshot, replace(found, awaited=found.going))
        with self._manager.lock:
            names = {name: None for group, spec in specs for name in self._requests.resource_gap(group, spec, left)}
        return messages.resource_gap(names) if names else ""

    def _goes_anyway(self, pod: corev1.Pod) -> bool:
        """One that takes much longer than it was given is not counted on, nor one that was given years."""
        stamp = pod.metadata.deletion_timestamp
        if stamp is None or pod.terminal:
            return False
        return -GOING_SECONDS < stamp.timestamp() - self.dependencies.wall() <= LONGEST_END_SECONDS

    def explain(self, key: str) -> PreemptionView | None:
        """For a page: the victims that the group would need, and why it does not preempt them."""
        looked = self.look(key)
        return looked.view if looked is not None else None

    def look(self, key: str) -> Looked | None:
        """The same, with the plan. None where no member waits."""
        manager, snapshot = self._manager, self._with.newest_snapshot()
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return None
            if group.preempting is not None:
                return Looked(PreemptionView(tuple(Victim(name) for name in group.preempting.victims), under_way=True))
            pods = [info.pod for info in group.pending()]
            if not pods:
                return None
            gang_set = gang_set_of(manager, group)
            why_not = self.barred(gang_set) or self._not_yet(group)
            situation = self.situation(gang_set, min(pods, key=lambda pod: pod.name).spec.scheduler_name, snapshot)
        return self.looked(situation, why_not)

    def looked(self, situation: VictimQuestion, why_not: str) -> Looked:
        """why_not: what keeps the gang from evicting any pod; empty: nothing. No lock held."""
        found = self.search(situation)
        if isinstance(found, str):
            return Looked(PreemptionView(why_not=why_not or found))
        victims = (Victim(each.pod.key, each.node_name, each.pod.priority, each.gang) for each in found.victims)
        return Looked(PreemptionView(tuple(victims), why_not=why_not), found)

    def _not_yet(self, group: Group) -> str:
        since = group.last_diagnosis.since if group.last_diagnosis is not None else 0.0
        delay = self.dependencies.rules.delay_seconds
        return messages.PREEMPTION_DELAYED if since + delay > self._manager.clock() else ""


def only_where_pods_go(
    request: planner.Request, closed: Mapping[str, frozenset[str]], names: AbstractSet[str]
) -> planner.Request:
    """For members to which a preempt call has opened all nodes: each candidate has pods that may go. names: of nodes where pods go."""
    opened = {uid: nodes | names for uid, nodes in closed.items() if uid not in request.allowed}
    return replace(request, allowed={**request.allowed, **opened}) if opened else request


def _contradicts_kube_scheduler(situation: VictimQuestion, found: VictimPlan) -> bool:
    """Whether a member would have a place where kube-scheduler passes it only once pods have gone, and none goes there: it knows something
    that we do not, and room would be kept in vain."""
    closed = situation.closed
    opened = {name for uid, name in found.placement.nodes.items() if uid in closed and name not in closed[uid]}
    if not opened:
        return False
    freed = {victim.node_name for victim in found.victims}
    snapshot = situation.question.snapshot
    return any(all(info.pod.uid not in found.awaited for info in snapshot.get(name).pods) for name in opened - freed)


def still_holds(manager: PodGroupManager, found: VictimPlan, awaited: Collection[str], priority: int) -> bool:
    """Whether the gangs of the victims are as the search has read them, all victims count at less than this priority, and the awaited
    pods go without a word of ours. Lock held."""
    victims = {victim.uid for victim in found.victims}
    if not running_members(manager, found.broken_gangs).keys() <= victims:
        return False  # a member has joined a gang that goes whole, and would be left over
    of_victims = filter(None, map(manager.groups.get, {victim.gang for victim in found.victims}))
    gangs = {gang.key: gang for gang in running_gangs(manager, of_victims)}
    at = {key: gang.priority for key, gang in gangs.items()}
    if any(replace(each, gang_priority=at.get(each.gang)).priority >= priority for each in found.victims):
        return False
    sparing = {victim.gang for victim in found.victims if victim.kind is Kind.SURPLUS} - found.broken_gangs
    if not all(gangs[key].whole_with(gangs[key].running.keys() - victims) for key in sparing & gangs.keys()):
        return False  # it can spare these members no more
    staying = (group.assigned | group.starting | group.held.keys() for group in manager.groups_with(awaited))
    return all(uids.isdisjoint(awaited) for uids in staying)  # else one that was to let go has started, or holds on


def without(cluster: NodeInfoLister, found: VictimPlan) -> NodeInfoLister:
    """The cluster once the gang has the room that it waits for."""
    uids = {victim.uid for victim in found.victims} | found.awaited
    here = {node.name: {info.pod.uid for info in node.pods if info.pod.uid in uids} for node in cluster.list()}
    return without_pods(cluster, {name: gone for name, gone in here.items() if gone})


def pods_on(cluster: NodeInfoLister, uids: AbstractSet[str]) -> Iterator[PodInfo]:
    return (info for node in cluster.list() for info in node.pods if info.pod.uid in uids)
