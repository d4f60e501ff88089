"""kube-scheduler itself, in-process: the loop around schedule_one, with queue, cache and bindings.

The demo lets it call our own verbs over HTTP; the simulation runs it on virtual time.
kube-scheduler: pkg/scheduler/schedule_one.go (ScheduleOne), pkg/scheduler/eventhandlers.go
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from extender import metrics
from extender.api import corev1
from extender.backend.cache.cache import Cache, CacheError
from extender.backend.queue.nominator import Nominator
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.queueing_hints import QueueingHints, build_hints
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.events import Recorder
from extender.client.informer import InformerFactory
from extender.client.interface import API, NODES, PODS, pod_reference
from extender.config.types import KubeSchedulerProfile
from extender.framework import events
from extender.framework.cycle_state import CycleState
from extender.framework.diagnosis import FitError
from extender.framework.interface import NominatingMode, PostFilterResult
from extender.framework.runtime.framework import Framework, Surroundings
from extender.framework.runtime.registry import Registry
from extender.framework.status import SUCCESS, Status, error
from extender.scheduler.failure_handler import Failure, FailureHandler
from extender.scheduler.http_extender import ExtenderError, HTTPExtender
from extender.scheduler.schedule_one import Algorithm, NoNodesAvailableError, SchedulingError

log = logging.getLogger(__name__)

CLEAR_NOMINATED_NODE = PostFilterResult("", NominatingMode.OVERRIDE)
POP_SECONDS = 0.5


class InProcessScheduler:
    """One profile. Threads come with start and go with stop; bindings run each on a thread of its own."""

    def __init__(
        self,
        api: API,
        profile: KubeSchedulerProfile,
        registry: Registry,
        extenders: Sequence[HTTPExtender] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api = api
        self._extenders = extenders
        self._informers = InformerFactory(api, clock)
        self._cache = Cache(clock=clock)
        self._recorder = Recorder(api, clock=clock)
        pods = self._informers.informer(PODS)
        nominator = Nominator(pods.store)
        self._framework = Framework(
            profile,
            registry,
            Surroundings(
                api=api,
                events=self._recorder,
                newest_snapshot=self._cache.snapshot,
                lister=self._informers.store_of,
                nominator=nominator,
                clock=clock,
                activate=lambda pods: self._queue.activate(pods),
            ),
        )
        name = profile.scheduler_name
        self._queue = PriorityQueue(
            self._framework.less,
            nominator=nominator,
            pre_enqueue={name: self._framework.pre_enqueue_plugins},
            hints=QueueingHints({name: build_hints(self._framework.plugins.values(), with_extenders=bool(extenders))}),
            clock=clock,
        )
        self._algorithm = Algorithm(extenders)
        self._failures = FailureHandler(api, self._cache, self._queue, pods.store, self._recorder)
        pods.add_handler(_PodHandlers(self._cache, self._queue, name))
        self._informers.informer(NODES).add_handler(_NodeHandlers(self._cache, self._queue))
        self._stopping = threading.Event()
        self._threads: set[threading.Thread] = set()
        self._loop: threading.Thread | None = None

    def start(self) -> None:
        self._recorder.start()
        self._informers.start()
        self._loop = threading.Thread(target=self._run, name="schedule-one", daemon=True)
        self._loop.start()

    def stop(self) -> None:
        """Bindings that are still held end first: their extender has to let them go."""
        self._stopping.set()
        self._queue.close()
        if self._loop is not None:
            self._loop.join()
        for thread in list(self._threads):
            thread.join()
        self._informers.stop()
        self._recorder.stop()

    def _run(self) -> None:
        while not self._stopping.is_set() and not self._informers.wait_for_sync(POP_SECONDS):
            pass
        while not self._stopping.is_set():
            entry = self._queue.pop(POP_SECONDS)
            if entry is not None:
                self.schedule_one(entry)

    def schedule_one(self, entry: QueuedPod) -> None:
        """One attempt: to a waiting binding, or through the failure handler. Go: scheduleOne."""
        pod = entry.pod
        if pod.deleting or self._cache.is_assumed_pod(pod):  # Go: skipPodSchedule
            self._queue.done(entry.uid)
            return
        state = CycleState()
        started = time.perf_counter()
        try:
            result = self._algorithm.schedule_pod(self._framework, state, pod, self._cache.snapshot())
        except FitError as fit_error:
            self._fit_failed(entry, state, fit_error)
            return
        except (NoNodesAvailableError, SchedulingError) as failure:
            rejected = isinstance(failure, NoNodesAvailableError)
            self._failures.handle(entry, Failure(str(failure), rejected), frozenset(), CLEAR_NOMINATED_NODE)
            return
        finally:
            self._framework.set_snapshot(None)
        assumed = self._cache.assume_pod(pod, result.suggested_host)
        self._queue.nominator.delete_nominated_pod_if_exists(assumed)
        status = self._reserve_and_permit(state, assumed)
        if not (status.success or status.wait):
            self._undo(state, assumed)
            self._failures.handle(
                entry, Failure.of_status(status), frozenset(filter(None, [status.plugin])), CLEAR_NOMINATED_NODE
            )
            return
        thread = threading.Thread(
            target=self._bind_guarded, args=(entry, state, assumed, started), name="bind", daemon=True
        )
        self._threads.add(thread)
        thread.start()

    def _fit_failed(self, entry: QueuedPod, state: CycleState, fit_error: FitError) -> None:
        """PostFilter may make room; the pod is unschedulable for now in any case."""
        nominating: PostFilterResult | None = None
        diagnosis = fit_error.diagnosis
        if self._framework.has_post_filter_plugins():
            nominating, status = self._framework.run_post_filter_plugins(state, entry.pod, diagnosis.node_to_status)
            diagnosis.post_filter_message = status.message
        self._failures.handle(
            entry, Failure(str(fit_error), True, fit_error), frozenset(diagnosis.unschedulable_plugins), nominating
        )

    def _reserve_and_permit(self, state: CycleState, assumed: corev1.Pod) -> Status:
        node_name = assumed.spec.node_name
        status = self._framework.run_reserve_plugins_reserve(state, assumed, node_name)
        if not status.success:
            return status
        status, timeouts = self._framework.run_permit_plugins(state, assumed, node_name)
        if status.wait:
            self._framework.add_waiting_pod(assumed, node_name, timeouts)
        return status

    def _bind_guarded(self, entry: QueuedPod, state: CycleState, assumed: corev1.Pod, started: float) -> None:
        try:
            self._binding_cycle(entry, state, assumed, started)
        except Exception:
            log.exception("binding cycle failed pod=%s", assumed.key)
        finally:
            self._threads.discard(threading.current_thread())

    def _binding_cycle(self, entry: QueuedPod, state: CycleState, assumed: corev1.Pod, started: float) -> None:
        node_name = assumed.spec.node_name
        status = self._framework.wait_on_permit(assumed)
        if status.success:
            self._queue.done(entry.uid)  # from here on a failure is no refusal
            status = self._framework.run_pre_bind_plugins(state, assumed, node_name)
        if status.success:
            status = self._bind(state, assumed, node_name)
        if not status.success:
            self._undo(state, assumed)
            self._queue.move_all_to_active_or_backoff_queue(events.ASSIGNED_POD_DELETE, assumed, None)
            plugins = frozenset(filter(None, [status.plugin]))
            self._failures.handle(entry, Failure.of_status(status, node_name), plugins, CLEAR_NOMINATED_NODE)
            return
        self._cache.finish_binding(assumed)
        metrics.schedule_attempts.labels("scheduled", self._framework.profile_name).inc()
        metrics.scheduling_attempt_duration.labels("scheduled", self._framework.profile_name).observe(
            time.perf_counter() - started
        )
        note = f"Successfully assigned {assumed.key} to {node_name}"
        self._recorder.event(pod_reference(assumed), "Normal", "Scheduled", "Binding", note)
        self._framework.run_post_bind_plugins(state, assumed, node_name)

    def _bind(self, state: CycleState, assumed: corev1.Pod, node_name: str) -> Status:
        """An interested extender that binds comes before the Bind plugins. Go: bind, extendersBinding."""
        for extender in self._extenders:
            if not extender.is_binder or not extender.is_interested(assumed):
                continue
            try:
                extender.bind(assumed, node_name)
            except ExtenderError as failed:
                if extender.ignorable:
                    log.info("skipping extender in bind as it returned error and has ignorable flag set")
                    continue
                return error(str(failed))
            return SUCCESS
        return self._framework.run_bind_plugins(state, assumed, node_name)

    def _undo(self, state: CycleState, assumed: corev1.Pod) -> None:
        self._framework.run_reserve_plugins_unreserve(state, assumed, assumed.spec.node_name)
        try:
            self._cache.forget_pod(assumed)
        except CacheError as failed:
            log.info("assumed pod was not forgotten pod=%s reason=%s", assumed.key, failed)


class _PodHandlers:
    """Assigned pods to the cache and, as events, to the queue; the others, if they are ours, into the queue."""

    def __init__(self, cache: Cache, queue: PriorityQueue, scheduler_name: str) -> None:
        self._cache = cache
        self._queue = queue
        self._scheduler_name = scheduler_name

    def on_add(self, pod: corev1.Pod) -> None:
        if pod.node_name:
            self._cache.add_pod(pod)
            self._queue.assigned_pod_added(pod)
        elif pod.spec.scheduler_name == self._scheduler_name:
            self._queue.add(pod)

    def on_update(self, old: corev1.Pod, new: corev1.Pod) -> None:
        if old.uid != new.uid:
            self.on_delete(old)
            self.on_add(new)
        elif not new.node_name:
            if new.spec.scheduler_name == self._scheduler_name and not self._cache.skip_pod_update(new):
                self._queue.update(old, new)
        elif old.node_name:
            self._cache.update_pod(old, new)
            self._queue.assigned_pod_updated(old, new)
        else:
            self._queue.delete(old)
            self._cache.add_pod(new)
            self._queue.assigned_pod_added(new)

    def on_delete(self, pod: corev1.Pod) -> None:
        if pod.node_name:
            self._cache.remove_pod(pod)
            self._queue.move_all_to_active_or_backoff_queue(events.ASSIGNED_POD_DELETE, pod, None)
        else:
            self._queue.delete(pod)


class _NodeHandlers:
    def __init__(self, cache: Cache, queue: PriorityQueue) -> None:
        self._cache = cache
        self._queue = queue

    def on_add(self, node: corev1.Node) -> None:
        self._cache.add_node(node)
        self._queue.move_all_to_active_or_backoff_queue(events.NODE_ADD, None, node)

    def on_update(self, old: corev1.Node, new: corev1.Node) -> None:
        self._cache.update_node(old, new)
        for event in events.node_scheduling_properties_change(old, new):
            self._queue.move_all_to_active_or_backoff_queue(event, old, new)

    def on_delete(self, node: corev1.Node) -> None:
        self._cache.remove_node(node)
        self._queue.move_all_to_active_or_backoff_queue(events.NODE_DELETE, node, None)
