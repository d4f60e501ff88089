"""Victims on one node for a single pod, by rules that know gangs: lone pods first, then what gangs have to spare, then whole gangs.

The guard asks it for the nodes that kube-scheduler offers, where one of its own victims is a gang's. Where no gang is
concerned it comes to kube-scheduler's own choice.
kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from extender.api import corev1, policyv1
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.node_trial import BrokenTrialError, NodeTrial
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY, sort_by_importance
from extender.framework.runtime.framework import Framework
from extender.plugins.coscheduling.preemption.budgets import Budgets
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind


@dataclass(frozen=True, slots=True)
class Selection:
    """victims: on the node, the most important first. elsewhere: the rest of the gangs that break."""

    node_name: str
    victims: tuple[corev1.Pod, ...]
    elsewhere: tuple[Evictable, ...]
    violations: int
    broken: frozenset[str]
    from_gangs: bool

    @property
    def rank(self) -> tuple[bool, int, bool]:
        """The smaller the better; kube-scheduler's criteria decide among equals."""
        return bool(self.broken), self.violations, self.from_gangs

    @property
    def cost(self) -> tuple[int, int, int, int, int, str]:
        """Of those that break gangs, everybody counted who would have to go."""
        everybody = [*self.victims, *(victim.pod for victim in self.elsewhere)]
        return (
            self.violations,
            max(pod.priority for pod in everybody),
            len(self.broken),
            sum(pod.priority + ABOVE_ANY_PRIORITY for pod in everybody),
            len(everybody),
            self.node_name,
        )


