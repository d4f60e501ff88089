"""Puts kube-scheduler's counterpart together, in-process: informers, cache, queue, profiles, gangs, and the pods' cycles.

InProcessScheduler runs the parts on threads and real time, the simulation on one thread and virtual time.
kube-scheduler: pkg/scheduler/scheduler.go (New)
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from extender.api import policyv1
from extender.backend.cache.cache import Cache
from extender.backend.queue.backoff import Backoff
from extender.backend.queue.nominator import Nominator
from extender.backend.queue.queueing_hints import QueueingHints, build_hints
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.ended_pods import SUCCEEDED_PODS, hand_over_ended_pods
from extender.client.informer import InformerFactory
from extender.client.interface import API, LEASES, NODES, PODS, RESOURCE_TYPES, EventRecorder
from extender.config.types import ExtenderConfiguration, KubeSchedulerConfiguration
from extender.framework.handle import Clock
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.plugin_calls import Recorder as MetricsRecorder
from extender.framework.runtime.registry import Registry
from extender.plugins import names
from extender.plugins.coscheduling.dependencies import (
    CoschedulingDependencies,
    PreemptionDependencies,
    PreemptionRules,
    Verdicts,
    here,
)
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.judge import FrameworkJudges
from extender.profile import new_map
from extender.scheduler.actions.evictor import ApiEvictor
from extender.scheduler.in_process.failure_handler import FailureHandler
from extender.scheduler.in_process.guard_extender import GuardExtender
from extender.scheduler.in_process.http_extender import HTTPExtender, in_calling_order
from extender.scheduler.in_process.pod_cycles import PodCycles
from extender.scheduler.in_process.queue_handlers import watch_all
from extender.scheduler.in_process.queue_steering import QueueSteering
from extender.scheduler.in_process.schedule_one import Algorithm
from extender.scheduler.watch_foreign import watch_foreign_groups
from extender.scheduler.watch_in_tree import watch_in_tree_groups


class InProcessDependencies(Protocol):
    """What the parts are given: where time comes from, and where work beside the cycles goes. rng: for every choice among equals.

    spawn: a job of a plugin. sleep: how a plugin waits in PreBind. submit: a named task of the gangs' planner. record: told
    of extension points' runs, or None.
    """

    @property
    def clock(self) -> Clock: ...

    @property
    def rng(self) -> random.Random: ...

    @property
    def recorder(self) -> EventRecorder: ...

    @property
    def verdicts(self) -> Verdicts: ...

    @property
    def record(self) -> MetricsRecorder | None: ...

    def spawn(self, job: Callable[[], None]) -> None: ...

    def sleep(self, seconds: float) -> None: ...

    def submit(self, name: str, task: Callable[[], None]) -> None: ...


@dataclass(frozen=True, slots=True)
class InProcessParts:
    """Nothing of it runs yet. coscheduling is None where no profile has gangs."""

    informers: InformerFactory
    cache: Cache
    queue: PriorityQueue
    profiles: Mapping[str, Framework]
    extenders: Sequence[HTTPExtender]
    cycles: PodCycles
    coscheduling: Coscheduling | None

    def tick(self) -> None:
        """About once a second."""
        self.informers.catch_up()
        if self.coscheduling is not None:
            self.coscheduling.tick()


def build_parts(
    api: API,
    configuration: KubeSchedulerConfiguration,
    registry: Registry,
    dependencies: InProcessDependencies,
    extender: ExtenderConfiguration | None = None,
    wall: Callable[[], float] = time.time,
) -> InProcessParts:
    """Raises ProfileError, RegistryError, PluginSetError or ExtenderError for a configuration that makes no sense.

    extender: the settings of the extender that Coscheduling stands for; None where it is a plugin as any other. wall: the
    time of day, in seconds since 1970.
    """
    return _Assembly(api, configuration, registry, dependencies, extender, wall).parts()


class _Assembly:
    """Each step needs those before it."""

    def __init__(
        self,
        api: API,
        configuration: KubeSchedulerConfiguration,
        registry: Registry,
        dependencies: InProcessDependencies,
        extender: ExtenderConfiguration | None,
        wall: Callable[[], float],
    ) -> None:
        self._api = api
        self._configuration = configuration
        self._extender = extender
        self._wall = wall
        self._registry = registry
        self._dependencies = dependencies
        self._extenders = in_calling_order(HTTPExtender(entry) for entry in configuration.extenders)
        self._informers = _informers(api, dependencies.clock)
        self._cache = Cache(clock=dependencies.clock)
        self._nominator = Nominator(self._informers.informer(PODS).store)
        self._guard = GuardExtender()

    def parts(self) -> InProcessParts:
        dependencies, configuration = self._dependencies, self._configuration
        framework_dependencies = self._framework_dependencies()
        profiles = new_map(configuration.profiles, self._registry, framework_dependencies)
        self._queue = self._new_queue(profiles)
        coscheduling = self._connected(profiles, framework_dependencies)
        self._watch(profiles, coscheduling)
        pods = self._informers.informer(PODS).store
        algorithm = Algorithm(self._extenders, configuration.percentage_of_nodes_to_score, dependencies.rng)
        failures = FailureHandler(self._api, self._cache, self._queue, pods, dependencies.recorder)
        cycles = PodCycles(self._api, self._cache, self._queue, profiles, algorithm, failures, dependencies.recorder)
        return InProcessParts(
            self._informers, self._cache, self._queue, profiles, self._extenders, cycles, coscheduling
        )

    def _framework_dependencies(self) -> FrameworkDependencies:
        dependencies = self._dependencies
        return FrameworkDependencies(
            api=self._api,
            events=dependencies.recorder,
            newest_snapshot=self._cache.snapshot,
            lister=self._informers.store_of,
            nominator=self._nominator,
            clock=dependencies.clock,
            activate=lambda pods: self._queue.activate(pods),
            extenders=[*self._extenders, self._guard],
            spawn=dependencies.spawn,
            sleep=dependencies.sleep,
            rng=dependencies.rng,
            record=dependencies.record,
        )

    def _new_queue(self, profiles: Mapping[str, Framework]) -> PriorityQueue:
        configuration = self._configuration
        with_extenders = bool(self._extenders)
        self._hints = QueueingHints(
            {
                name: build_hints(framework.enqueue_plugins, with_extenders=with_extenders)
                for name, framework in profiles.items()
            }
        )
        return PriorityQueue(
            next(iter(profiles.values())).less,
            nominator=self._nominator,
            pre_enqueue={name: framework.pre_enqueue_plugins for name, framework in profiles.items()},
            hints=self._hints,
            backoff=Backoff(configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds),
            clock=self._dependencies.clock,
        )

    def _connected(
        self, profiles: Mapping[str, Framework], framework_dependencies: FrameworkDependencies
    ) -> Coscheduling | None:
        """All profiles share one Coscheduling; it is given what it works with."""
        found = [framework.plugins.get(names.COSCHEDULING) for framework in profiles.values()]
        coscheduling = next((plugin for plugin in found if isinstance(plugin, Coscheduling)), None)
        if coscheduling is not None:
            coscheduling.connect(self._coscheduling_dependencies(framework_dependencies))
            self._guard.coscheduling = coscheduling
        return coscheduling

    def _coscheduling_dependencies(self, framework_dependencies: FrameworkDependencies) -> CoschedulingDependencies:
        plain = CoschedulingDependencies(
            newest_snapshot=self._cache.snapshot,
            judges=FrameworkJudges(self._registry, framework_dependencies),
            steering=QueueSteering(self._api, self._queue.activate, self._dependencies.spawn),
            verdicts=self._dependencies.verdicts,
            submit=self._dependencies.submit,
            offload=here,
            may_commit=lambda: True,
            may_plan=self._informers.has_synced,
            succeeded_pods=lambda namespace, found: self._dependencies.spawn(
                partial(hand_over_ended_pods, SUCCEEDED_PODS, self._api, namespace, found)
            ),
            preemption=self._preemption(framework_dependencies),
        )
        return plain if self._extender is None else plain.configured(self._extender)

    def _preemption(self, framework_dependencies: FrameworkDependencies) -> PreemptionDependencies:
        dependencies, settings = self._dependencies, self._extender or ExtenderConfiguration()
        budgets = framework_dependencies.lister(policyv1.PodDisruptionBudget)

        def pdbs() -> list[policyv1.PodDisruptionBudget]:
            return list(budgets.list())

        evictor = ApiEvictor(
            self._api,
            dependencies.recorder,
            lambda: True,
            dependencies.clock,
            run=dependencies.spawn,
            by_eviction_api=settings.evict_through == "eviction",
            pdbs=pdbs,
        )
        evictor.ask()
        return PreemptionDependencies(
            evictor=evictor,
            rules=PreemptionRules.of(settings),
            pdbs=pdbs,
            assumed=self._cache.assumed_uids,
            wall=self._wall,
        )

    def _watch(self, profiles: Mapping[str, Framework], coscheduling: Coscheduling | None) -> None:
        observers = [] if coscheduling is None else [coscheduling]
        volumes = None if coscheduling is None else coscheduling.on_volumes
        wanted = self._hints.wanted_events()
        watch_all(self._informers, self._queue, self._cache, profiles, wanted, observers, volumes)
        watch_in_tree_groups(self._informers, coscheduling)
        watch_foreign_groups(self._informers, coscheduling)


def _informers(api: API, clock: Clock) -> InformerFactory:
    """Of every kind that a plugin may look at; one that the server does not serve is empty."""
    informers = InformerFactory(api, clock)
    for resource in RESOURCE_TYPES:
        if resource is not LEASES:
            informers.informer(resource, optional=resource is not PODS and resource is not NODES)
    return informers
