"""What the watch says, brought to the cache and the queue of the in-process scheduler.

kube-scheduler: pkg/scheduler/eventhandlers.go
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from extender.api import corev1
from extender.backend.cache.cache import Cache
from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.framework import events


class PodHandlers:
    """Assigned pods to the cache and, as events, to the queue; the others, if they are ours, into the queue."""

    def __init__(self, cache: Cache, queue: PriorityQueue, ours: Collection[str]) -> None:
        """ours: scheduler names."""
        self._cache = cache
        self._queue = queue
        self._ours = ours

    def on_add(self, pod: corev1.Pod) -> None:
        if pod.node_name:
            self._cache.add_pod(pod)
            self._queue.assigned_pod_added(pod)
        elif pod.spec.scheduler_name in self._ours:
            self._queue.add(pod)

    def on_update(self, old: corev1.Pod, new: corev1.Pod) -> None:
        if old.uid != new.uid:
            self.on_delete(old)
            self.on_add(new)
        elif old.node_name:
            self._cache.update_pod(old, new)
            self._queue.assigned_pod_updated(old, new)
        elif new.node_name:
            self._cache.add_pod(new)
            self._queue.assigned_pod_added(new)
            self._queue.delete(old)
        elif new.spec.scheduler_name in self._ours and not self._cache.is_assumed_pod(new):
            self._queue.update(old, new)

    def on_delete(self, pod: corev1.Pod) -> None:
        if pod.node_name:
            self._cache.remove_pod(pod)
            self._queue.move_all_to_active_or_backoff_queue(events.ASSIGNED_POD_DELETE, pod, None)
        else:
            self._queue.delete(pod)


class NodeHandlers:
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
        self._queue.move_all_to_active_or_backoff_queue(events.NODE_DELETE, node, None)
        self._cache.remove_node(node)


class Told:
    """An informer's handler that tells a plugin: (old, new), None for what is not there."""

    def __init__(self, tell: Callable[[Any, Any], None]) -> None:
        self._tell = tell

    def on_add(self, obj: Any) -> None:
        self._tell(None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        if old.metadata.uid != new.metadata.uid:  # deleted and made again between two looks
            self._tell(old, None)
            old = None
        self._tell(old, new)

    def on_delete(self, obj: Any) -> None:
        self._tell(obj, None)
