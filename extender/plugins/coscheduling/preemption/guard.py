"""What preemption may not do to gangs: asked of every candidate before a victim dies.

No victim for a gang that has not started: that is planned with all its victims, or not at all. No member that is held in our bind:
such a gang lets go. No fraction of a running gang left over: of victims of one priority lone pods go first, then what gangs
have to spare, then a whole gang. kube-scheduler has no counterpart: its preemption knows single pods only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from extender import metrics
from extender.api import corev1, policyv1
from extender.crash import crashed
from extender.framework.hypothetical import without_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.candidate import Candidate, Victims
from extender.framework.preemption.ordering import sort_by_importance
from extender.framework.runtime.framework import Framework
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import GangVictims
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.dispatch.ordered_steering import OrderedSteering
from extender.plugins.coscheduling.preemption.evictable import (
    Rules,
    evictable_pods,
    releasable,
    running_gangs,
    unbound_members,
)
from extender.plugins.coscheduling.preemption.reselection import Reselection, Selection
from extender.plugins.coscheduling.preemption.rest_of_gangs import RestOfGangs
from extender.plugins.coscheduling.preemption.waiting_preemptors import WaitingPreemptors
from extender.plugins.coscheduling.scheduling.overlay import Overlays
from extender.plugins.coscheduling.scheduling.topology import GangSetDomains
from extender.plugins.coscheduling.state.gang_sets import waits_for_start
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot

log = logging.getLogger(__name__)

PLACE_SECONDS = 30.0  # how long room that was let go for a preemptor is kept for it


class Veto(StrEnum):
    """Why a candidate may not be used. The first four veto all of them, and are a metric's label then."""

    GANG_MEMBER = "gang_member"
    HELD = "held"
    GANG_FRACTION = "gang_fraction"
    OUTSIDE_DOMAIN = "outside_domain"
    COSTLIER = "costlier"


@dataclass(frozen=True, slots=True)
class Release:
    """Held members that are all that is in the way on a node, and the keys of their groups: they let go, and no pod is evicted."""

    node_name: str
    uids: frozenset[str]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Review:
    """usable: what the verb answers. selections: where victims were chosen anew, the best first; empty where
    kube-scheduler's own choice stands. veto: why nothing is usable. breaks: of those usable the one that breaks gangs."""

    usable: Sequence[Candidate] = ()
    selections: Sequence[Selection] = ()
    veto: Veto | None = None
    breaks: Selection | None = None
    release: Release | None = None


