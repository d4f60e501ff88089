"""One pod's attempt, from the queue to its node: the scheduling cycle, and the binding cycle in two halves.

The steps of the binding cycle, and how they are taken back, are binding_cycle.py's; here is what the queue, the pod's
events and its status have to do with them. InProcessScheduler gives each binding cycle a thread, which sleeps while its
pod waits in Permit; the simulation runs everything on one thread and parks the attempts that wait.

    schedule_one --> Attempt --> begin_binding --> (waits in Permit) --> finish_binding
         |                            |                                       |
         +--- refused, failed --------+---------------------------------------+---> taken back, FailureHandler

kube-scheduler: pkg/scheduler/schedule_one.go (scheduleOnePod, schedulingCycle, bindingCycle, handleBindingCycleError)
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.backend.cache.cache import Cache, CacheError
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.interface import API, EventRecorder, pod_reference
from extender.framework import events
from extender.framework.cycle_state import CycleState
from extender.framework.diagnosis import FitError
from extender.framework.interface import NominatingMode, PostFilterResult
from extender.framework.runtime.framework import Framework
from extender.framework.runtime.metrics_recorder import sampled_state
from extender.framework.status import SUCCESS, Code, Status, error
from extender.scheduler.binding_cycle import BindingCycle, BindingCycles
from extender.scheduler.in_process import pods_to_activate
from extender.scheduler.in_process.failure_handler import CLEAR_NOMINATED_NODE, Failure, FailureHandler, update_pod
from extender.scheduler.in_process.http_extender import ExtenderError, HTTPExtender
from extender.scheduler.in_process.schedule_one import Algorithm, NoNodesAvailableError, SchedulingError

log = logging.getLogger(__name__)

MANY_ATTEMPTS = 15
"""From here on attempts are not told apart in metrics."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A pod that is assumed on its node, on its way to be bound there. started: by time.perf_counter()."""

    entry: QueuedPod
    cycle: BindingCycle
    started: float


