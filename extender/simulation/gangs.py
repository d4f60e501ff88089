"""The gangs of a scenario: Coscheduling and its preemption around it, as behind a kube-scheduler.

`evaluate` asks them what they would do; nothing is told and no pod is evicted.
Counterpart of ours: scheduler/factory
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from extender.api import (
    corev1,
    koordinatorv1alpha1,
    policyv1,
    schedulingv1alpha3,
    volcanov1beta1,
)
from extender.api.corev1.pod import POD_SCHEDULED, UNSCHEDULABLE
from extender.client.interface import OwnPodGroup
from extender.config.defaults import behind_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration
from extender.framework.preemption.candidate import Candidate
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.registry import Registry
from extender.plugins import names
from extender.plugins.coscheduling.dependencies import (
    NO_BACKFILL,
    CoschedulingDependencies,
    Done,
    Eviction,
    PreemptionDependencies,
    PreemptionRules,
    Verdict,
    here,
)
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.preemption.guard import Review
from extender.plugins.coscheduling.preemption.planning import VictimPlan
from extender.plugins.coscheduling.report.gang_status import GangStatus
from extender.plugins.judge import FrameworkJudges

PodGroup = OwnPodGroup | schedulingv1alpha3.CompositePodGroup | koordinatorv1alpha1.PodGroup | volcanov1beta1.PodGroup


@dataclass(frozen=True, slots=True)
class Members:
    """What the watch would have shown. pods: of the whole cluster, those that wait too."""

    pods: Sequence[corev1.Pod]
    pod_groups: Sequence[PodGroup]


@dataclass(frozen=True, slots=True)
class GangAnswer:
    """status: as the pages show it. nodes: where members go at once, `namespace/name` -> node; empty if they do not.

    plan: with victims, where the status names some. names: UID -> `namespace/name` of every pod.
    """

    status: GangStatus
    nodes: Mapping[str, str]
    plan: VictimPlan | None
    names: Mapping[str, str]


class Gangs:
    """For one scenario. One caller at a time."""

    def __init__(
        self,
        coscheduling: Coscheduling,
        registry: Registry,
        dependencies: FrameworkDependencies,
        configuration: ExtenderConfiguration,
        *,
        may_evict: bool,
        scores: bool = False,
    ) -> None:
        """coscheduling: not connected yet. may_evict: whether we are permitted to. scores: whether single pods are scored."""
        self._coscheduling = coscheduling
        coscheduling.connect(_coscheduling_dependencies(registry, dependencies, configuration, may_evict, scores))
        self._names: dict[str, str] = {}

    def review(self, pod: corev1.Pod, offered: Sequence[Candidate]) -> Review:
        """What the verb preempt decides of these candidates, with the reasons."""
        return self._coscheduling.preemption.guard.assess(pod, offered)

    def see(self, members: Members) -> None:
        """All that there is, as the watch shows it; a pod that waits was refused by kube-scheduler before."""
        for pod_group in members.pod_groups:
            if isinstance(pod_group, schedulingv1alpha3.CompositePodGroup):
                self._coscheduling.on_composite_pod_group(None, pod_group)
            elif isinstance(pod_group, koordinatorv1alpha1.PodGroup | volcanov1beta1.PodGroup):
                self._coscheduling.on_foreign_pod_group(None, pod_group)
            else:
                self._coscheduling.on_pod_group(None, pod_group)
        for pod in members.pods:
            seen = pod if pod.node_name or pod.spec.scheduling_gates else _parked(pod)
            self._coscheduling.on_pod(None, seen)
            self._names[pod.uid] = pod.key

    def look(self) -> None:
        """Plans whatever waits, in order, as after a start."""
        self._coscheduling.tick()
        self._coscheduling.rounds.plan_waiting()

    def of(self, pod: corev1.Pod) -> GangAnswer | None:
        """After `look`. None for a pod that needs no plan: it is of no gang, or its gang has what it needs without it."""
        manager = self._coscheduling.manager
        with manager.lock:
            group = manager.group_of(pod)
            if group is None:
                return None
            spec = manager.specs.of(group)
            if (
                spec is not None
                and not spec.invalid
                and not self._coscheduling.rounds.requests.needs_plan(group, pod.uid)
            ):
                return None
        status = self._coscheduling.report.status(group.key)
        if status is None:
            return None
        looked = self._coscheduling.preemption.gangs.search.look(group.key) if status.preemption is not None else None
        return GangAnswer(
            status,
            self._coscheduling.report.places(group.key),
            looked.plan if looked is not None else None,
            self._names,
        )

    def names_of(self, pods: Iterable[corev1.Pod]) -> list[str]:
        """The groups that these pods are of."""
        manager = self._coscheduling.manager
        with manager.lock:
            return sorted({group.key for pod in pods if (group := manager.find(pod)) is not None})


def new_coscheduling(args: CoschedulingArgs, registry: Registry, dependencies: FrameworkDependencies) -> Coscheduling:
    """As behind a kube-scheduler: in a framework of its own. Raises RegistryError where the registry does not have it."""
    profile = replace(behind_profile("gang-extender"), plugin_config={names.COSCHEDULING: args})
    plugin = Framework(profile, registry, dependencies).plugins[names.COSCHEDULING]
    if not isinstance(plugin, Coscheduling):
        raise TypeError(f"{names.COSCHEDULING} is {type(plugin).__name__}")
    return plugin


def _coscheduling_dependencies(
    registry: Registry,
    dependencies: FrameworkDependencies,
    configuration: ExtenderConfiguration,
    may_evict: bool,
    scores: bool,
) -> CoschedulingDependencies:
    """No hold ends, and no nodes are kept free: the question is what happens now."""
    plain = CoschedulingDependencies(
        newest_snapshot=dependencies.newest_snapshot,
        judges=FrameworkJudges(registry, dependencies),
        steering=NoSteering(),
        verdicts=_Verdicts(),
        submit=_later,
        offload=here,
        may_commit=lambda: True,
        max_held_binds=configuration.max_held_binds,
        preemption=PreemptionDependencies(
            evictor=_Evictor(may_evict),
            rules=PreemptionRules.of(configuration),
            pdbs=lambda: list(dependencies.lister(policyv1.PodDisruptionBudget).list()),
            assumed=frozenset,
        ),
    )
    return replace(plain.configured(configuration), pack_single_pods=scores, backfill=NO_BACKFILL)


def _parked(pod: corev1.Pod) -> corev1.Pod:
    """With what kube-scheduler writes on a pod that it has refused."""
    refused = corev1.PodCondition(type=POD_SCHEDULED, status="False", reason=UNSCHEDULABLE)
    others = [each for each in pod.status.conditions if each.type != POD_SCHEDULED]
    return structs.replace(pod, status=structs.replace(pod.status, conditions=(*others, refused)))


def _later(name: str, task: Callable[[], None]) -> None:
    """`look` plans, and no gang begins to preempt."""


class NoSteering:
    """For a framework that only answers questions."""

    def nominate(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        return

    def clear_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        return

    def clear_foreign_nominations(self, pods: Sequence[corev1.Pod]) -> None:
        return

    def activate_by_nomination(self, places: Sequence[tuple[corev1.Pod, str]]) -> None:
        return

    def activate(self, pods: Sequence[corev1.Pod]) -> None:
        return

    def ungate(self, pods: Sequence[corev1.Pod]) -> None:
        return


class _Verdicts:
    def decided(
        self,
        pod_group: OwnPodGroup | None,
        key: str,
        verdict: Verdict,
        member: corev1.Pod | None = None,
    ) -> None:
        """The answer says it."""

    def forget(self, key: str) -> None:
        """Nothing is kept."""


class _Evictor:
    def __init__(self, may_evict: bool) -> None:
        self._may_evict = may_evict

    def allowed(self) -> bool:
        return self._may_evict

    def allowed_despite_budgets(self) -> bool:
        return self._may_evict

    def evict(self, eviction: Eviction, done: Done) -> None:
        raise AssertionError(f"no pod is evicted here: {eviction.on_behalf_of}")