@dataclass(eq=False)
class PreemptionGuard:
    """Reads the groups under the manager's lock; asks the filters outside it. One call at a time.

    framework: the in-tree filters, the guard's own. assumed: UIDs of pods on their nodes by our word only.
    """

    manager: PodGroupManager
    holds: Holds
    rest: RestOfGangs
    waiting: WaitingPreemptors
    overlays: Overlays
    framework: Framework
    newest_snapshot: Callable[[], NodeInfoLister] = field(kw_only=True)
    pdbs: Callable[[], Sequence[policyv1.PodDisruptionBudget]] = field(kw_only=True)
    assumed: Callable[[], Collection[str]] = field(kw_only=True)
    steering: OrderedSteering = field(kw_only=True)
    gang_victims: GangVictims = field(kw_only=True, default=GangVictims.WHOLE_OR_SURPLUS)
    domains: GangSetDomains | None = field(kw_only=True, default=None)
    member_may_preempt: Callable[[corev1.Pod, frozenset[str]], None] = field(
        kw_only=True, default=lambda member, candidates: None
    )

    def review(self, preemptor: corev1.Pod, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        """The candidates that may be used, with the victims that they need; empty is a veto.

        Where the look at the gangs raises, those that concern no gang.
        """
        try:
            review = self.assess(preemptor, candidates)
        except Exception:
            crashed("guard", f"preemptor={preemptor.key}")
            review = _own_choice(list(filter(self._concerns_no_gang, candidates)))
        if review.veto is not None:
            metrics.preemption_vetoes.labels(review.veto.value).inc()
            self._note(preemptor, candidates, review.veto)
        if review.release is not None:
            self._let_go(preemptor, review.release)
        if review.breaks is not None:
            log.info("gangs may be preempted preemptor=%s groups=%s", preemptor.key, sorted(review.breaks.broken))
            self.rest.expect(preemptor, review.breaks)
        if not review.usable:
            self._leave_no_candidate(preemptor)
        return review.usable

    def _concerns_no_gang(self, candidate: Candidate) -> bool:
        def gangs() -> bool:
            return any(self.manager.key_of(victim) for victim in candidate.victims.pods)

        return not self.manager.quarantine.for_gang("", "guard", gangs, otherwise=True)

    def _note(self, preemptor: corev1.Pod, candidates: Sequence[Candidate], veto: Veto) -> None:
        if not candidates:
            return
        node_name = candidates[0].name
        if veto is Veto.GANG_MEMBER:
            self.waiting.note_extra(preemptor, node_name)
            self.member_may_preempt(preemptor, frozenset(candidate.name for candidate in candidates))
        elif veto is Veto.GANG_FRACTION:
            victims = [victim for candidate in candidates for victim in candidate.victims.pods]
            with self.manager.lock:
                gangs = {group.key for victim in victims if (group := self.manager.find(victim)) is not None}
            if gangs:
                self.waiting.note_in_want_of_victims(preemptor, node_name, gangs)

    def _leave_no_candidate(self, preemptor: corev1.Pod) -> None:
        """Takes its nomination back. kube-scheduler clears it where it finds no candidate itself, and keeps it where an extender leaves
        none. No pod may have that room then, for as long as this one waits. A place that was promised keeps its nomination: whether
        kube-scheduler knew of it SchedulerFeedback asks, once the refusal is seen."""
        nominated = preemptor.status.nominated_node_name
        with self.manager.lock:
            group = self.manager.find(preemptor)
            if group is not None and preemptor.uid in group.members:
                group.members[preemptor.uid].no_candidate_with = nominated
            if not nominated or self.manager.slots.get(preemptor.uid) or self.manager.is_nominated(preemptor.uid):
                return  # it has none, or it is ours: the plan stands, or takes it back
            self.steering.clear_foreign_nominations(group.key if group is not None else "", [preemptor])
        log.info("nomination taken back pod=%s node=%s", preemptor.key, nominated)
        self.steering.carry_out()

    def assess(self, preemptor: corev1.Pod, candidates: Sequence[Candidate]) -> Review:
        """What `review` answers, and why; nothing comes of it. It costs the pods on the candidates' nodes and the rest of their gangs."""
        manager, snapshot = self.manager, self.newest_snapshot()
        candidates, offered = self._in_its_domain(preemptor, candidates, snapshot), candidates
        if offered and not candidates:
            return Review(veto=Veto.OUTSIDE_DOMAIN)
        victims = {victim.uid for candidate in candidates for victim in candidate.victims.pods}
        nodes = [node for candidate in candidates if (node := _node(snapshot, candidate.name)) is not None]
        with manager.lock:
            if waits_for_start(manager, preemptor):
                return Review(veto=Veto.GANG_MEMBER)
            places = self.overlays.against(preemptor.priority)
            promised = any(
                place.uid != preemptor.uid for candidate in candidates for place in places.on_node(candidate.name)
            )
            groups = manager.groups_with(victims.union(info.pod.uid for node in nodes for info in node.pods))
            unbound, gangs = unbound_members(manager, groups, self.assumed()), running_gangs(manager, groups)
            spared = set(unbound)
            if self.gang_victims is not GangVictims.ANY:
                spared.update(uid for gang in gangs for uid in gang.running)
            if not promised and victims.isdisjoint(spared):
                return _own_choice(candidates)
            cluster, own = places.over(snapshot), manager.slots.get(preemptor.uid)
            released = releasable(manager, groups, preemptor.priority)
        reselection = Reselection(
            self.framework,
            preemptor,
            snapshot,
            without_pods(cluster, {own.node_name: {own.uid}}) if own is not None else cluster,
            evictable_pods(nodes, gangs, Rules(preemptor.priority, self.gang_victims, protected=unbound)),
            self.pdbs(),
            may_evict_elsewhere=self.rest.allowed(),
        )
        return _review(nodes, reselection, released)

    def _in_its_domain(
        self, preemptor: corev1.Pod, candidates: Sequence[Candidate], snapshot: NodeInfoLister
    ) -> Sequence[Candidate]:
        """kube-scheduler asks us of no node that lacks room: that a member may not leave the domain of its gang it is told here."""
        manager = self.manager
        with manager.lock:
            group = manager.find(preemptor)
            if group is None or self.domains is None or waits_for_start(manager, preemptor):
                return candidates
            uid, left = preemptor.uid, self.domains.left
            return [candidate for candidate in candidates if not left(group, uid, candidate.name, snapshot)]

    def _let_go(self, preemptor: corev1.Pod, release: Release) -> None:
        """Of their own accord, and the room is kept for the preemptor."""
        manager = self.manager
        with manager.lock:
            expires = manager.clock() + PLACE_SECONDS
            manager.slots.reserve(Slot(PodInfo(preemptor), "", release.node_name, expires))
            for key in release.groups:
                if (group := manager.groups.get(key)) is not None:
                    self.holds.reject_all(group, messages.PREEMPTED)
        log.info(
            "holds of gangs ended preemptor=%s node=%s members=%d", preemptor.key, release.node_name, len(release.uids)
        )


def _review(nodes: Sequence[NodeInfo], reselection: Reselection, released: Mapping[str, str]) -> Review:
    """released: held members that would let go, UID -> group."""
    release = _release(nodes, reselection, released)
    if release is not None:
        return Review(veto=Veto.HELD, release=release)
    selections = (reselection.on_node(node.name) for node in nodes)
    found = [selection for selection in selections if selection is not None and selection.victims]
    return _of_the_best(found) if found else Review(veto=Veto.GANG_FRACTION)


def _release(nodes: Sequence[NodeInfo], reselection: Reselection, released: Mapping[str, str]) -> Release | None:
    """Where held members are all that is in the way no pod need be evicted: of such nodes the one with the fewest gangs."""
    found: list[tuple[int, int, str, Release]] = []
    for node in nodes:
        held = frozenset(info.pod.uid for info in node.pods if info.pod.uid in released)
        if held and reselection.fits_without(node.name, held):
            groups = tuple(sorted({released[uid] for uid in held}))
            found.append((len(groups), len(held), node.name, Release(node.name, held, groups)))
    return min(found, key=lambda each: each[:3])[-1] if found else None


def _of_the_best(found: Sequence[Selection]) -> Review:
    """All of the best rank: kube-scheduler's choice among them is its own. It knows nothing of victims elsewhere, so of candidates
    that break gangs it is offered the cheapest alone."""
    in_order = sorted(found, key=lambda selection: (selection.rank, selection.cost))
    best = in_order[0]
    usable = [best] if best.broken else [selection for selection in found if selection.rank == best.rank]
    offered = [Candidate(one.node_name, Victims(one.victims, one.violations)) for one in usable]
    return Review(offered, in_order, breaks=best if best.broken else None)


def _node(snapshot: NodeInfoLister, name: str) -> NodeInfo | None:
    try:
        return snapshot.get(name)
    except KeyError:
        return None


def _own_choice(candidates: Sequence[Candidate]) -> Review:
    """kube-scheduler's: no gang is concerned."""
    return Review([_ordered(candidate) for candidate in candidates])


def _ordered(candidate: Candidate) -> Candidate:
    """kube-scheduler reads the first victim as the most important."""
    victims = list(candidate.victims.pods)
    sort_by_importance(victims)
    return Candidate(candidate.name, Victims(tuple(victims), candidate.victims.num_pdb_violations))
