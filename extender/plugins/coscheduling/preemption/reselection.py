"""Victims on one node for a single pod, by kube-scheduler's order and rules that know gangs.

As few budgets violated as will do, then the lowest top priority; of victims up to that priority lone pods first, then what gangs
have to spare, then whole gangs. The guard asks it for the nodes that kube-scheduler offers, where one of its own victims is a
gang's. Where no gang is concerned it comes to kube-scheduler's own choice.
kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (SelectVictimsOnNode)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
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
class Total:
    """The highest priority of some victims (None: there are none), the sum of their importance, and how many they are."""

    top: int | None = None
    importance: int = 0
    count: int = 0

    @classmethod
    def of(cls, priorities: Iterable[int]) -> Total:
        found = list(priorities)
        return cls(max(found, default=None), sum(found) + len(found) * ABOVE_ANY_PRIORITY, len(found))

    def __add__(self, other: Total) -> Total:
        tops = [each.top for each in (self, other) if each.top is not None]
        return Total(max(tops, default=None), self.importance + other.importance, self.count + other.count)


@dataclass(frozen=True, slots=True)
class Selection:
    """victims: on the node, the most important first. of_gangs: all victims of the gangs that break, here and elsewhere.

    total: what the victims cost, those elsewhere among them.
    """

    node_name: str
    victims: tuple[corev1.Pod, ...]
    of_gangs: Sequence[Evictable]
    violations: int
    broken: frozenset[str]
    from_gangs: bool
    total: Total = Total()

    @property
    def elsewhere(self) -> Sequence[Evictable]:
        """The rest of the gangs that break."""
        return [victim for victim in self.of_gangs if victim.node_name != self.node_name]

    @property
    def rank(self) -> tuple[int, int, int, bool]:
        """The smaller the better: kube-scheduler's first two criteria, then what becomes of gangs. Its other criteria decide
        among equals."""
        return self.violations, self.total.top or 0, len(self.broken), self.from_gangs

    @property
    def cost(self) -> tuple[int, int, str]:
        """kube-scheduler's next criteria, for candidates that break gangs: it does not know all of their victims."""
        return self.total.importance, self.total.count, self.node_name


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
        # of whole gangs, and of sets of them: as large as the cluster may be, and asked for each node
        self._totals: dict[str, Total] = {}
        self._violations: dict[frozenset[str], int] = {}
        self._members: dict[frozenset[str], Sequence[Evictable]] = {}
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
            violates = bool(self._violations_of(frozenset((gang[0].gang,))))
            ranked.append(((violates or any(victim.uid in violating for victim in gang), gang[0].priority), gang))
        ranked.sort(key=itemgetter(0))
        return [[victim for _, some in step for victim in some] for _, step in groupby(ranked, key=itemgetter(0))]

    def _gangs(self, here: Sequence[Evictable]) -> list[list[Evictable]]:
        """Whole gangs that could go, the cheapest first."""
        by_key = grouped((victim for victim in here if victim.kind is Kind.BREAKING), attrgetter("gang"))
        whole = self._whole

        def price(key: str) -> tuple[int, int, int, str]:
            return self._violations_of(frozenset((key,))), by_key[key][0].priority, len(whole[key]), key

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
        singles = [victim for victim in victims if victim.gang not in broken]
        with_them = [victim for victim in self._by_node.get(node_name, ()) if victim.gang and victim.gang in broken]
        here = [*going, *(victim.pod for victim in (*singles, *with_them))]
        sort_by_importance(here)
        total = Total.of([*(pod.priority for pod in going), *(victim.priority for victim in singles)])
        return Selection(
            node_name,
            tuple(here),
            self._all_of(broken),
            self._violations_with(broken, singles) if broken else sum(each.uid in violating for each in victims),
            broken,
            any(victim.kind is Kind.SURPLUS for victim in victims),
            sum(map(self._total_of, sorted(broken)), total),
        )

    def _all_of(self, gangs: frozenset[str]) -> Sequence[Evictable]:
        if gangs not in self._members:
            self._members[gangs] = [victim for gang in sorted(gangs) for victim in self._whole[gang]]
        return self._members[gangs]

    def _total_of(self, gang: str) -> Total:
        if gang not in self._totals:
            self._totals[gang] = Total.of(victim.priority for victim in self._whole[gang])
        return self._totals[gang]

    def _violations_of(self, gangs: frozenset[str]) -> int:
        """If these went whole."""
        if gangs not in self._violations:
            self._violations[gangs] = len(self._budgets.violating(self._all_of(gangs), important_first=True))
        return self._violations[gangs]

    def _violations_with(self, gangs: frozenset[str], singles: Sequence[Evictable]) -> int:
        """If these pods, which are of none of them, went too: they may use budgets up that members need."""
        if not self._budgets.concern(singles):
            return self._violations_of(gangs)
        return len(self._budgets.violating([*singles, *self._all_of(gangs)], important_first=True))
