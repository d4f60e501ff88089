"""Victims on one node for a single pod, by kube-scheduler's order and rules that know gangs.

As few budgets violated as will do, then the lowest top priority; of victims up to that priority lone pods first, then what gangs
have to spare, then whole gangs. The guard asks it for the nodes that kube-scheduler offers, where one of its own victims is a
gang's. Where no gang is concerned it comes to kube-scheduler's own choice.
kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode)
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter, itemgetter

from extender.api import corev1, policyv1
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.preemption.fewest_violations import Budgets
from extender.framework.preemption.node_trial import BrokenTrialError, NodeTrial
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY, sort_by_importance
from extender.framework.runtime.framework import Framework
from extender.plugins.coscheduling.preemption.evictable import Evictable, Kind, grouped


@dataclass(frozen=True, slots=True)
class Selection:
    """victims: on the node, the most important first. elsewhere: the rest of the gangs that break.

    priorities: at which the victims count, those elsewhere among them.
    """

    node_name: str
    victims: tuple[corev1.Pod, ...]
    elsewhere: tuple[Evictable, ...]
    violations: int
    broken: frozenset[str]
    from_gangs: bool
    priorities: tuple[int, ...] = ()

    @property
    def rank(self) -> tuple[int, int, int, bool]:
        """The smaller the better: kube-scheduler's first two criteria, then what becomes of gangs. Its other criteria decide
        among equals."""
        return self.violations, max(self.priorities, default=0), len(self.broken), self.from_gangs

    @property
    def cost(self) -> tuple[int, int, str]:
        """kube-scheduler's next criteria, for candidates that break gangs: it does not know all of their victims."""
        return sum(priority + ABOVE_ANY_PRIORITY for priority in self.priorities), len(self.priorities), self.node_name


