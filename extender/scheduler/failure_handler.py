"""What becomes of a pod that was not placed: back into the queue, an event, a condition, a nomination.

kube-scheduler: pkg/scheduler/schedule_one.go (handleSchedulingFailure)
"""

from __future__ import annotations

import logging
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
from extender.framework.diagnosis import FitError
from extender.framework.interface import NominatingMode, PostFilterResult
from extender.framework.listers import Lister
from extender.framework.status import Status

log = logging.getLogger(__name__)

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why: a verdict (rejected) or an error, in words; the FitError where there is one. node_name: the node that an
    error is about, to see whether it still exists."""

    message: str
    rejected: bool
    fit_error: FitError | None = None
    node_name: str = ""

    @classmethod
    def of_status(cls, status: Status, node_name: str = "") -> Failure:
        return cls(status.message, status.rejected, node_name=node_name)

    @property
    def reason(self) -> str:
        return UNSCHEDULABLE if self.rejected else SCHEDULER_ERROR


class FailureHandler:
    """Stateless but for what it is given."""

    def __init__(
        self, api: API, cache: Cache, queue: PriorityQueue, pods: Lister[corev1.Pod], events: EventRecorder
    ) -> None:
        self._api = api
        self._cache = cache
        self._queue = queue
        self._pods = pods
        self._events = events

    def handle(
        self, entry: QueuedPod, failure: Failure, plugins: frozenset[str], nominating: PostFilterResult | None
    ) -> None:
        """plugins: who refused, for the queueing hints; none for an error. nominating None leaves the nomination."""
        result = "unschedulable" if failure.rejected else "error"
        metrics.schedule_attempts.labels(result, entry.pod.spec.scheduler_name).inc()
        if failure.node_name:
            self._forget_lost_node(failure.node_name)
        pod = self._requeue(entry, failure, plugins)
        if pod is None:
            return
        if nominating is not None:
            self._queue.nominator.add(pod, nominating)
        self._events.event(pod_reference(pod), "Warning", "FailedScheduling", "Scheduling", cut(failure.message))
        self._update_pod(pod, failure, nominating)

    def _requeue(self, entry: QueuedPod, failure: Failure, plugins: frozenset[str]) -> corev1.Pod | None:
        """The lister's copy goes back; a pod that is gone, bound or made anew does not."""
        seen = self._pods.get(entry.pod.key)
        if seen is None or seen.uid != entry.uid:
            self._queue.done(entry.uid)
            return None
        if seen.node_name:
            log.info("pod has been assigned to node, not requeued pod=%s node=%s", seen.key, seen.node_name)
            self._queue.done(entry.uid)
            return None
        refused_by = plugins if failure.rejected else frozenset()
        try:
            self._queue.add_unschedulable_if_not_present(entry.with_pod(seen).rejected_by(refused_by))
        except QueueError as error:
            log.error("pod not requeued pod=%s error=%s", seen.key, error)
        return seen

    def _forget_lost_node(self, node_name: str) -> None:
        """An error about a node that the API server does not have: the cache must not offer it again."""
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
            type="PodScheduled", status="False", reason=failure.reason, message=failure.message
        )
        node_name: str | None = None
        if nominating is not None and nominating.mode is NominatingMode.OVERRIDE:
            node_name = nominating.nominated_node_name
        same = any(
            (known.type, known.status, known.reason, known.message)
            == (condition.type, condition.status, condition.reason, condition.message)
            for known in pod.status.conditions
        )
        if same and (node_name is None or node_name == pod.status.nominated_node_name):
            return
        try:
            patch_pod_status(self._api, pod, condition=None if same else condition, nominated_node_name=node_name)
        except ApiError as error:
            log.error("pod status not updated pod=%s error=%s", pod.key, error)