class PodCycles:
    """schedule_one comes one at a time; the two halves of binding cycles run side by side. No lock of its own."""

    def __init__(
        self,
        api: API,
        cache: Cache,
        queue: PriorityQueue,
        profiles: Mapping[str, Framework],
        algorithm: Algorithm,
        failures: FailureHandler,
        recorder: EventRecorder,
    ) -> None:
        """profiles: by scheduler name."""
        self._api = api
        self._cache = cache
        self._bindings = BindingCycles(cache)
        self._queue = queue
        self._profiles = profiles
        self._algorithm = algorithm
        self._failures = failures
        self._recorder = recorder

    @property
    def _extenders(self) -> Sequence[HTTPExtender]:
        return self._algorithm.extenders

    # The scheduling cycle

    def schedule_one(self, entry: QueuedPod) -> Attempt | None:
        """The attempt if the pod has got a node, to be bound by begin_binding; None if the attempt is over."""
        pod = entry.pod
        framework = self._profiles.get(pod.spec.scheduler_name)
        if framework is None:
            log.error("profile not found pod=%s scheduler=%s", pod.key, pod.spec.scheduler_name)
            self._queue.done(entry.uid)
            return None
        if self._skip(pod):
            self._queue.done(entry.uid)
            return None
        started = time.perf_counter()
        state = sampled_state() if framework.record is not None else CycleState()
        pods_to_activate.begin(state)
        host = self._host(entry, framework, state, started)
        if host is None:
            return None
        return self._prepare_for_binding(entry, framework, state, host, started)

    def _skip(self, pod: corev1.Pod) -> bool:
        """Go: skipPodSchedule. An assumed pod comes by an update that was seen before it was assumed."""
        if pod.deleting:
            note = f"skip schedule deleting pod: {pod.key}"
            self._recorder.event(pod_reference(pod), "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return self._cache.is_assumed_pod(pod)

    def _host(self, entry: QueuedPod, framework: Framework, state: CycleState, started: float) -> str | None:
        """The chosen node; None after what failed was handled. Go: schedulingAlgorithm."""
        try:
            snapshot = self._cache.snapshot()
            return self._algorithm.schedule_pod(framework, state, entry.pod, snapshot).suggested_host
        except FitError as fit_error:
            nominating = self._post_filter(framework, state, entry.pod, fit_error)
            self._failures.handle(entry, Failure.of_fit_error(fit_error), nominating, started)
        except (NoNodesAvailableError, SchedulingError) as failed:
            failure = Failure(str(failed), isinstance(failed, NoNodesAvailableError))
            self._failures.handle(entry, failure, CLEAR_NOMINATED_NODE, started)
        finally:
            framework.set_snapshot(None)
            metrics.scheduling_algorithm_duration.observe(time.perf_counter() - started)
        return None

    def _post_filter(
        self, framework: Framework, state: CycleState, pod: corev1.Pod, fit_error: FitError
    ) -> PostFilterResult | None:
        """May make room; this attempt has failed in any case. None leaves the nomination as it is."""
        if not framework.has_post_filter_plugins():
            return CLEAR_NOMINATED_NODE
        diagnosis = fit_error.diagnosis
        result, status = framework.run_post_filter_plugins(state, pod, diagnosis.node_to_status)
        diagnosis.post_filter_message = status.message
        if status.code is Code.ERROR:
            log.error("PostFilter failed pod=%s status=%s", pod.key, status.message)
        return result

    def _prepare_for_binding(
        self, entry: QueuedPod, framework: Framework, state: CycleState, host: str, started: float
    ) -> Attempt | None:
        """Go: prepareForBindingCycle."""
        try:
            cycle = self._bindings.begin(framework, state, entry.pod, host)
        except CacheError as failed:  # a fault in requeueing: the handler sees whether the pod is bound already
            self._failures.handle(entry, Failure(str(failed), False), CLEAR_NOMINATED_NODE, started)
            return None
        if not (cycle.status.success or cycle.status.wait):
            failure = Failure.of_status(entry.pod, cycle.status, host)
            self._failures.handle(entry, failure, CLEAR_NOMINATED_NODE, started)
            return None
        pods_to_activate.activate_stashed(state, self._queue.activate)
        return Attempt(entry, cycle, started)

    # The binding cycle

    def begin_binding(self, attempt: Attempt) -> bool:
        """What comes before the wait in Permit. False if the attempt is over."""
        cycle = attempt.cycle
        status = cycle.run_pre_flights()
        if not (status.success or status.skip):
            self._binding_failed(attempt, Failure.of_binding(status, cycle.node_name))
            return False
        if cycle.runs_pre_bind or cycle.framework.will_wait_on_permit(cycle.pod):
            # It may take a while: a program that counts free room from outside (an autoscaler) sees where the pod will be.
            expected = PostFilterResult(cycle.node_name, NominatingMode.OVERRIDE)
            update_pod(self._api, cycle.pod, None, expected)
        return True

    def finish_binding(self, attempt: Attempt) -> bool:
        """Waits in Permit if that is not decided yet, then PreBind, Bind, PostBind. Whether the pod is bound."""
        cycle = attempt.cycle
        status = cycle.wait_on_permit()
        if not status.success:
            self._binding_failed(attempt, Failure.of_status(cycle.pod, status, cycle.node_name))
            return False
        self._queue.done(cycle.pod.uid)  # from here on a failure is no refusal
        status = cycle.bind(partial(self._bind, cycle))
        if not status.success:
            self._binding_failed(attempt, Failure.of_binding(status, cycle.node_name))
            return False
        self._bound(attempt)
        cycle.run_post_bind()
        pods_to_activate.activate_stashed(cycle.state, self._queue.activate)
        return True

    def abandon(self, attempt: Attempt) -> None:
        """After an exception that nothing above has handled: the pod keeps no room, and the queue no event for it."""
        attempt.cycle.take_back()
        self._queue.done(attempt.entry.uid)

    def _bind(self, cycle: BindingCycle) -> Status:
        """An interested extender that binds comes before the Bind plugins. Go: bind, extendersBinding."""
        for extender in self._extenders:
            if not extender.is_binder or not extender.is_interested(cycle.pod):
                continue
            try:
                extender.bind(cycle.pod, cycle.node_name)
            except ExtenderError as failed:
                if extender.ignorable:
                    log.info("skipping extender in bind as it returned error and has ignorable flag set")
                    continue
                return error(str(failed))
            return SUCCESS
        return cycle.framework.run_bind_plugins(cycle.state, cycle.pod, cycle.node_name)

    def _bound(self, attempt: Attempt) -> None:
        """The event and the metrics of a pod that was scheduled. Go: finishBinding"""
        pod, framework = attempt.cycle.pod, attempt.cycle.framework
        profile = framework.profile_name
        note = f"Successfully assigned {pod.key} to {pod.node_name}"
        self._recorder.event(pod_reference(pod), "Normal", "Scheduled", "Binding", note)
        metrics.schedule_attempts.labels("scheduled", profile).inc()
        metrics.scheduling_attempt_duration.labels("scheduled", profile).observe(time.perf_counter() - attempt.started)
        entry = attempt.entry
        metrics.pod_scheduling_attempts.observe(entry.attempts)
        if entry.initial_attempt_timestamp is not None:
            attempts = str(entry.attempts) if entry.attempts < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
            took = framework.clock() - entry.initial_attempt_timestamp
            metrics.pod_scheduling_sli_duration.labels(attempts).observe(took)

    def _binding_failed(self, attempt: Attempt, failure: Failure) -> None:
        """What the assumed pod took comes free, as if it had been deleted. Go: handleBindingCycleError.

        A pod that was refused hears nothing of its own room; after an error it does, and comes to the back-off queue.
        """
        pod = attempt.cycle.pod
        forgotten = attempt.cycle.take_back()
        if forgotten and not failure.rejected:
            self._queue.move_all_to_active_or_backoff_queue(events.ASSIGNED_POD_DELETE, pod, None)
        self._failures.handle(attempt.entry, failure, CLEAR_NOMINATED_NODE, attempt.started)
        if forgotten and failure.rejected:
            self._queue.move_all_to_active_or_backoff_queue(
                events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.uid != pod.uid
            )
