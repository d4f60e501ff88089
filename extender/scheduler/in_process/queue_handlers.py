"""What the watch says, brought to the in-process scheduler's cache and queue: every kind of object that a hint waits for.

The queue hears of a change after the cache and the observing plugins did, so that whoever it wakes sees it. Behind a
kube-scheduler there is no queue of ours: event_handlers.
kube-scheduler: pkg/scheduler/eventhandlers.go (addAllEventHandlers)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from extender import metrics
from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client import interface as kinds
from extender.client.informer import InformerFactory
from extender.client.interface import ResourceType
from extender.crash import every
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.interface import ClusterEvent
from extender.framework.runtime.framework import Framework
from extender.scheduler.event_handlers import Observer, forget_deleted, kept, on_its_node, on_node

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
    volumes_changed: Callable[[], None] | None = None,
) -> None:
    """Before the informers start. profiles: by scheduler name. wanted: resource -> the actions that hints wait for.

    What plugins only look up (services, budgets, ...) wakes nobody and is not handled here.
    """
    target = _Target(cache, queue, profiles, wanted, observers, volumes_changed)
    informers.informer(kinds.PODS).add_handler(PodHandlers(target))
    informers.informer(kinds.NODES).add_handler(NodeHandlers(target))
    for name, kind in WATCHED.items():
        actions = wanted.get(name, 0) | wanted.get(events.WILDCARD, 0)
        if actions or (observers if kind is kinds.POD_GROUPS else volumes_changed is not None):
            informer = informers.informer(kind, optional=kind is kinds.POD_GROUPS)
            informer.add_handler(ObjectHandlers(target, name, actions))


@dataclass(frozen=True, slots=True)
class _Target:
    cache: Cache
    queue: PriorityQueue
    profiles: Mapping[str, Framework]
    wanted: Mapping[str, int]
    observers: Sequence[Observer]
    volumes_changed: Callable[[], None] | None

    def wants(self, event: ClusterEvent) -> bool:
        return bool((self.wanted.get(event.resource, 0) | self.wanted.get(events.WILDCARD, 0)) & event.action)

    def move(
        self,
        event: ClusterEvent,
        old: object,
        new: object,
        pre_check: Callable[[corev1.Pod], bool] | None = None,
    ) -> None:
        with _handling(event.label):
            self.queue.move_all_to_active_or_backoff_queue(event, old, new, pre_check)


def _told(tell: Callable[[Any, Any], None], old: Any, new: Any) -> None:
    if old is not None and new is not None and old.metadata.uid != new.metadata.uid:  # made again between two looks
        tell(old, None)
        old = None
    tell(old, new)


@contextmanager
def _handling(label: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        metrics.event_handling_duration.labels(label).observe(time.perf_counter() - started)


class PodHandlers:
    """Assigned pods to the cache and, as events, to the queue; the others, if they are ours, into the queue."""

    def __init__(self, target: _Target) -> None:
        self._to = target

    def on_add(self, pod: corev1.Pod) -> None:
        if pod.node_name:
            on_its_node(self._to.cache, pod)
            every(partial(self._tell, None, pod), partial(self._to.move, events.ASSIGNED_POD_ADD, None, pod))
            return
        self._tell(None, pod)
        if self._ours(pod) and not self._to.cache.is_assumed_pod(pod):
            self._to.queue.update(None, pod)  # one that is there already, or in flight, is so no second time
            if self._to.wants(
                events.UNSCHEDULED_POD_ADD
            ):  # siblings of a gang; kube-scheduler: with its gang scheduling
                self._to.move(events.UNSCHEDULED_POD_ADD, None, pod)

    def on_update(self, old: corev1.Pod, new: corev1.Pod) -> None:
        if old.uid != new.uid:  # deleted and made again between two looks
            self.on_delete(old)
            self.on_add(new)
        elif old.node_name:
            on_its_node(self._to.cache, new, known=True)
            self._tell(old, new)
            for event in events.pod_scheduling_properties_change(old, new):
                self._to.move(event, old, new)
        elif new.node_name:
            if self._ours(old):
                self._to.queue.delete(old)
            on_its_node(self._to.cache, new)
            every(partial(self._tell, old, new), partial(self._to.move, events.ASSIGNED_POD_ADD, None, new))
        else:
            self._tell(old, new)
            if self._ours(old):
                self._update_waiting(old, new)

    def on_delete(self, pod: corev1.Pod) -> None:
        if self._ours(pod) and not pod.node_name:
            self._to.queue.delete(pod)
        was_on_node = on_node(self._to.cache, pod)
        forget = partial(forget_deleted, self._to.cache, pod, self._tell_gone, self._reject_waiting_pod)
        every(forget, partial(self._wake_after, pod, was_on_node))

    def _wake_after(self, pod: corev1.Pod, was_on_node: corev1.Pod | None) -> None:
        if was_on_node is not None:
            self._to.move(events.ASSIGNED_POD_DELETE, was_on_node, None)
        elif not self._ours(pod):
            return
        elif pod.status.nominated_node_name:
            self._nomination_goes(pod)
        elif self._to.wants(events.UNSCHEDULED_POD_DELETE):
            self._to.move(events.UNSCHEDULED_POD_DELETE, pod, None)

    def _ours(self, pod: corev1.Pod) -> bool:
        """Go: responsibleForPod."""
        return pod.spec.scheduler_name in self._to.profiles

    def _update_waiting(self, old: corev1.Pod, new: corev1.Pod) -> None:
        """Go: updatePodInSchedulingQueue."""
        version = new.metadata.resource_version
        if version and version == old.metadata.resource_version:
            return  # a resync: the pod might be tried twice
        if self._to.cache.skip_pod_update(new):
            return
        if self._to.cache.is_assumed_pod(new):
            if new.deleting and not old.deleting:
                self._assumed_pod_goes(new)
            return
        with _handling(events.UNSCHEDULED_POD_UPDATE.label):
            self._to.queue.update(old, new)
        nominated = old.status.nominated_node_name
        if nominated and nominated != new.status.nominated_node_name:
            self._nomination_goes(old)

    def _nomination_goes(self, pod: corev1.Pod) -> None:
        """To pods of equal or lower priority it counted as if it had been on its node."""
        self._to.move(events.ASSIGNED_POD_DELETE, pod, None, lambda other: other.priority <= pod.priority)

    def _assumed_pod_goes(self, pod: corev1.Pod) -> None:
        """Its room comes free now: a wait in Permit ends at once, a binding that is under way fails by itself."""
        assumed = self._to.cache.get_pod(pod)
        if assumed is None:
            return
        if not self._reject_waiting_pod(pod):
            kept(self._to.cache.forget_pod, assumed)
        self._to.move(events.ASSIGNED_POD_DELETE, assumed, None)

    def _tell_gone(self, pod: corev1.Pod) -> None:
        self._tell(pod, None)

    def _reject_waiting_pod(self, pod: corev1.Pod) -> bool:
        return self._ours(pod) and self._to.profiles[pod.spec.scheduler_name].reject_waiting_pod(pod.uid)

    def _tell(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        every(*(partial(observer.on_pod, old, new) for observer in self._to.observers))


class NodeHandlers:
    def __init__(self, target: _Target) -> None:
        self._to = target

    def on_add(self, node: corev1.Node) -> None:
        self._to.cache.add_node(node)
        self._tell(None, node)
        self._to.move(events.NODE_ADD, None, node)

    def on_update(self, old: corev1.Node, new: corev1.Node) -> None:
        self._to.cache.update_node(old, new)
        self._tell(old, new)
        for event in events.node_scheduling_properties_change(old, new):
            self._to.move(event, old, new)

    def on_delete(self, node: corev1.Node) -> None:
        """Unlike kube-scheduler, the cache hears of it first: whoever is woken must not choose the node again."""
        kept(self._to.cache.remove_node, node)
        self._tell(node, None)
        self._to.move(events.NODE_DELETE, node, None)

    def _tell(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        for observer in self._to.observers:
            _told(observer.on_node, old, new)


class ObjectHandlers:
    """Of any other kind: the informer's store is all the plugins read, the queue is told what it wants to hear."""

    def __init__(self, target: _Target, resource: str, actions: int) -> None:
        self._to = target
        self._actions = actions
        self._add = ClusterEvent(resource, ActionType.ADD, f"{resource}Add")
        self._update = ClusterEvent(resource, ActionType.UPDATE, f"{resource}Update")
        self._delete = ClusterEvent(resource, ActionType.DELETE, f"{resource}Delete")

    def on_add(self, obj: Any) -> None:
        self._happened(self._add, None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._happened(self._update, old, new)

    def on_delete(self, obj: Any) -> None:
        self._happened(self._delete, obj, None)

    def _happened(self, event: ClusterEvent, old: Any, new: Any) -> None:
        if event.resource == events.POD_GROUP:
            for observer in self._to.observers:
                _told(observer.on_pod_group, old, new)
        elif self._to.volumes_changed is not None:
            self._to.volumes_changed()
        if event.action & self._actions:
            self._to.move(event, old, new)
