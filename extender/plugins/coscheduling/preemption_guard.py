"""What preemption may not do to gangs: asked of every candidate before a victim dies.

No victim for a gang that cannot start; nobody who is held in our bind; no fraction of a running gang left over.
kube-scheduler has no counterpart: its preemption knows single pods only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from extender import metrics
from extender.api import corev1
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.barrier import Barrier
from extender.plugins.coscheduling.collaborators import Collaborators
from extender.plugins.coscheduling.pod_group_manager import Group, PodGroupManager


@dataclass(frozen=True, slots=True)
class OfferedCandidate:
    """A node and the pods on it that kube-scheduler would evict."""

    node_name: str
    victims: tuple[corev1.Pod, ...]
    pdb_violations: int = 0


class PreemptionGuard:
    """Reads the groups under the manager's lock; plans outside it."""

    def __init__(
        self,
        manager: PodGroupManager,
        collaborators: Collaborators,
        barrier: Barrier,
        is_assumed: Callable[[corev1.Pod], bool],
    ) -> None:
        """is_assumed: whether a pod is on its node by our word only, not by the API's."""
        self._manager = manager
        self._is_assumed = is_assumed
        self._with = collaborators
        self._barrier = barrier

    def review(self, preemptor: corev1.Pod, candidates: Sequence[OfferedCandidate]) -> list[OfferedCandidate]:
        """The candidates that may be used, with the victims that they need; empty is a veto."""
        snapshot = self._with.newest_snapshot()
        if not self._can_start(preemptor, snapshot):
            metrics.preemption_vetoes.labels("gang_cannot_start").inc()
            return []
        usable, held = [], []
        unbound = {v.uid for candidate in candidates for v in candidate.victims if self._is_assumed(v)}
        with self._manager.lock:
            for candidate in candidates:
                groups = self._held_groups(candidate)
                if groups or any(victim.uid in unbound for victim in candidate.victims):
                    held.append((candidate, groups))
                    continue
                whole = self._without_fractions(candidate, snapshot)
                if whole is not None:
                    usable.append(whole)
            if not usable and held:
                self._release(held)
        if not usable:
            metrics.preemption_vetoes.labels("held" if held else "gang_fraction").inc()
        return usable

    def _can_start(self, preemptor: corev1.Pod, snapshot: NodeInfoLister) -> bool:
        """A gang member may evict only if its whole gang fits once everything of lower priority is out of the way."""
        manager = self._manager
        with manager.lock:
            group = manager.group_of(preemptor)
            if group is None:
                return True
            spec = manager.spec(group)
            if spec is None or spec.invalid:
                return False
            placed = group.assigned() | set(group.held)
            members = [
                info
                for info in manager.plannable(group, preemptor.spec.scheduler_name)
                if info.pod.uid not in placed and not info.pod.gated
            ]
            needed = spec.min_member - len(placed)
            if needed <= 0:
                return True
            if len(members) < needed:
                return False
            priority = min(info.pod.priority for info in members)
            if any(info.pod.spec.preemption_policy == "Never" for info in members):
                return False
        request = planner.Request(members=members, needed=needed)
        nodes = [_without_lower(node, priority) for node in snapshot.list()]
        result = self._with.offload(planner.plan, nodes, request, self._with.judge)
        return isinstance(result, planner.Placement)

    def _held_groups(self, candidate: OfferedCandidate) -> set[str]:
        """Keys of the groups of which a victim waits in our bind: it would be deleted through the API.

        One that is let go this moment is assumed still, and held no longer; it is not to die either.
        """
        return {
            group.key
            for group in self._manager.groups.values()
            for victim in candidate.victims
            if victim.uid in group.held
        }

    def _release(self, held: Sequence[tuple[OfferedCandidate, set[str]]]) -> None:
        """Where all victims of a candidate are held nobody need die: their gangs let go, and the room is free at once."""
        for candidate, groups in held:
            waiting = {uid for key in groups for uid in self._manager.groups[key].held}
            if groups and all(victim.uid in waiting for victim in candidate.victims):
                for key in groups:
                    self._barrier.reject_all(self._manager.groups[key], messages.PREEMPTED)
                return

    def _without_fractions(self, candidate: OfferedCandidate, snapshot: NodeInfoLister) -> OfferedCandidate | None:
        """The candidate with each broken gang taken whole; None where a member runs elsewhere and would be left over."""
        victims = {victim.uid: victim for victim in candidate.victims}
        try:
            here = {info.pod.uid: info.pod for info in snapshot.get(candidate.node_name).pods}
        except KeyError:
            return None
        for group in self._broken(set(victims)):
            rest = group.assigned() - set(victims)
            if not rest <= set(here):
                return None
            victims.update((uid, here[uid]) for uid in rest)
        ordered = sorted(victims.values(), key=_importance)
        return OfferedCandidate(candidate.node_name, tuple(ordered), candidate.pdb_violations)

    def _broken(self, victims: set[str]) -> list[Group]:
        """Groups that would run with fewer than minMember."""
        broken = []
        for group in self._manager.groups.values():
            assigned = group.assigned()
            spec = self._manager.spec(group)
            if spec is None or not assigned & victims:
                continue
            left = len(assigned - victims)
            if 0 < left < spec.min_member <= len(assigned):
                broken.append(group)
        return broken


def _importance(pod: corev1.Pod) -> tuple[int, float, str]:
    """Highest priority first: kube-scheduler reads the first victim as the highest."""
    start = pod.status.start_time
    return -pod.priority, start.timestamp() if start else float("inf"), pod.uid


def _without_lower(node: NodeInfo, priority: int) -> NodeInfo:
    lower: list[PodInfo] = [info for info in node.pods if info.pod.priority < priority]
    if not lower:
        return node
    node = node.clone()
    for info in lower:
        node.remove_pod(info.pod)
    return node
