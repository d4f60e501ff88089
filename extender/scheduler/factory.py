"""Puts a scheduler together: informers, cache, frameworks, cycles, and the threads between them.

kube-scheduler: pkg/scheduler/scheduler.go (New)
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from extender import metrics
from extender.api import corev1, policyv1
from extender.backend.cache.cache import Cache
from extender.backend.queue.nominator import Nominator
from extender.client.ended_pods import ENDED_PODS, SUCCEEDED_PODS, hand_over_ended_pods
from extender.client.events import Recorder
from extender.client.informer import InformerFactory
from extender.client.interface import API, LEASES, NAMESPACES, NODES, POD_DISRUPTION_BUDGETS, POD_GROUPS, PODS
from extender.client.request_counts import count_by
from extender.client.short_steps import ShortSteps
from extender.config.defaults import served_profiles
from extender.config.types import ExtenderConfiguration
from extender.framework.interface import MIN_FEASIBLE_NODES_TO_FIND
from extender.framework.node_sample import num_feasible_nodes_to_find
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.metrics_recorder import record
from extender.plugins import names
from extender.plugins.coscheduling.dependencies import (
    CoschedulingDependencies,
    PreemptionDependencies,
    PreemptionRules,
    here,
)
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.judge import FrameworkJudges
from extender.plugins.registry import new_registry
from extender.profile import new_map
from extender.scheduler import gang_settings
from extender.scheduler.actions.bell import Bell
from extender.scheduler.actions.evictor import ApiEvictor
from extender.scheduler.actions.leader_endpoint import LeaderEndpoint
from extender.scheduler.actions.steering import StatusSteering
from extender.scheduler.actions.unreadable_events import UnreadableEvents
from extender.scheduler.actions.verdicts import GroupVerdicts
from extender.scheduler.actions.wake_by import WakeBy
from extender.scheduler.background import STUCK_PLANNING_SECONDS, Background
from extender.scheduler.bind_verb import BindVerb
from extender.scheduler.debugging import Debugger
from extender.scheduler.early_end import EarlyEnd
from extender.scheduler.election import Elector, Fitness
from extender.scheduler.event_handlers import NodeHandlers, ObjectHandlers, PodHandlers
from extender.scheduler.filter_health import UNFIT_SECONDS, FilterHealth
from extender.scheduler.health import CACHE_NOT_SYNCED
from extender.scheduler.in_flight import InFlight
from extender.scheduler.leadership import RENEW_DEADLINE, Leadership, LeaseHandlers
from extender.scheduler.live_metrics import (
    LiveMetrics,
    of_cache,
    of_configuration,
    of_gangs,
    of_informers,
    of_leadership,
    of_pod_groups,
    of_room,
    of_waiting_gangs,
)
from extender.scheduler.observed_settings import ObservedSettings
from extender.scheduler.page_access import PageAccess
from extender.scheduler.pod_groups.controller import PodGroupController
from extender.scheduler.pod_groups.line import LineReader
from extender.scheduler.pod_groups.records import Records
from extender.scheduler.preemption_cycle import PreemptionCycle
from extender.scheduler.rights import OwnRights
from extender.scheduler.running_configuration import RunningConfiguration
from extender.scheduler.scheduler import Scheduler, SchedulerDependencies
from extender.scheduler.scheduling_cycle import SchedulingCycle
from extender.scheduler.unconfirmed_bindings import UnconfirmedBindings
from extender.scheduler.unreached import Unreached
from extender.scheduler.volume_handlers import has_unbound_claims, volumes_known, watch_volumes
from extender.scheduler.watch_foreign import watch_foreign_groups
from extender.scheduler.watch_in_tree import watch_in_tree_groups

log = logging.getLogger(__name__)

NODES_WITHOUT_NOMINATION = 500  # to judge more for each member costs more than its nomination


def build(
    configuration: ExtenderConfiguration,
    api: API,
    *,
    offload: Callable[..., Any] = here,
    clock: Callable[[], float] = time.monotonic,
    host_name: str = "",
    address: tuple[str, int] = ("127.0.0.1", 0),
    settled: Callable[[], None] | None = None,
) -> Scheduler:
    """A scheduler behind a kube-scheduler, not started yet. Raises ProfileError, RegistryError or PluginSetError for its profiles.

    address: where our verbs are reached, for the Service of `leader_service`. settled: called once, when the whole cluster has been seen.
    """
    count_by(metrics.count_api_request)
    return _Assembly(configuration, api, offload, clock, host_name or socket.gethostname(), address).scheduler(settled)


class _Assembly:
    """Each step needs those before it."""

    def __init__(
        self,
        configuration: ExtenderConfiguration,
        api: API,
        offload: Callable[..., Any],
        clock: Callable[[], float],
        host_name: str,
        address: tuple[str, int],
    ) -> None:
        self._configuration = configuration
        self._api = api
        self._offload = offload
        self._clock = clock
        self._host_name = host_name
        self._informers = InformerFactory(api, clock)
        watched = configuration.leader_lease is not None
        elects = configuration.leader_service is not None
        self._leadership = Leadership(
            host_name,
            clock,
            watched=watched,
            share=RENEW_DEADLINE if elects else 1.0,
            electors="extender" if elects else "kube-scheduler",
        )
        self._filter_health = FilterHealth(clock)
        self._unreached = Unreached(self._leads, configuration.serves, clock)
        self._elector = self._new_elector(host_name, address)
        self._recorder = Recorder(api, enabled=self._leads, clock=clock)
        self._cache = Cache(clock=clock)
        self._nominator = Nominator(self._informers.informer(PODS).store)

    def _leads(self) -> bool:
        return self._leadership.leading

    def _new_elector(self, host_name: str, address: tuple[str, int]) -> Elector | None:
        """None beside a kube-scheduler, which elects."""
        configuration = self._configuration
        lease, service = configuration.leader_lease, configuration.leader_service
        if lease is None or service is None:
            return None
        endpoint = LeaderEndpoint(self._api, service, *address, self._leads, self._clock)

        def elected() -> None:
            self._leadership.elected()
            endpoint.elected()

        fitness = Fitness(self._unfit, self._leads, elected, self._leadership.gives_up)
        return Elector(self._api, lease, configuration.lease_duration_seconds, host_name, fitness, self._clock)

    def _unfit(self) -> str:
        """Why another replica would be the better leader."""
        if not self._informers.has_synced():
            return CACHE_NOT_SYNCED
        trouble = self._filter_health.trouble(UNFIT_SECONDS) or self._unreached.trouble(UNFIT_SECONDS)
        return trouble or self._early_end.reason

    def scheduler(self, settled: Callable[[], None] | None) -> Scheduler:
        self._framework_dependencies = self._new_framework_dependencies()
        self._frameworks = new_map(served_profiles(self._configuration), new_registry(), self._framework_dependencies)
        self._first = next(iter(self._frameworks.values()))
        self._coscheduling = _coscheduling_of(self._first)
        self._connect(settled)
        self._watch()
        findings = (self._observed.findings, self._own_rights.findings)
        self._running = RunningConfiguration(self._configuration, findings)
        metrics.held_binds_limit.set(self._configuration.max_held_binds)
        return Scheduler(self._dependencies())

    def _new_framework_dependencies(self) -> FrameworkDependencies:
        return FrameworkDependencies(
            api=self._api,
            events=self._recorder,
            newest_snapshot=self._cache.snapshot,
            lister=self._informers.store_of,
            nominator=self._nominator,
            clock=self._clock,
            activate=lambda pods: self._steering.activate(list(pods)),
            record=record,
        )

    def _connect(self, settled: Callable[[], None] | None) -> None:
        """Coscheduling with what it works with; behind it the threads that act on the API."""
        configuration, api = self._configuration, self._api
        self._steering = StatusSteering(
            api,
            self._leads,
            gate=self._coscheduling.manager.gate,
            wake_by=WakeBy(api, configuration.wake_by, self._clock),
            clock=self._clock,
        )
        self._verdicts = GroupVerdicts(api, self._recorder, self._leads, self._clock)
        by_eviction_api = configuration.evict_through == "eviction"
        self._evictor = ApiEvictor(
            api, self._recorder, self._leads, self._clock, by_eviction_api=by_eviction_api, pdbs=self._budgets
        )
        self._once = _OnceSynced(settled, self._informers.has_synced)
        self._pod_groups = self._new_pod_group_controller()
        self._observed = ObservedSettings(configuration, self._bound_by_us, self._clock)
        beside = self._steering.background
        self._own_rights = OwnRights(api, configuration, beside, self._clock)
        self._early_end = EarlyEnd(api, configuration.leader_lease, self._host_name, beside, self._clock)
        self._background = Background(self._ticks())
        self._planning = Background(name="planning", stuck_seconds=STUCK_PLANNING_SECONDS)
        self._coscheduling.connect(self._coscheduling_dependencies())

    def _coscheduling_dependencies(self) -> CoschedulingDependencies:
        configuration, lease = self._configuration, self._configuration.leader_lease
        namespace = lease.namespace if lease is not None else ""
        most_offered = _most_nodes_offered(configuration)
        bell = Bell(self._api, namespace, self._leads, self._steering.background, self._steering.activate)
        return CoschedulingDependencies(
            newest_snapshot=self._cache.snapshot,
            judges=FrameworkJudges(
                new_registry(), self._framework_dependencies, lambda: volumes_known(self._informers)
            ),
            steering=self._steering,
            verdicts=self._verdicts,
            submit=self._background.submit,
            plan_beside=lambda turn: self._planning.submit("plan", turn),
            offload=self._offload,
            may_commit=self._leads,
            may_plan=lambda: self._leads() and self._informers.has_synced(),
            has_unbound_claims=lambda pod: has_unbound_claims(self._informers, pod),
            succeeded_pods=self._list_succeeded_pods,
            errors_back_off=True,
            offers_all=lambda: self._cache.node_count() <= most_offered,
            offers_few=lambda: _offers_few(configuration, self._cache.node_count()),
            ring=bell.activate_all,
            foreign=lambda key: self._pod_groups.foreign_text(key),
            max_held_binds=configuration.max_held_binds,
            preemption=PreemptionDependencies(
                evictor=self._evictor,
                rules=PreemptionRules.of(configuration),
                pdbs=self._budgets,
                assumed=self._cache.assumed_uids,
            ),
        ).configured(configuration)

    def _budgets(self) -> list[policyv1.PodDisruptionBudget]:
        return list(self._framework_dependencies.lister(policyv1.PodDisruptionBudget).list())

    def _list_succeeded_pods(self, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
        self._steering.background(partial(hand_over_ended_pods, SUCCEEDED_PODS, self._api, namespace, found))

    def _new_pod_group_controller(self) -> PodGroupController:
        coscheduling, groups = self._coscheduling, self._informers.informer(POD_GROUPS, optional=True).store
        return PodGroupController(
            self._verdicts.writer,
            groups,
            Records(
                coscheduling.manager.key_of,
                self._configuration.serves,
                lambda key: groups.get(key) is not None,
                self._bound_by_us,
                self._started_by_us,
            ),
            coscheduling.manager.key_of,
            LineReader(lambda: coscheduling.report).read,
            self._list_ended_pods,
            self._recorder,
            self._verdicts.forget,
            lambda: self._leads() and self._informers.has_synced(),
            self._clock,
        )

    def _bound_by_us(self, pod: corev1.Pod) -> bool:
        """Or, for all that we know, by the replica that led before us."""
        return self._started_by_us(pod) or not self._pod_groups.leads_for_long()

    def _started_by_us(self, pod: corev1.Pod) -> bool:
        """The record of the start outlives a restart and a change of leaders."""
        return self._cache.was_assumed(pod) or self._coscheduling.shows_its_start(pod)

    def _list_ended_pods(self, namespace: str, found: Callable[[Iterable[corev1.Pod]], None]) -> None:
        self._steering.background(partial(hand_over_ended_pods, ENDED_PODS, self._api, namespace, found))

    def _ticks(self) -> dict[str, Callable[[], None]]:
        return {
            "settled": self._once.tick,
            "leadership": self._leadership.tick,
            "informers": self._informers.catch_up,
            "unreadable": UnreadableEvents(self._informers.all, self._recorder, self._leads).tick,
            "evictor": self._evictor.tick,
            "steering": self._steering.tick,
            "verdicts": self._verdicts.tick,
            "unconfirmed-bindings": self._unconfirmed().tick,
            "coscheduling": self._coscheduling.tick,
            "pod-groups": self._pod_groups.tick,
            "rights": self._own_rights.tick,
            "early-end": self._early_end.tick,
        }

    def _unconfirmed(self) -> UnconfirmedBindings:
        def gone(pod: corev1.Pod) -> None:
            self._pods.on_delete(pod)  # made later

        shown = self._informers.informer(PODS).store.get
        return UnconfirmedBindings(self._cache, self._api, shown, self._steering.background, gone, self._clock)

    def _watch(self) -> None:
        informers, coscheduling = self._informers, self._coscheduling

        def reject_waiting_pod(pod: corev1.Pod) -> bool:
            return self._first.reject_waiting_pod(pod.uid)

        self._pods = pods = PodHandlers(self._cache, self._nominator, [coscheduling], reject_waiting_pod)
        watch_in_tree_groups(informers, coscheduling, self._verdicts.on_pod_group)
        watch_foreign_groups(informers, coscheduling)
        watch_volumes(informers, coscheduling.on_volumes)
        informers.informer(PODS).add_handler(pods)
        informers.informer(PODS).add_handler(ObjectHandlers(self._pod_groups.on_pod))
        informers.informer(PODS).add_handler(ObjectHandlers(self._observed.on_pod, self._unreached.on_pod))
        informers.informer(NODES).add_handler(NodeHandlers(self._cache, coscheduling.on_node))
        for of in (informers.informer(PODS), informers.informer(NODES)):
            of.on_listed(partial(self._cache.prepare_snapshot, ShortSteps().pause_if_due))
        pod_groups = informers.informer(POD_GROUPS, optional=True)
        pod_groups.add_handler(ObjectHandlers(coscheduling.on_pod_group))
        pod_groups.add_handler(ObjectHandlers(self._pod_groups.on_pod_group))
        pod_groups.add_handler(ObjectHandlers(self._verdicts.on_pod_group))
        informers.informer(NAMESPACES)
        informers.informer(POD_DISRUPTION_BUDGETS, optional=True)
        lease = self._configuration.leader_lease
        if lease is not None:
            selector = f"metadata.name={lease.name}"
            leases = informers.informer(LEASES, namespace=lease.namespace, field_selector=selector)
            leases.add_handler(LeaseHandlers(self._leadership, self._elector.on_lease if self._elector else None))

    def _dependencies(self) -> SchedulerDependencies:
        bind_seconds = gang_settings.bind_seconds(self._configuration.bind_timeout_seconds)
        return SchedulerDependencies(
            api=self._api,
            informers=self._informers,
            profiles=self._frameworks,
            default_profile=self._first,
            serves=self._configuration.serves,
            leadership=self._leadership,
            in_flight=InFlight(
                self._configuration.max_held_binds + gang_settings.BRIEF_BINDS, lambda: self._clock() + bind_seconds
            ),
            filter_health=self._filter_health,
            elector=self._elector,
            unreached=self._unreached,
            early_end=self._early_end,
            refusals=FilterHealth(self._clock, askers=1, text="every filter call has been refused", hint=""),
            scheduling_cycle=SchedulingCycle(self._cache.snapshot, self._clock),
            preemption_cycle=PreemptionCycle(self._cache.snapshot, self._coscheduling.process_preemption),
            bind_verb=BindVerb(self._cache, self._coscheduling.events.on_forgotten),
            coscheduling=self._coscheduling,
            steering=self._steering,
            background=self._background,
            planning=self._planning,
            evictor=self._evictor,
            recorder=self._recorder,
            verdicts=self._verdicts,
            pod_groups=self._pod_groups,
            live_metrics=self._live_metrics(),
            observed=self._observed,
            running=self._running,
            node_count=self._cache.node_count,
            access=PageAccess(self._api, self._clock),
            debugger=Debugger(self._cache, self._informers, self._api, self._coscheduling),
        )

    def _live_metrics(self) -> LiveMetrics:
        own = (*of_leadership(self._leadership), *of_cache(self._cache), *of_informers(self._informers))
        return LiveMetrics(
            [
                *own,
                *of_gangs(self._coscheduling.report),
                *of_waiting_gangs(lambda: self._coscheduling.waiting_gangs.now),
                *of_pod_groups(self._pod_groups.foreign),
                *of_room(self._coscheduling.report.largest),
                *of_configuration(self._running.findings),
            ]
        )


def _most_nodes_offered(configuration: ExtenderConfiguration) -> int:
    """Up to how many nodes gated members are freed without a nomination, whatever is promised of where they go: docs/design/0014."""
    return NODES_WITHOUT_NOMINATION if _percentages(configuration) == {100} else MIN_FEASIBLE_NODES_TO_FIND


def _offers_few(configuration: ExtenderConfiguration, nodes: int) -> bool:
    """Whether kube-scheduler's sample of so many nodes is small enough for that, as far as the extender is told."""
    every = _percentages(configuration)
    known = bool(every) and 0 not in every
    return known and num_feasible_nodes_to_find(max(every), nodes) <= NODES_WITHOUT_NOMINATION


def _percentages(configuration: ExtenderConfiguration) -> set[int]:
    """percentageOfNodesToScore of each profile; 0 where nothing is said of it."""
    own = {profile.percentage_of_nodes_to_score for profile in served_profiles(configuration)}
    return {configuration.percentage_of_nodes_to_score if each is None else each for each in own}


class _OnceSynced:
    """Says so, and calls, when the informers have synced for the first time."""

    def __init__(self, call: Callable[[], None] | None, is_so: Callable[[], bool]) -> None:
        self._call = call
        self._is_so = is_so
        self._done = False

    def tick(self) -> None:
        if not self._done and self._is_so():
            self._done = True
            log.info("ready: the whole cluster has been seen")
            if self._call is not None:
                self._call()


def _coscheduling_of(framework: Framework) -> Coscheduling:
    plugin = framework.plugins[names.COSCHEDULING]
    if not isinstance(plugin, Coscheduling):
        raise TypeError(f"{names.COSCHEDULING} is {type(plugin).__name__}")
    return plugin