class Reselection:
    """For one preemptor on one snapshot. framework: the in-tree filters; nobody else may use it meanwhile."""

    def __init__(
        self,
        framework: Framework,
        preemptor: corev1.Pod,
        snapshot: NodeInfoLister,
        everybody: Sequence[Evictable],
        pdbs: Sequence[policyv1.PodDisruptionBudget],
        *,
        may_evict_elsewhere: bool = True,
        keep_budgets: bool = False,
    ) -> None:
        """may_evict_elsewhere: without it a gang goes only where all of it is on the node.

        keep_budgets: likewise a gang of which a budget protects somebody, since we could not evict the rest of it.
        """
        self._framework = framework
        self._preemptor = preemptor
        self._may_evict_elsewhere = may_evict_elsewhere
        self._keep_budgets = keep_budgets
        self._everybody = everybody
        self._budgets = Budgets(pdbs, everybody)
        self._state = CycleState()
        framework.set_snapshot(snapshot)
        _, self._refused, _ = framework.run_pre_filter_plugins(self._state, preemptor, snapshot.list())

    def on_node(
        self, node: NodeInfo, promised: Iterable[PodInfo] = (), released: Collection[str] = ()
    ) -> Selection | None:
        """None where the pod would not fit whoever went. promised: pods that will be there whoever goes.

        released: UIDs of pods whose room is free without anybody's death.
        """
        if not self._refused.success:
            return None
        here = [victim for victim in self._everybody if victim.node_name == node.name]
        try:
            return self._select(node, here, promised, released)
        except BrokenTrialError:
            return None

    def fits_without(self, node: NodeInfo, released: Collection[str], promised: Iterable[PodInfo] = ()) -> bool:
        """Whether the pod fits once these alone are off the node."""
        if not self._refused.success:
            return False
        try:
            return self._trial(node, promised, released).fits().success
        except BrokenTrialError:
            return False

    def _trial(self, node: NodeInfo, promised: Iterable[PodInfo], released: Collection[str]) -> NodeTrial:
        trial = NodeTrial(self._framework, self._state.clone(), self._preemptor, node.clone())
        for info in node.pods:
            if info.pod.uid in released:
                trial.remove(info)
        counted = {info.pod.uid for info in node.pods} | self._nominated_to(node)
        for info in promised:
            if info.pod.uid not in counted:
                trial.add(info)
        return trial

    def _nominated_to(self, node: NodeInfo) -> set[str]:
        """UIDs of those that the filters count there themselves."""
        nominated = self._framework.nominator.nominated_pods_for_node(node.name)
        return {pod.uid for pod in nominated if pod.priority >= self._preemptor.priority}

    def _select(
        self, node: NodeInfo, here: Sequence[Evictable], promised: Iterable[PodInfo], released: Collection[str]
    ) -> Selection | None:
        trial = self._trial(node, promised, released)
        going = [info for info in node.pods if info.pod.deleting and info.pod.priority < self._preemptor.priority]
        for info in going:
            trial.remove(info)
        gone = [victim for victim in here if victim.kind is not Kind.BREAKING]
        for victim in gone:
            trial.remove(victim.info)
        fits = trial.fits().success
        for gang in [] if fits else self._gangs(here):
            for victim in gang:
                trial.remove(victim.info)
            gone += gang
            fits = trial.fits().success
            if fits:
                break
        if not fits:
            return None
        violating = self._budgets.violating(gone, important_first=True)
        left = self._unspared(trial, gone, violating)
        return self._selection(node.name, left, violating, [info.pod for info in going])

    def _gangs(self, here: Sequence[Evictable]) -> list[list[Evictable]]:
        """Whole gangs that could go, the cheapest first."""
        by_key: dict[str, list[Evictable]] = {}
        for victim in here:
            if victim.kind is Kind.BREAKING:
                by_key.setdefault(victim.gang, []).append(victim)

        whole = {key: [victim for victim in self._everybody if victim.gang == key] for key in by_key}

        def price(key: str) -> tuple[int, int, int, str]:
            highest = max(victim.pod.priority for victim in whole[key])
            return len(self._budgets.violating(whole[key])), highest, len(whole[key]), key

        may = [key for key in by_key if self._all_may_go(whole[key])]
        return [by_key[key] for key in sorted(may, key=price)]

    def _all_may_go(self, whole: Sequence[Evictable]) -> bool:
        """Whether nobody would be left of the gang: kube-scheduler evicts on one node, and the rest is ours."""
        if len({victim.node_name for victim in whole}) == 1:
            return True
        return self._may_evict_elsewhere and not (self._keep_budgets and self._budgets.violating(whole))

    def _unspared(self, trial: NodeTrial, gone: Sequence[Evictable], violating: Collection[str]) -> list[Evictable]:
        """Comes back who can: gangs that would break, whole; whom budgets protect; gangs' surplus; then by importance."""
        left = {victim.uid: victim for victim in gone}
        for gang in reversed(self._gangs(gone)):
            if _all_reprieved(trial, gang):
                for victim in gang:
                    del left[victim.uid]
        singles = [victim for victim in gone if victim.kind is not Kind.BREAKING]
        singles.sort(key=lambda each: (each.uid in violating, each.kind is Kind.SURPLUS, each.importance), reverse=True)
        for victim in singles:
            if trial.reprieved(victim.info):
                del left[victim.uid]
        return list(left.values())

    def _selection(
        self,
        node_name: str,
        victims: Sequence[Evictable],
        violating: Collection[str],
        going: Sequence[corev1.Pod],
    ) -> Selection:
        """Pods that are being deleted are victims that nobody need be told."""
        broken = frozenset(victim.gang for victim in victims if victim.kind is Kind.BREAKING)
        chosen = {victim.uid for victim in victims}
        rest = [victim for victim in self._everybody if victim.gang in broken and victim.uid not in chosen]
        here = [*going, *(victim.pod for victim in [*victims, *rest] if victim.node_name == node_name)]
        sort_by_importance(here)
        return Selection(
            node_name,
            tuple(here),
            tuple(victim for victim in rest if victim.node_name != node_name),
            sum(victim.uid in violating for victim in victims) + len(self._budgets.violating(rest)),
            broken,
            any(victim.kind is Kind.SURPLUS for victim in victims),
        )


def _all_reprieved(trial: NodeTrial, gang: Sequence[Evictable]) -> bool:
    """All or nobody of a gang comes back."""
    for victim in gang:
        trial.add(victim.info)
    if trial.fits().success:
        return True
    for victim in gang:
        trial.remove(victim.info)
    return False
