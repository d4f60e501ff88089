"""Pods that have no node yet, and which of them is scheduled next: kube-scheduler's PriorityQueue.

Event handlers add, update, delete and move; scheduleOne pops, and hands back what could not be placed.
kube-scheduler: pkg/scheduler/backend/queue/scheduling_queue.go

          add             pop                    bound, or gone: done
    ---> activeQ --------------> in flight ------------------------->
           ^  ^                      | refused or failed: the events since its pop are replayed
           |  |  back-off over       v
           |  +------------ backoffQ (refused), errorBackoffQ (failed)
           |                         ^ an event that can help, back-off not over
           +------------- unschedulablePods (refused, or gated by PreEnqueue)
        an event that can help, back-off over
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from extender.api import corev1
from extender.backend.queue.backoff import Backoff
from extender.backend.queue.gates import Gates
from extender.backend.queue.in_flight_events import HappenedEvent
from extender.backend.queue.nominator import Nominator, PodRef
from extender.backend.queue.pod_heap import Less
from extender.backend.queue.queued_pod import QueuedPod
from extender.backend.queue.queueing_hints import QueueingHints
from extender.backend.queue.sub_queues import PendingPods, Place, QueueError, SubQueues
from extender.backend.queue.unschedulable_pods import DEFAULT_MAX_IN_UNSCHEDULABLE_PODS
from extender.framework import events
from extender.framework.handle import Clock
from extender.framework.interface import ClusterEvent, PreEnqueuePlugin
from extender.framework.pod_info import PodInfo

__all__ = ["PendingPods", "Place", "PriorityQueue", "QueueError"]

PreCheck = Callable[[corev1.Pod], bool]

MIN_WAIT = 0.001  # a wait that is over by rounding alone would spin


class PriorityQueue:
    """Thread-safe. `_changed` guards the sub-queues; under it, as in kube-scheduler, PreEnqueue plugins, hints and
    the nominator are called, which are quick, do no I/O and do not call back. Lock order: queue, nominator, informer's store.
    """

    def __init__(
        self,
        less: Less,
        *,
        nominator: Nominator | None = None,
        pre_enqueue: Mapping[str, Sequence[PreEnqueuePlugin]] | None = None,
        hints: QueueingHints | None = None,
        backoff: Backoff | None = None,
        max_in_unschedulable: float = DEFAULT_MAX_IN_UNSCHEDULABLE_PODS,
        pop_from_backoff: bool = True,
        clock: Clock = time.monotonic,
    ) -> None:
        """`pre_enqueue` and `hints` by scheduler name; pop_from_backoff is the gate SchedulerPopFromBackoffQ."""
        self.nominator = Nominator() if nominator is None else nominator
        self.nominator.set_lookup(self._find)
        self._clock = clock
        self._changed = threading.Condition()
        self._queues = SubQueues(
            less,
            Gates(pre_enqueue or {}),
            QueueingHints({}) if hints is None else hints,
            Backoff() if backoff is None else backoff,
            max_in_unschedulable,
            pop_from_backoff,
            clock,
        )
        self._closed = False

    # What happens to pods that wait

    def add(self, pod: corev1.Pod) -> None:
        """A pod without a node was seen for the first time."""
        with self._changed:
            self._add(pod)

    def update(self, old: corev1.Pod | None, new: corev1.Pod) -> None:
        """A waiting pod takes its new object; one that was refused is tried again if the change can help.

        For a pod in flight the change is noted; the failure handler takes the new object from the informer.
        """
        changes = events.pod_scheduling_properties_change(old, new) if old is not None else ()
        happened = [HappenedEvent(event, old, new) for event in changes]
        with self._changed:
            if self._queues.active.in_flight(new.uid):
                for each in happened:
                    self._queues.active.record(each)
                return
            known = self._queues.find(new.key)
            if known is None:
                self._add(new)
                return
            entry, place = known
            fresh = entry.with_pod(new)
            self._queues.replace_waiting(fresh, place)
            self.nominator.update_nominated_pod(old or entry.pod, new)
            if place is Place.UNSCHEDULABLE and self._queues.requeue_updated(fresh, happened):
                self._changed.notify()

    def delete(self, pod: corev1.Pod) -> None:
        """A pod in flight stays so until `done`."""
        with self._changed:
            self.nominator.delete_nominated_pod_if_exists(pod)
            self._queues.remove(pod.key)

    def activate(self, pods: Iterable[corev1.Pod]) -> None:
        """Tries them next, back-off or not; for a pod in flight it counts as an event that can help."""
        with self._changed:
            for pod in pods:
                if self._queues.activate(pod.key):
                    self._changed.notify()
                elif self._queues.active.in_flight(pod.uid):
                    self._queues.active.record(HappenedEvent(events.FORCE_ACTIVATE, None, pod))

    # What happens in the cluster

    def move_all_to_active_or_backoff_queue(
        self, event: ClusterEvent, old: object = None, new: object = None, pre_check: PreCheck | None = None
    ) -> None:
        """Wakes the refused pods for which a hint of a plugin that refused them says so; noted for pods in flight."""
        with self._changed:
            queues = self._queues
            if not queues.of_interest(event):
                return
            waiting = [entry for entry in queues.unschedulable if pre_check is None or pre_check(entry.pod)]
            if queues.move(waiting, HappenedEvent(event, old, new)):
                self._changed.notify()

    def assigned_pod_added(self, pod: corev1.Pod) -> None:
        """kube-scheduler looks at pods with terms that meet this one only; here the hints alone decide."""
        self.move_all_to_active_or_backoff_queue(events.ASSIGNED_POD_ADD, None, pod)

    def assigned_pod_updated(self, old: corev1.Pod, new: corev1.Pod) -> None:
        for event in events.pod_scheduling_properties_change(old, new):
            self.move_all_to_active_or_backoff_queue(event, old, new)

    # One pod's attempt

    def pop(self, timeout: float | None = None) -> QueuedPod | None:
        """Waits for a pod; None when `timeout` has passed or the queue was closed. Does the flushes that are due meanwhile.

        The waiting is in real seconds: on virtual time use `pop_ready` and `next_wakeup`.
        """
        deadline = math.inf if timeout is None else self._clock() + timeout
        with self._changed:
            while not self._closed:
                self._queues.flush()
                entry = self._queues.active.pop()
                if entry is not None:
                    return entry
                now = self._clock()
                if now >= deadline:
                    return None
                wait = min(deadline, self._queues.next_flush(leftovers=True)) - now
                self._changed.wait(None if wait == math.inf else max(wait, MIN_WAIT))
            return None

    def pop_ready(self) -> QueuedPod | None:
        """The next pod if there is one now. It is in flight until `done` or `add_unschedulable_if_not_present`."""
        with self._changed:
            self._queues.flush()
            return self._queues.active.pop()

    def done(self, uid: str) -> None:
        """The attempt can no longer end as a refusal: from WaitOnPermit on, or the pod is gone."""
        with self._changed:
            self._queues.active.done(uid)

    def add_unschedulable_if_not_present(self, entry: QueuedPod) -> Place:
        """Takes a pod back after its attempt, with `rejected_by` filled in. Returns where it waits.

        Raises QueueError if it is in the queue already. In any case it is no longer in flight.
        """
        with self._changed:
            try:
                place = self._queues.take_back(entry)
            finally:
                self._queues.active.done(entry.uid)
            if place is not Place.UNSCHEDULABLE:
                self._changed.notify()
            return place

    # Time

    def flush(self) -> None:
        """Moves pods whose back-off is over, and every 30 s those that have been unschedulable for over five minutes."""
        with self._changed:
            if self._queues.flush():
                self._changed.notify_all()

    def next_wakeup(self, *, leftovers: bool = False) -> float | None:
        """When a pod can be popped, if nothing happens: now, at the end of a back-off, or never (None).

        leftovers: also at the flush of pods that no event has helped.
        """
        with self._changed:
            now = self._clock()
            at = now if self._queues.ready else self._queues.next_flush(leftovers)
            return None if at == math.inf else max(at, now)

    def close(self) -> None:
        """Ends every `pop`."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    # Views

    def get(self, pod: corev1.Pod) -> tuple[QueuedPod, Place] | None:
        """The pod by `namespace/name`, and where it waits."""
        with self._changed:
            return self._queues.find(pod.key)

    def in_flight_pods(self) -> Sequence[QueuedPod]:
        with self._changed:
            return self._queues.active.in_flight_pods()

    def in_flight_events(self) -> Sequence[HappenedEvent]:
        """What is kept for replay."""
        with self._changed:
            return self._queues.active.in_flight_events()

    def waiting(self) -> Sequence[tuple[QueuedPod, Place]]:
        """Every pod that is not in flight, and where it waits."""
        with self._changed:
            return self._queues.waiting()

    def pending_pods(self) -> PendingPods:
        with self._changed:
            return self._queues.pending()

    def _find(self, ref: PodRef) -> corev1.Pod | None:
        with self._changed:
            known = self._queues.find(f"{ref.namespace}/{ref.name}")
        return None if known is None else known[0].pod

    def _add(self, pod: corev1.Pod) -> None:
        """The lock is held."""
        if self._queues.to_active(QueuedPod(PodInfo(pod), self._clock()), events.UNSCHEDULED_POD_ADD.label):
            self.nominator.add(pod)
            self._changed.notify()
