"""What preemption may not do to gangs: asked of every candidate before a victim dies.

No victim for a gang that has no plan: that is planned with all its victims, or not at all. Nobody who is held in our bind:
such a gang lets go. No fraction of a running gang left over: lone pods go first, then what gangs have to spare, then a whole
gang. kube-scheduler has no counterpart: its preemption knows single pods only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from extender import metrics
from extender.api import corev1, policyv1
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.ordering import sort_by_importance
from extender.framework.runtime.framework import Framework
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.admission import Admission
from extender.plugins.coscheduling.barrier import Barrier
from extender.plugins.coscheduling.ledger import Reservation
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.preemption.evictable import Evictable, GangVictims, Rules, evictable_pods
from extender.plugins.coscheduling.preemption.reselection import Reselection, Selection
from extender.plugins.coscheduling.preemption.rest_of_gangs import RestOfGangs
from extender.plugins.coscheduling.preemption.running_gangs import releasable, running_gang, running_gangs

log = logging.getLogger(__name__)

PLACE_SECONDS = 30.0  # how long room that was let go for a preemptor is kept for it


@dataclass(frozen=True, slots=True)
class OfferedCandidate:
    """A node and the pods on it that would be evicted."""

    node_name: str
    victims: tuple[corev1.Pod, ...]
    pdb_violations: int = 0


@dataclass(frozen=True, slots=True)
class _Concerned:
    """What of the gangs a preemptor may touch. released: held members that would let go, UID -> group."""

    everybody: Sequence[Evictable]
    released: Mapping[str, str]
    promised: Mapping[str, Sequence[PodInfo]]


class PreemptionGuard:
    """Reads the groups under the manager's lock; asks the filters outside it. One call at a time."""

    def __init__(
        self,
        manager: PodGroupManager,
        admission: Admission,
        barrier: Barrier,
        rest: RestOfGangs,
        framework: Framework,
        *,
        newest_snapshot: Callable[[], NodeInfoLister],
        pdbs: Callable[[], Sequence[policyv1.PodDisruptionBudget]],
        assumed: Callable[[], Collection[str]],
        gang_victims: GangVictims = GangVictims.WHOLE_OR_SURPLUS,
    ) -> None:
        """framework: the in-tree filters, the guard's own. assumed: UIDs of pods on their nodes by our word only."""
        self._manager = manager
        self._admission = admission
        self._barrier = barrier
        self._rest = rest
        self._framework = framework
        self._newest_snapshot = newest_snapshot
        self._pdbs = pdbs
        self._assumed = assumed
        self._gang_victims = gang_victims

    def review(self, preemptor: corev1.Pod, candidates: Sequence[OfferedCandidate]) -> list[OfferedCandidate]:
        """The candidates that may be used, with the victims that they need; empty is a veto."""
        if self._admission.waits_for_plan(preemptor):
            return self._veto("gang_member")
        manager = self._manager
        victims = [victim for candidate in candidates for victim in candidate.victims]
        with manager.lock:
            groups = {group.key: group for victim in victims if (group := manager.find(victim)) is not None}
            if not groups:
                return [_ordered(candidate) for candidate in candidates]
            unbound = self._unbound()
            gangs = (running_gang(manager, group) for group in groups.values())
            in_gangs = {uid for gang in gangs if gang is not None and gang.complete for uid in gang.running}
        spared = unbound if self._gang_victims is GangVictims.ANY else unbound | in_gangs
        if not any(victim.uid in spared for victim in victims):
            return [_ordered(candidate) for candidate in candidates]
        return self._reselected(preemptor, candidates, unbound)

    def _unbound(self) -> set[str]:
        """Members in our bind for their gang's sake, or let go this moment. Lock held.

        A single pod is in our bind only while it is being bound.
        """
        held = {uid for group in self._manager.groups.values() for uid in group.held}
        return held | {uid for uid in self._assumed() if self._manager.is_member(uid)}

    def _veto(self, reason: str) -> list[OfferedCandidate]:
        metrics.preemption_vetoes.labels(reason).inc()
        return []

    def _reselected(
        self, preemptor: corev1.Pod, candidates: Sequence[OfferedCandidate], unbound: Collection[str]
    ) -> list[OfferedCandidate]:
        snapshot = self._newest_snapshot()
        nodes = [node for candidate in candidates if (node := _node(snapshot, candidate.node_name)) is not None]
        concerned = self._concerned(preemptor, nodes, unbound)
        reselection = Reselection(
            self._framework,
            preemptor,
            snapshot,
            concerned.everybody,
            self._pdbs(),
            may_evict_elsewhere=self._rest.allowed(),
        )
        if self._let_go(preemptor, nodes, reselection, concerned):
            return self._veto("held")
        found = [
            selection
            for node in nodes
            if (selection := reselection.on_node(node, concerned.promised.get(node.name, ()))) is not None
            and selection.victims
        ]
        if not found:
            return self._veto("gang_fraction")
        best = min(selection.rank for selection in found)
        usable = [selection for selection in found if selection.rank == best]
        if usable[0].broken:
            usable = [self._whole_gang(preemptor, usable)]
        return [OfferedCandidate(one.node_name, one.victims, one.violations) for one in usable]

    def _concerned(self, preemptor: corev1.Pod, nodes: Sequence[NodeInfo], unbound: Collection[str]) -> _Concerned:
        manager = self._manager
        rules = Rules(preemptor.priority, self._gang_victims, protected=unbound)
        promised: dict[str, list[PodInfo]] = {}
        with manager.lock:
            gangs = running_gangs(manager)
            released = releasable(manager, preemptor.priority)
            for place in manager.ledger:
                if place.priority >= preemptor.priority and place.uid != preemptor.uid:
                    promised.setdefault(place.node_name, []).append(place.pod_info)
        return _Concerned(evictable_pods(nodes, gangs, rules), released, promised)

    def _let_go(
        self, preemptor: corev1.Pod, nodes: Sequence[NodeInfo], reselection: Reselection, concerned: _Concerned
    ) -> bool:
        """Where held members are all that is in the way nobody need die: their gangs let go, and the room is kept."""
        found = []
        for node in nodes:
            held = {info.pod.uid for info in node.pods if info.pod.uid in concerned.released}
            promised = concerned.promised.get(node.name, ())
            if held and reselection.fits_without(node, held, promised):
                found.append((len({concerned.released[uid] for uid in held}), len(held), node.name, held))
        if not found:
            return False
        _, _, node_name, held = min(found, key=lambda each: each[:3])
        manager = self._manager
        with manager.lock:
            expires = manager.clock() + PLACE_SECONDS
            manager.ledger.reserve(Reservation(PodInfo(preemptor), "", node_name, expires))
            for key in sorted({concerned.released[uid] for uid in held}):
                if (group := manager.groups.get(key)) is not None:
                    self._barrier.reject_all(group, messages.PREEMPTED)
        log.info("held gangs let go preemptor=%s node=%s members=%d", preemptor.key, node_name, len(held))
        return True

    def _whole_gang(self, preemptor: corev1.Pod, usable: Sequence[Selection]) -> Selection:
        """kube-scheduler knows nothing of victims elsewhere: of candidates that break gangs it is offered the best alone."""
        best = min(usable, key=lambda selection: selection.cost)
        log.info("gang may be preempted preemptor=%s groups=%s", preemptor.key, " ".join(sorted(best.broken)))
        self._rest.expect(preemptor, best)
        return best


def _node(snapshot: NodeInfoLister, name: str) -> NodeInfo | None:
    try:
        return snapshot.get(name)
    except KeyError:
        return None


def _ordered(candidate: OfferedCandidate) -> OfferedCandidate:
    """kube-scheduler reads the first victim as the most important."""
    victims = list(candidate.victims)
    sort_by_importance(victims)
    return OfferedCandidate(candidate.node_name, tuple(victims), candidate.pdb_violations)
