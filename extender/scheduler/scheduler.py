"""The scheduler behind the four verbs: checks whether we may answer, picks the profile, runs the cycle, words the answer.

kube-scheduler: pkg/scheduler/scheduler.go
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from extender import metrics
from extender.api import corev1
from extender.api.extenderv1 import (
    ExtenderArgs,
    ExtenderBindingArgs,
    ExtenderBindingResult,
    ExtenderFilterResult,
    ExtenderPreemptionArgs,
    ExtenderPreemptionResult,
    HostPriority,
)
from extender.client.errors import ApiError, NotFoundError
from extender.client.events import Recorder
from extender.client.informer import InformerFactory
from extender.client.interface import API, NODES, PODS
from extender.client.time_limit import within
from extender.framework.runtime.framework import Framework
from extender.plugins.coscheduling.dependencies import COMMIT_SECONDS
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.report.page.picture import Picture
from extender.scheduler import attempts
from extender.scheduler.actions.evictor import ApiEvictor
from extender.scheduler.actions.steering import StatusSteering
from extender.scheduler.actions.verdicts import GroupVerdicts
from extender.scheduler.background import Background
from extender.scheduler.bind_verb import BindVerb
from extender.scheduler.cluster_feed import ClusterFeed
from extender.scheduler.debugging import Debugger
from extender.scheduler.early_end import EarlyEnd
from extender.scheduler.election import Elector
from extender.scheduler.filter_health import FilterHealth
from extender.scheduler.health import Health
from extender.scheduler.in_flight import BindCall, DrainingError, InFlight, TooManyHeldBindsError
from extender.scheduler.interface import (
    CONFIGURATION,
    DRAIN,
    GANG,
    GANGS,
    POD,
    WHAT_IF,
    Caller,
    Check,
    NotCacheCapableError,
    NotSyncedError,
    Page,
)
from extender.scheduler.leadership import Leadership
from extender.scheduler.live_metrics import LiveMetrics
from extender.scheduler.observed_settings import ObservedSettings
from extender.scheduler.page_access import PageAccess
from extender.scheduler.pages import drain, pod_status, what_if
from extender.scheduler.pod_groups.controller import PodGroupController
from extender.scheduler.preemption_cycle import PreemptionCycle
from extender.scheduler.running_configuration import RunningConfiguration
from extender.scheduler.scheduling_cycle import NOT_CACHE_CAPABLE, SchedulingCycle
from extender.scheduler.unreached import Unreached

log = logging.getLogger(__name__)

HUNG_UP = "the caller has hung up"
_BINDING = metrics.goroutines.labels("binding")


@dataclass(frozen=True, slots=True)
class SchedulerDependencies:
    """What a Scheduler is given by the factory. serves: whether pods that name this scheduler are ours. planning: the thread that
    plans gangs beside the verbs. node_count: of the cache. elector: None beside a kube-scheduler, which elects."""

    api: API
    informers: InformerFactory
    profiles: Mapping[str, Framework]
    default_profile: Framework
    serves: Callable[[str], bool]
    leadership: Leadership
    elector: Elector | None
    in_flight: InFlight
    filter_health: FilterHealth
    refusals: FilterHealth
    unreached: Unreached
    early_end: EarlyEnd
    scheduling_cycle: SchedulingCycle
    preemption_cycle: PreemptionCycle
    bind_verb: BindVerb
    coscheduling: Coscheduling
    steering: StatusSteering
    background: Background
    planning: Background
    evictor: ApiEvictor
    recorder: Recorder
    verdicts: GroupVerdicts
    pod_groups: PodGroupController
    live_metrics: LiveMetrics
    observed: ObservedSettings
    running: RunningConfiguration
    node_count: Callable[[], int]
    access: PageAccess
    debugger: Debugger


class Scheduler:
    """Fulfils interface.Verbs. Threads come with start and go with stop."""

    def __init__(self, dependencies: SchedulerDependencies) -> None:
        self._dependencies = dependencies
        self._health = Health(
            dependencies.informers,
            dependencies.leadership,
            dependencies.verdicts,
            dependencies.pod_groups,
            dependencies.filter_health,
            dependencies.refusals,
            dependencies.unreached,
            dependencies.early_end,
            dependencies.background,
            dependencies.planning,
            dependencies.running,
        )
        self._stopped = False
        self._feed = ClusterFeed(self._picture, self._check_synced)

    def _picture(self) -> Picture:
        dependencies = self._dependencies
        return Picture(dependencies.coscheduling.report, dependencies.coscheduling.dependencies.may_plan)

    def filter(self, args: ExtenderArgs) -> ExtenderFilterResult:
        if args.node_names is None:
            if args.nodes is None:
                return ExtenderFilterResult(error="no NodeNames")
            self._dependencies.observed.whole_nodes("filter")
            return ExtenderFilterResult(error=NOT_CACHE_CAPABLE)
        self._dependencies.unreached.asked()
        if self._not_ours(args.pod):
            return ExtenderFilterResult(node_names=list(args.node_names))
        reason = self._health.not_ready()
        self._dependencies.refusals.answered("kube-scheduler", error=bool(reason))
        if reason:
            return ExtenderFilterResult(error=reason)
        profile = self._profile(args.pod)
        self._dependencies.observed.filtered(args.pod, len(args.node_names), self._dependencies.node_count())
        started = time.perf_counter()
        error = True
        try:
            result = self._dependencies.scheduling_cycle.filter(profile, args.pod, args.node_names)
            error = bool(result.error)
        finally:
            self._dependencies.filter_health.answered(self._asker(args.pod), error=error)
        attempts.filtered(profile.profile_name, result, time.perf_counter() - started)
        return result

    def _asker(self, pod: corev1.Pod) -> str:
        """The gang, or the single pod."""
        try:
            return self._dependencies.coscheduling.manager.key_of(pod) or pod.key
        except Exception:
            return pod.key

    def prioritize(self, args: ExtenderArgs) -> Sequence[HostPriority]:
        if args.node_names is None and args.nodes is not None:
            self._dependencies.observed.whole_nodes("prioritize")
            raise NotCacheCapableError("NodeNames")
        names = args.node_names or ()
        if self._not_ours(args.pod) or self._health.not_ready():
            return [HostPriority(host=name, score=0) for name in names]
        return self._dependencies.scheduling_cycle.prioritize(self._profile(args.pod), args.pod, names)

    def preempt(self, args: ExtenderPreemptionArgs) -> ExtenderPreemptionResult:
        if args.node_name_to_meta_victims is None and args.node_name_to_victims is not None:
            self._dependencies.observed.whole_nodes("preempt")
            raise NotCacheCapableError("NodeNameToMetaVictims")
        if args.node_name_to_meta_victims is None or self._health.not_ready():
            return ExtenderPreemptionResult()
        with self._dependencies.scheduling_cycle.lock:
            victims = self._dependencies.preemption_cycle.run(args.pod, args.node_name_to_meta_victims)
        return ExtenderPreemptionResult(node_name_to_meta_victims=victims)

    def bind(self, args: ExtenderBindingArgs, caller: Caller) -> ExtenderBindingResult:
        if reason := self._health.not_ready():
            return ExtenderBindingResult(error=reason)
        try:
            with self._dependencies.in_flight.enter(args.pod_uid) as call:
                cancel = caller.on_gone(lambda: call.abort(HUNG_UP))
                began = time.monotonic()
                try:
                    with metrics.held_binds.track_inprogress(), _BINDING.track_inprogress():
                        return ExtenderBindingResult(error=self._bind(args, call))
                finally:
                    cancel()
                    ended = min(time.monotonic(), call.aborted_at)
                    self._dependencies.observed.bind_ended(ended - began, hung_up=call.reason == HUNG_UP)
        except (DrainingError, TooManyHeldBindsError) as error:
            return ExtenderBindingResult(error=str(error))

    def _bind(self, args: ExtenderBindingArgs, call: BindCall) -> str:
        """The error text, empty for bound."""
        key = f"{args.pod_namespace}/{args.pod_name}"
        try:
            with within(COMMIT_SECONDS):
                pod = self._pod(args)
        except NotFoundError:
            return f'pod "{key}" not found'
        except ApiError as error:
            return f'pod "{key}" could not be read: {error}'
        if pod.uid != args.pod_uid:
            return f'pod "{key}" has another UID now: {pod.uid}, not {args.pod_uid}'
        if pod.node_name:
            return "" if pod.node_name == args.node else f'pod "{key}" is already assigned to node "{pod.node_name}"'
        if pod.deleting or pod.terminal:
            return f'pod "{key}" is being deleted'
        self._dependencies.observed.bind_came(pod)
        if pod.gated and not self._dependencies.steering.has_ungated(pod):
            return f'pod "{key}" has scheduling gates'
        if self._not_ours(pod):
            return f'pod "{key}" is not of this scheduler: {pod.spec.scheduler_name}'
        if not self._dependencies.informers.informer(NODES).store.get(args.node):
            return f'node "{args.node}" not found'
        if call.reason:
            return call.reason
        profile = self._profile(pod)
        started = time.perf_counter()
        status = self._dependencies.bind_verb.run(profile, pod, args.node, call)
        attempts.bound(profile.profile_name, status, time.perf_counter() - started)
        return "" if status.success else status.message or str(status.code)

    def _pod(self, args: ExtenderBindingArgs) -> corev1.Pod:
        """As the watch has it; where the watch is behind, kube-scheduler's or our own binding, as the API server has it."""
        pod = self._dependencies.informers.informer(PODS).store.get(f"{args.pod_namespace}/{args.pod_name}")
        if pod is not None and pod.gated and not self._dependencies.steering.has_ungated(pod):
            pod = None  # kube-scheduler asks about no gated pod: the gate has gone, and our watch is behind
        if pod is None or pod.uid != args.pod_uid or self._dependencies.bind_verb.is_assumed(pod):
            return self._dependencies.api.get(PODS, args.pod_name, args.pod_namespace)
        return pod

    def _profile(self, pod: corev1.Pod) -> Framework:
        return self._dependencies.profiles.get(pod.spec.scheduler_name, self._dependencies.default_profile)

    def _not_ours(self, pod: corev1.Pod) -> bool:
        return not self._dependencies.serves(pod.spec.scheduler_name)

    def keeps_connections(self) -> bool:
        return self._dependencies.elector is None or self._dependencies.leadership.leading

    def readiness(self) -> Sequence[Check]:
        return self._health.readiness(draining=self._stopped)

    def liveness(self) -> Sequence[Check]:
        return self._health.liveness()

    def pages(self) -> Mapping[str, Page]:
        coscheduling = self._dependencies.coscheduling
        of_the_cluster: Mapping[str, Page] = {
            GANGS: coscheduling.report.summaries,
            GANG: coscheduling.report.status,
            POD: partial(pod_status, self._dependencies.informers.informer(PODS).store.get, coscheduling),
            DRAIN: partial(drain, coscheduling),
            WHAT_IF: partial(what_if, coscheduling),
        }
        return {
            **{path: self._once_synced(page) for path, page in of_the_cluster.items()},
            CONFIGURATION: self._dependencies.running.page,
        }

    def _once_synced(self, page: Page) -> Page:
        def show(*args: Any) -> object:
            self._check_synced()
            return page(*args)

        return show

    def _check_synced(self) -> None:
        """Of half a cluster it would say that PodGroups do not exist, or that gangs have no pods. Raises NotSyncedError."""
        informers = self._dependencies.informers
        if not informers.has_synced():
            raise NotSyncedError([f"{each.resource} {each.reason}" for each in informers.states() if not each.synced])

    def debug(self) -> Mapping[str, Page]:
        return self._dependencies.debugger.pages()

    def feed(self) -> ClusterFeed:
        return self._feed

    def access(self) -> PageAccess:
        return self._dependencies.access

    def start(self) -> None:
        self._dependencies.running.log()
        self._dependencies.live_metrics.start()
        self._dependencies.informers.start()
        self._dependencies.evictor.tick()
        self._dependencies.background.start()
        self._dependencies.planning.start()
        self._dependencies.recorder.start()
        if self._dependencies.elector is not None:
            self._dependencies.elector.start()

    def drain(self, message: str) -> None:
        self._stopped = True
        self._feed.stop()
        self._dependencies.in_flight.drain(message)
        self._dependencies.evictor.stop()

    def stop(self) -> None:
        self.drain("shutting down")
        if self._dependencies.elector is not None:
            self._dependencies.elector.stop()
        self._dependencies.background.stop()
        self._dependencies.planning.stop()
        self._dependencies.steering.stop()
        self._dependencies.informers.stop()
        self._dependencies.pod_groups.stop()
        self._dependencies.verdicts.stop()
        self._dependencies.recorder.stop()
        self._dependencies.api.close()
        self._dependencies.live_metrics.stop()
