"""What a change in the cluster means for the in-process scheduler's queue: every kind of object that a hint waits for.

The queue is the last listener of event_handlers.py, where the rules for the cache, the waiting pods and the plugins are.
kube-scheduler: pkg/scheduler/eventhandlers.go (addAllEventHandlers)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from extender import metrics
from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client import interface as kinds
from extender.client.informer import InformerFactory
from extender.client.interface import ResourceType
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.interface import ClusterEvent
from extender.framework.runtime.framework import Framework
from extender.scheduler.event_handlers import Listener, NodeHandlers, ObjectHandlers, Observer, PodHandlers
from extender.scheduler.volume_handlers import VolumesChanged, any_volume

WATCHED: Mapping[str, ResourceType[Any]] = {
    events.PERSISTENT_VOLUME: kinds.PERSISTENT_VOLUMES,
    events.PERSISTENT_VOLUME_CLAIM: kinds.PERSISTENT_VOLUME_CLAIMS,
    events.STORAGE_CLASS: kinds.STORAGE_CLASSES,
    events.CSI_NODE: kinds.CSI_NODES,
    events.CSI_DRIVER: kinds.CSI_DRIVERS,
    events.CSI_STORAGE_CAPACITY: kinds.CSI_STORAGE_CAPACITIES,
    events.VOLUME_ATTACHMENT: kinds.VOLUME_ATTACHMENTS,
    events.POD_GROUP: kinds.POD_GROUPS,
}
"""Besides pods and nodes. What is registered and not here (ResourceClaims) is not modelled."""


def watch_all(
    informers: InformerFactory,
    queue: PriorityQueue,
    cache: Cache,
    profiles: Mapping[str, Framework],
    wanted: Mapping[str, int],
    observers: Sequence[Observer] = (),
    volumes_changed: VolumesChanged | None = None,
) -> None:
    """Before the informers start. profiles: by scheduler name. wanted: resource -> the actions that hints wait for.

    What plugins only look up (services, budgets, ...) wakes no pod and is not handled here.
    """
    to_queue = QueueListener(queue, profiles, wanted)

    def reject_waiting_pod(pod: corev1.Pod) -> bool:
        framework = profiles.get(pod.spec.scheduler_name)
        return framework is not None and framework.reject_waiting_pod(pod.uid)

    pods = PodHandlers(cache, None, observers, reject_waiting_pod, to_queue.on_pod)
    nodes = NodeHandlers(cache, *(observer.on_node for observer in observers), to_queue.on_node)
    informers.informer(kinds.PODS).add_handler(pods)
    informers.informer(kinds.NODES).add_handler(nodes)
    for name, kind in WATCHED.items():
        listeners: list[Listener] = []
        if kind is kinds.POD_GROUPS:
            listeners += [observer.on_pod_group for observer in observers]
        elif volumes_changed is not None:
            listeners.append(any_volume(volumes_changed))
        if to_queue.wanted(name):
            listeners.append(to_queue.listener(name))
        if listeners:
            informers.informer(kind, optional=kind is kinds.POD_GROUPS).add_handler(ObjectHandlers(*listeners))


@contextmanager
def _handling(label: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        metrics.event_handling_duration.labels(label).observe(time.perf_counter() - started)


class QueueListener:
    """Pods without a node that name a profile of ours wait in the queue; any change is an event to those that wait there."""

    def __init__(self, queue: PriorityQueue, profiles: Mapping[str, Framework], wanted: Mapping[str, int]) -> None:
        self._queue = queue
        self._profiles = profiles
        self._wanted = wanted

    def wanted(self, resource: str) -> int:
        """The actions on it that hints wait for, as bits."""
        return self._wanted.get(resource, 0) | self._wanted.get(events.WILDCARD, 0)

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Of an assumed pod only that it goes, with the node that it was assumed on (PodHandlers)."""
        if new is None:
            if old is not None:
                self._pod_gone(old)
        elif new.node_name:
            self._pod_on_node(old, new)
        elif not self._ours(new):
            return
        elif old is None:
            self._pod_waits(new)
        else:
            self._update_waiting(old, new)

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        if old is None:
            self._move(events.NODE_ADD, None, new)
        elif new is None:
            self._move(events.NODE_DELETE, old, None)
        else:
            for event in events.node_scheduling_properties_change(old, new):
                self._move(event, old, new)

    def listener(self, resource: str) -> Listener:
        """Of any other kind: the queue is told what the hints wait for."""
        added = ClusterEvent(resource, ActionType.ADD, f"{resource}Add")
        updated = ClusterEvent(resource, ActionType.UPDATE, f"{resource}Update")
        deleted = ClusterEvent(resource, ActionType.DELETE, f"{resource}Delete")

        def happened(old: object, new: object) -> None:
            event = added if old is None else deleted if new is None else updated
            if self._waits_for(event):
                self._move(event, old, new)

        return happened

    def _pod_waits(self, pod: corev1.Pod) -> None:
        self._queue.update(None, pod)  # one that is there already, or in flight, is so no second time
        if self._waits_for(events.UNSCHEDULED_POD_ADD):  # siblings of a gang; kube-scheduler: with its gang scheduling
            self._move(events.UNSCHEDULED_POD_ADD, None, pod)

    def _pod_on_node(self, old: corev1.Pod | None, new: corev1.Pod) -> None:
        if old is not None and old.node_name:
            for event in events.pod_scheduling_properties_change(old, new):
                self._move(event, old, new)
            return
        if old is not None and self._ours(old):
            self._queue.delete(old)
        self._move(events.ASSIGNED_POD_ADD, None, new)

    def _update_waiting(self, old: corev1.Pod, new: corev1.Pod) -> None:
        """Go: updatePodInSchedulingQueue."""
        version = new.metadata.resource_version
        if version and version == old.metadata.resource_version:
            return  # a resync: the pod might be tried twice
        with _handling(events.UNSCHEDULED_POD_UPDATE.label):
            self._queue.update(old, new)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._nomination_goes(old)

    def _pod_gone(self, pod: corev1.Pod) -> None:
        """Its room on its node comes free, or that on the node it was nominated to."""
        ours = self._ours(pod)
        if ours:
            self._queue.delete(pod)
        if pod.node_name:
            self._move(events.ASSIGNED_POD_DELETE, pod, None)
        elif not ours:
            return
        elif pod.status.nominated_node_name:
            self._nomination_goes(pod)
        elif self._waits_for(events.UNSCHEDULED_POD_DELETE):
            self._move(events.UNSCHEDULED_POD_DELETE, pod, None)

    def _nomination_goes(self, pod: corev1.Pod) -> None:
        """To pods of equal or lower priority it counted as if it had been on its node."""
        self._move(events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= pod.priority)

    def _ours(self, pod: corev1.Pod) -> bool:
        """Go: responsibleForPod."""
        return pod.spec.scheduler_name in self._profiles

    def _waits_for(self, event: ClusterEvent) -> bool:
        return bool(self.wanted(event.resource) & event.action)

    def _move(
        self,
        event: ClusterEvent,
        old: object,
        new: object,
        pre_check: Callable[[corev1.Pod], bool] | None = None,
    ) -> None:
        with _handling(event.label):
            self._queue.move_all_to_active_or_backoff_queue(event, old, new, pre_check)