@dataclass(eq=False)
class Reselection:
    """For one preemptor on one snapshot. framework: the in-tree filters; no other caller may use it meanwhile.

    cluster: the snapshot with the places of others in it that hold against the preemptor. may_evict_elsewhere: without it a gang
    goes only where all of it is on the node.
    """

    framework: Framework
    preemptor: corev1.Pod
    snapshot: NodeInfoLister
    cluster: NodeInfoLister
    all_evictable: Sequence[Evictable]
    pdbs: Sequence[policyv1.PodDisruptionBudget]
    may_evict_elsewhere: bool = field(kw_only=True, default=True)

    def __post_init__(self) -> None:
        self._whole = grouped(self.all_evictable, attrgetter("gang"))
        self._by_node = grouped(self.all_evictable, attrgetter("node_name"))
        self._budgets = Budgets(self.pdbs, self.all_evictable)
        self._state = CycleState()
        self.framework.set_snapshot(self.cluster)
        _, self._refused, _ = self.framework.run_pre_filter_plugins(self._state, self.preemptor, self.cluster.list())

    def on_node(self, name: str) -> Selection | None:
        """None where the pod would not fit whichever pods went."""
        if not self._refused.success:
            return None
        try:
            return self._select(name)
        except BrokenTrialError:
            return None

    def fits_without(self, name: str, released: Collection[str]) -> bool:
        """Whether the pod fits on the node once these alone (UIDs) are off it."""
        if not self._refused.success:
            return False
        try:
            return self._trial(name, released).fits().success
        except BrokenTrialError:
            return False

    def _trial(self, name: str, released: Collection[str] = ()) -> NodeTrial:
        """Leaves out the slots of pods that are nominated to the node: the filters count nominated pods themselves."""
        node = self.cluster.get(name)
        trial = NodeTrial(self.framework, self._state.clone(), self.preemptor, node.clone())
        nominated = {
            pod.uid
            for pod in self.framework.nominator.nominated_pods_for_node(name)
            if pod.priority >= self.preemptor.priority
        }
        nominated.difference_update(info.pod.uid for info in self.snapshot.get(name).pods)
        for info in node.pods:
            if info.pod.uid in released or info.pod.uid in nominated:
                trial.remove(info)
        return trial

    def _select(self, name: str) -> Selection | None:
        trial, here = self._trial(name), self.snapshot.get(name).pods
        going = [info for info in here if info.pod.deleting and info.pod.priority < self.preemptor.priority]
        for info in going:
            trial.remove(info)
        gone = self._removed(trial, self._by_node.get(name, ()))
        if gone is None:
            return None
        violating = self._budgets.violating(gone, important_first=True)
        left = self._unspared(trial, gone, violating)
        return self._selection(name, left, violating, [info.pod for info in going])

    def _removed(self, trial: NodeTrial, here: Sequence[Evictable]) -> list[Evictable] | None:
        """Clears the node as far as it takes, the cheapest first; None if that is not far enough.

        Where there is no gang at once, as kube-scheduler does: then all that need not go comes back.
        """
        gone: list[Evictable] = []
        for step in self._steps(here):
            for victim in step:
                trial.remove(victim.info)
            gone += step
            if trial.fits().success:
                return gone
        return gone if not gone and trial.fits().success else None

    def _steps(self, here: Sequence[Evictable]) -> list[list[Evictable]]:
        """Victims of equal cost by kube-scheduler's first two criteria, the cheapest first; a gang's members at once."""
        singles, gangs = [victim for victim in here if victim.kind is not Kind.BREAKING], self._gangs(here)
        if not gangs:
            return [singles] if singles else []
        together = [*singles, *(victim for gang in gangs for victim in gang)]
        violating = self._budgets.violating(together, important_first=True)
        ranked = [((victim.uid in violating, victim.priority), [victim]) for victim in singles]
        for gang in gangs:
            violates = bool(self._budgets.violating(self._whole[gang[0].gang]))
            ranked.append(((violates or any(victim.uid in violating for victim in gang), gang[0].priority), gang))
        ranked.sort(key=itemgetter(0))
        return [[victim for _, some in step for victim in some] for _, step in groupby(ranked, key=itemgetter(0))]

    def _gangs(self, here: Sequence[Evictable]) -> list[list[Evictable]]:
        """Whole gangs that could go, the cheapest first."""
        by_key = grouped((victim for victim in here if victim.kind is Kind.BREAKING), attrgetter("gang"))
        whole = self._whole

        def price(key: str) -> tuple[int, int, int, str]:
            return len(self._budgets.violating(whole[key])), by_key[key][0].priority, len(whole[key]), key

        # kube-scheduler evicts on one node, and the rest is ours: none of the gang may be left
        may = [key for key in by_key if self.may_evict_elsewhere or len({each.node_name for each in whole[key]}) == 1]
        return [by_key[key] for key in sorted(may, key=price)]

    def _unspared(self, trial: NodeTrial, gone: Sequence[Evictable], violating: Collection[str]) -> list[Evictable]:
        """Those that cannot come back. Gangs that would break are asked about first, and come back whole; then pods that budgets
        protect, then by priority, of one priority the surplus of gangs first."""
        left = {victim.uid: victim for victim in gone}
        for gang in reversed(self._gangs(gone)):
            if trial.all_reprieved([victim.info for victim in gang]):
                for victim in gang:
                    del left[victim.uid]
        singles = [victim for victim in gone if victim.kind is not Kind.BREAKING]
        singles.sort(
            key=lambda each: (each.uid in violating, each.priority, each.kind is Kind.SURPLUS, each.importance),
            reverse=True,
        )
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
        """Pods that are being deleted are victims that need not be told."""
        broken = frozenset(victim.gang for victim in victims if victim.kind is Kind.BREAKING)
        chosen = {victim.uid for victim in victims}
        rest = [victim for gang in sorted(broken) for victim in self._whole[gang] if victim.uid not in chosen]
        all_evictable = [*victims, *rest]
        here = [*going, *(victim.pod for victim in all_evictable if victim.node_name == node_name)]
        sort_by_importance(here)
        if broken:
            violating = self._budgets.violating(all_evictable, important_first=True)
        return Selection(
            node_name,
            tuple(here),
            tuple(victim for victim in rest if victim.node_name != node_name),
            sum(victim.uid in violating for victim in all_evictable),
            broken,
            any(victim.kind is Kind.SURPLUS for victim in victims),
            (*(pod.priority for pod in going), *(victim.priority for victim in all_evictable)),
        )
