"""Puts a scheduler together: informers, cache, frameworks, cycles, and the threads between them.

kube-scheduler: pkg/scheduler/scheduler.go (New)
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from extender import metrics
from extender.api import corev1, policyv1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.events import Recorder
from extender.client.informer import InformerFactory
from extender.client.interface import API, LEASES, NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS
from extender.config.defaults import behind_profile, planning_profile
from extender.config.types import ExtenderConfiguration, KubeSchedulerProfile
from extender.framework.runtime.framework import Framework, Surroundings
from extender.framework.runtime.metrics_recorder import record
from extender.plugins import names
from extender.plugins.coscheduling.collaborators import Collaborators, ShadowRules
from extender.plugins.coscheduling.coscheduling import Coscheduling
from extender.plugins.coscheduling.gang_report import GangReport
from extender.plugins.coscheduling.judge import FrameworkJudge, new_judge
from extender.plugins.coscheduling.largest_gang import LargestGang
from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.preemption.evictable import GangVictims
from extender.plugins.coscheduling.preemption.eviction import Evictor
from extender.plugins.coscheduling.preemption.preemption import Preemption
from extender.plugins.coscheduling.preemption.rules import PreemptionRules
from extender.plugins.coscheduling.preemption.victim_search import PreemptionWorld
from extender.plugins.registry import new_registry
from extender.profile import new_map
from extender.scheduler.background import Background
from extender.scheduler.bell import Bell
from extender.scheduler.binding_cycle import BindingCycle
from extender.scheduler.event_handlers import NodeHandlers, Observer, PodGroupHandlers, PodHandlers
from extender.scheduler.evictor import ApiEvictor
from extender.scheduler.in_flight import InFlight
from extender.scheduler.leadership import Leadership, LeaseHandlers
from extender.scheduler.live_metrics import LiveMetrics, of_cache, of_gangs, of_informers, of_room
from extender.scheduler.preemption_cycle import PreemptionCycle
from extender.scheduler.scheduler import Parts, Scheduler
from extender.scheduler.scheduling_cycle import SchedulingCycle
from extender.scheduler.steering import StatusSteering
from extender.scheduler.verdicts import GroupVerdicts
from extender.scheduler.volume_handlers import volumes_known, watch_volumes
from extender.scheduler.wake_by import WakeBy
from extender.scheduler.watch_in_tree import watch_in_tree_groups

MAX_HELD_BINDS = 2000
COMMIT_SECONDS = 5.0  # what a commit may take before the caller's own timeout, and 10 ms more a member
COMMIT_SECONDS_PER_MEMBER = 0.01
DEFAULT_SCHEDULER_NAME = "default-scheduler"


def here(function: Callable[..., Any], *args: Any) -> Any:
    """Runs it at once, where there is no event loop to keep free."""
    return function(*args)


def build(
    configuration: ExtenderConfiguration,
    api: API,
    *,
    offload: Callable[..., Any] = here,
    clock: Callable[[], float] = time.monotonic,
    host_name: str = "",
    settled: Callable[[], None] | None = None,
) -> Scheduler:
    """A scheduler behind a kube-scheduler, not started yet. Raises ProfileError, RegistryError or PluginSetError for its profiles.

    settled: called once, when the whole cluster has been seen.
    """
    informers = InformerFactory(api, clock)
    leadership = Leadership(host_name or socket.gethostname(), clock, watched=configuration.leader_lease is not None)
    recorder = Recorder(api, enabled=lambda: leadership.leading, clock=clock)
    cache = Cache(clock=clock)
    pods = informers.informer(PODS)
    nominator = Nominator(pods.store)
    surroundings = Surroundings(
        api=api,
        events=recorder,
        newest_snapshot=cache.snapshot,
        lister=informers.store_of,
        nominator=nominator,
        clock=clock,
        activate=lambda pods: steering.wake(list(pods)),
        record=record,
    )
    frameworks = new_map(_profiles(configuration), new_registry(), surroundings)
    first = next(iter(frameworks.values()))
    coscheduling = _coscheduling_of(first)
    steering = StatusSteering(
        api,
        lambda: leadership.leading,
        gate=coscheduling.manager.gate,
        wakes_by_annotation=WakeBy(api, configuration.wake_by).annotation,
    )
    watch_in_tree_groups(informers, coscheduling)
    watch_volumes(informers, coscheduling.on_volumes)
    verdicts = GroupVerdicts(api, recorder, lambda: leadership.leading)
    lease = configuration.leader_lease
    bell = Bell(
        api,
        lease.namespace if lease is not None else "",
        lambda: leadership.leading,
        steering.background,
        steering.wake,
    )
    evictor = ApiEvictor(
        api,
        recorder,
        lambda: leadership.leading,
        clock,
        by_eviction_api=configuration.evict_through == "eviction",
    )
    once = _Once(settled, informers.has_synced)
    background = Background(every_tick=lambda: _tick(coscheduling, preemption, evictor, once))
    coscheduling.connect(
        Collaborators(
            newest_snapshot=cache.snapshot,
            judge=_judge(surroundings, informers),
            topology=Topology(configuration.topology, packing=configuration.packing),
            pack_single_pods=True,
            steering=steering,
            verdicts=verdicts,
            submit=background.submit,
            offload=offload,
            may_commit=lambda: leadership.leading,
            hold_limit=lambda members: hold_limit(configuration.bind_timeout_seconds, members),
            may_plan=lambda: leadership.leading and informers.has_synced(),
            ours=lambda pod: (
                not configuration.scheduler_names or pod.spec.scheduler_name in configuration.scheduler_names
            ),
            ungate_refused=configuration.ungate_refused,
            shadow=_shadow_rules(configuration),
            ring=bell.ring,
        )
    )
    preemption = Preemption(
        coscheduling, _in_tree(surroundings), preemption_world(configuration, surroundings, informers, cache, evictor)
    )
    _watch(configuration, informers, cache, nominator, [coscheduling, preemption], first, leadership)
    metrics.held_binds_limit.set(MAX_HELD_BINDS)
    return Scheduler(
        Parts(
            api=api,
            informers=informers,
            profiles=frameworks,
            default_profile=first,
            scheduler_names=frozenset(configuration.scheduler_names),
            leadership=leadership,
            in_flight=InFlight(MAX_HELD_BINDS),
            scheduling_cycle=SchedulingCycle(cache.snapshot),
            preemption_cycle=PreemptionCycle(cache.snapshot, preemption.guard),
            binding_cycle=BindingCycle(cache),
            coscheduling=coscheduling,
            steering=steering,
            background=background,
            preemption=preemption,
            evictor=evictor,
            recorder=recorder,
            verdicts=verdicts,
            report=_report(coscheduling, preemption, _judge(surroundings, informers)),
            live_metrics=LiveMetrics(
                [
                    *of_cache(cache),
                    *of_informers(informers),
                    *of_gangs(coscheduling.manager),
                    *of_room(LargestGang(coscheduling.manager, cache.snapshot, coscheduling.collaborators.topology)),
                ]
            ),
        )
    )


def hold_limit(bind_timeout_seconds: float, members: int) -> float:
    """The longest hold that leaves a gang of so many its commit before kube-scheduler gives up on the call."""
    return max(1.0, bind_timeout_seconds - COMMIT_SECONDS - COMMIT_SECONDS_PER_MEMBER * members)


def _shadow_rules(configuration: ExtenderConfiguration) -> ShadowRules:
    return ShadowRules(
        configuration.shadow_after_seconds, configuration.shadow_max_seconds, configuration.shadow_max_nodes_percent
    )


def _profiles(configuration: ExtenderConfiguration) -> Iterable[KubeSchedulerProfile]:
    if configuration.profiles:
        return configuration.profiles
    return [behind_profile(name) for name in configuration.scheduler_names or (DEFAULT_SCHEDULER_NAME,)]


def _judge(surroundings: Surroundings, informers: InformerFactory) -> FrameworkJudge:
    """With frameworks of its own, for one plan at a time."""
    return new_judge(new_registry(), surroundings, lambda: volumes_known(informers))


def _in_tree(surroundings: Surroundings) -> Framework:
    """The in-tree filters, for hypothetical states."""
    return Framework(planning_profile(), new_registry(), replace(surroundings, record=None))


def preemption_world(
    configuration: ExtenderConfiguration,
    surroundings: Surroundings,
    informers: InformerFactory,
    cache: Cache,
    evictor: Evictor,
) -> PreemptionWorld:
    """What preemption needs, by the configuration."""
    rules = PreemptionRules(
        configuration.gang_preemption,
        GangVictims(configuration.gang_victims),
        configuration.victim_minimum_run_seconds,
        configuration.preemption_delay_seconds,
    )
    return PreemptionWorld(
        judge=_judge(surroundings, informers),
        evictor=evictor,
        rules=rules,
        pdbs=lambda: list(surroundings.lister(policyv1.PodDisruptionBudget).list()),
        assumed=cache.assumed_uids,
        wall=time.time,
    )


def _report(coscheduling: Coscheduling, preemption: Preemption, judge: FrameworkJudge) -> GangReport:
    report = coscheduling.report(judge)
    report.explain_preemption = preemption.gangs.search.explain
    return report


class _Once:
    """Calls when it is so for the first time."""

    def __init__(self, call: Callable[[], None] | None, is_so: Callable[[], bool]) -> None:
        self._call = call
        self._is_so = is_so

    def tick(self) -> None:
        if self._call is not None and self._is_so():
            call, self._call = self._call, None
            call()


def _tick(coscheduling: Coscheduling, preemption: Preemption, evictor: ApiEvictor, once: _Once) -> None:
    once.tick()
    evictor.tick()
    coscheduling.tick()
    preemption.tick()


def _coscheduling_of(framework: Framework) -> Coscheduling:
    plugin = framework.plugins[names.COSCHEDULING]
    if not isinstance(plugin, Coscheduling):
        raise TypeError(f"{names.COSCHEDULING} is {type(plugin).__name__}")
    return plugin


def _watch(
    configuration: ExtenderConfiguration,
    informers: InformerFactory,
    cache: Cache,
    nominator: Nominator,
    observers: Sequence[Observer],
    framework: Framework,
    leadership: Leadership,
) -> None:
    def reject_waiting_pod(pod: corev1.Pod) -> None:
        framework.reject_waiting_pod(pod.uid)

    informers.informer(PODS).add_handler(PodHandlers(cache, nominator, observers, reject_waiting_pod))
    informers.informer(NODES).add_handler(NodeHandlers(cache, observers))
    informers.informer(POD_GROUPS, optional=True).add_handler(PodGroupHandlers(observers))
    informers.informer(NAMESPACES)
    informers.informer(POD_DISRUPTION_BUDGETS, optional=True)
    if configuration.leader_lease is not None:
        lease = configuration.leader_lease
        informers.informer(LEASES, namespace=lease.namespace, field_selector=f"metadata.name={lease.name}").add_handler(
            LeaseHandlers(leadership)
        )
