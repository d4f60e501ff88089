"""What becomes of a pod that was not placed: back into the queue, an event, a condition, a nomination.

kube-scheduler: pkg/scheduler/schedule_one.go (handleSchedulingFailure)
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from extender import metrics
from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.backend.cache.cache import Cache, CacheError
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.scheduling_queue import PriorityQueue, QueueError
from extender.client.errors import ApiError, NotFoundError
from extender.client.events import cut
from extender.client.interface import API, NODES, EventRecorder, pod_reference
from extender.client.status_patch import patch_pod_status
from extender.framework.diagnosis import Diagnosis, FitError
from extender.framework.interface import NodeToStatus, NominatingMode, PostFilterResult
from extender.framework.listers import Lister
from extender.framework.status import Status, unresolvable

log = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"

CLEAR_NOMINATED_NODE = PostFilterResult("", NominatingMode.OVERRIDE)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why: a verdict (rejected) or an error, in words; the diagnosis of a FitError names the plugins that refused, for the queueing hints.

    node_name: the node that an error is about, to see whether it still exists.
    """

    message: str
    rejected: bool
    diagnosis: Diagnosis | None = None
    node_name: str = ""

    @classmethod
    def of_fit_error(cls, fit_error: FitError) -> Failure:
        return cls(str(fit_error), True, fit_error.diagnosis)

    @classmethod
    def of_status(cls, pod: corev1.Pod, status: Status, node_name: str) -> Failure:
        """Of Reserve, Permit and the wait in it. A refusal reads as if the chosen node had been the only one."""
        if not status.rejected:
            return cls.of_binding(status, node_name)
        diagnosis = Diagnosis(NodeToStatus({node_name: status}, unresolvable()))
        diagnosis.add_plugin_status(status)
        return cls.of_fit_error(FitError(pod, 1, diagnosis))

    @classmethod
    def of_binding(cls, status: Status, node_name: str) -> Failure:
        """From PreBind on: no plugin counts as having refused the pod, it is tried again after its back-off."""
        return cls(status.message, status.rejected, node_name="" if status.rejected else node_name)

    @property
    def reason(self) -> str:
        return UNSCHEDULABLE if self.rejected else SCHEDULER_ERROR

    def noted(self, entry: QueuedPod) -> QueuedPod:
        """The entry with the plugins that refused it; an error forgets those that did before."""
        if self.diagnosis is None:
            return entry.rejected_by(())
        return entry.rejected_by(self.diagnosis.unschedulable_plugins, self.diagnosis.pending_plugins)


class FailureHandler:
    """Stateless but for what it is given. Called in scheduling cycles, and in binding cycles on their threads."""

    def __init__(
        self, api: API, cache: Cache, queue: PriorityQueue, pods: Lister[corev1.Pod], events: EventRecorder
    ) -> None:
        self._api = api
        self._cache = cache
        self._queue = queue
        self._pods = pods
        self._events = events

    def handle(self, entry: QueuedPod, failure: Failure, nominating: PostFilterResult | None, started: float) -> None:
        """nominating None leaves the nomination. started: of the attempt, by time.perf_counter()."""
        result = "unschedulable" if failure.rejected else "error"
        profile = entry.pod.spec.scheduler_name
        metrics.schedule_attempts.labels(result, profile).inc()
        metrics.scheduling_attempt_duration.labels(result, profile).observe(time.perf_counter() - started)
        if failure.node_name:
            self._forget_lost_node(failure.node_name)
        pod = self._requeue(entry, failure)
        if pod is None:
            return
        self._queue.nominator.add(pod, nominating)
        self._events.event(pod_reference(pod), "Warning", "FailedScheduling", "Scheduling", cut(failure.message))
        self._update_pod(pod, failure, nominating)

    def _requeue(self, entry: QueuedPod, failure: Failure) -> corev1.Pod | None:
        """The lister's copy goes back; a pod that is gone or bound does not. None for one that was made anew meanwhile."""
        seen = self._pods.get(entry.pod.key)
        if seen is not None and seen.uid != entry.uid:
            log.info("pod was recreated while its failure was handled pod=%s", seen.key)
            self._queue.done(entry.uid)
            return None
        if seen is None:
            log.info("pod is not in the informer's cache, not requeued pod=%s", entry.pod.key)
            self._queue.done(entry.uid)
            return entry.pod
        if seen.node_name:
            # An extender may have bound it although its call ended in an error.
            log.info("pod has been assigned to node, not requeued pod=%s node=%s", seen.key, seen.node_name)
            self._queue.done(entry.uid)
            return entry.pod
        try:
            self._queue.add_unschedulable_if_not_present(failure.noted(entry.with_pod(seen)))
        except QueueError as error:
            log.error("pod not requeued pod=%s error=%s", seen.key, error)
        return seen

    def _forget_lost_node(self, node_name: str) -> None:
        """An error about a node that the API server does not have: the cache must not offer it again. Go until 1.2x."""
        try:
            self._api.get(NODES, node_name)
        except NotFoundError:
            node = corev1.Node(metadata=ObjectMeta(name=node_name))
            try:
                self._cache.remove_node(node)
            except CacheError as error:
                log.debug("node not in cache node=%s error=%s", node_name, error)
        except ApiError as error:
            log.debug("node not read node=%s error=%s", node_name, error)

    def _update_pod(self, pod: corev1.Pod, failure: Failure, nominating: PostFilterResult | None) -> None:
        condition = corev1.PodCondition(
            type="PodScheduled",
            status="False",
            reason=failure.reason,
            message=failure.message,
            observed_generation=pod.metadata.generation,
        )
        update_pod(self._api, pod, condition, nominating)


def update_pod(
    api: API, pod: corev1.Pod, condition: corev1.PodCondition | None, nominating: PostFilterResult | None
) -> None:
    """Patches what differs. A patch that fails is logged: nothing depends on it. Go: updatePod."""
    node_name: str | None = None
    if nominating is not None and nominating.mode is NominatingMode.OVERRIDE:
        node_name = nominating.nominated_node_name
    if node_name == pod.status.nominated_node_name:
        node_name = None
    if condition is not None and _has(pod, condition):
        condition = None
    if condition is None and node_name is None:
        return
    try:
        patch_pod_status(api, pod, condition=condition, nominated_node_name=node_name)
    except ApiError as error:
        log.log(logging.INFO if isinstance(error, NotFoundError) else logging.ERROR, _NOT_UPDATED, pod.key, error)


_NOT_UPDATED = "pod status not updated pod=%s error=%s"


def _has(pod: corev1.Pod, condition: corev1.PodCondition) -> bool:
    wanted = (condition.type, condition.status, condition.reason, condition.message)
    return any((known.type, known.status, known.reason, known.message) == wanted for known in pod.status.conditions)
