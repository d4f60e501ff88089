"""What a change in the cluster means, for both schedulers: for the cache, nominations, pods that wait in Permit and plugins.

They hear of it in this order, and last the queue, where there is one: a pod that the in-process scheduler's queue wakes
(in_process/queue_handlers.py) sees the change. Behind a kube-scheduler the queue is kube-scheduler's own.
Each informer calls from its own thread, one event at a time. An event may come twice (client/deliveries.py).
kube-scheduler: pkg/scheduler/eventhandlers.go
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from extender.api import corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.backend.cache.cache import Cache, CacheError
from extender.backend.queue.nominator import Nominator
from extender.crash import every, tell_every

log = logging.getLogger(__name__)

Listener = Callable[[Any, Any], object]
"""Called with an object as it was and as it is: None for one that was not, or is no more, there. Both have one UID."""


class Observer(Protocol):
    """A plugin that keeps state of its own: a Listener for each kind."""

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None: ...

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> None: ...

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None: ...


class ObjectHandlers:
    """The listeners in their order: each hears of a change though another raises. Then the event comes again."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def on_add(self, obj: Any) -> None:
        self.tell(None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        if old.metadata.uid == new.metadata.uid:
            self.tell(old, new)
        else:  # deleted and made again between two looks
            every(partial(self.tell, old, None), partial(self.tell, None, new))

    def on_delete(self, obj: Any) -> None:
        self.tell(obj, None)

    def tell(self, old: Any, new: Any) -> None:
        tell_every(self._listeners, old, new)


class NodeHandlers(ObjectHandlers):
    """Unlike kube-scheduler's, the cache hears of a deletion first: a pod that is woken by it must not choose the node again."""

    def __init__(self, cache: Cache, *listeners: Listener) -> None:
        super().__init__(*listeners)
        self._cache = cache

    def on_add(self, node: corev1.Node) -> None:
        self._cache.add_node(node)
        super().on_add(node)

    def on_update(self, old: corev1.Node, new: corev1.Node) -> None:
        self._cache.update_node(old, new)
        super().on_update(old, new)

    def on_delete(self, node: corev1.Node) -> None:
        _ignoring_missing_edge(self._cache.remove_node, node)
        super().on_delete(node)


class PodHandlers:
    """A pod with a node counts in the cache; one without may be nominated, or assumed by a binding cycle."""

    def __init__(
        self,
        cache: Cache,
        nominator: Nominator | None,
        observers: Sequence[Observer],
        reject_waiting_pod: Callable[[corev1.Pod], bool],
        queue: Listener | None = None,
    ) -> None:
        """nominator: None where the queue keeps the nominations of its pods. reject_waiting_pod: ends a wait in Permit; returns
        whether there was one.

        queue: hears of each event once, after all others; of an assumed pod only that it goes, and then with its node.
        """
        self._cache = cache
        self._nominator = nominator
        self._plugins = ObjectHandlers(*(observer.on_pod for observer in observers))
        self._reject_waiting_pod = reject_waiting_pod
        own = [] if queue is None else [queue]
        self._queue = ObjectHandlers(*own)
        self._all = ObjectHandlers(*(observer.on_pod for observer in observers), *own)

    def on_add(self, pod: corev1.Pod) -> None:
        self._changed(None, pod)

    def on_update(self, old: corev1.Pod, new: corev1.Pod) -> None:
        """A pod that was deleted and made again between two looks is another one. So is one that has its node no more, which only a
        restored etcd shows. Go: FilteringResourceEventHandler.OnUpdate, an object that its filter takes no more is deleted
        """
        if old.uid != new.uid or (old.node_name and not new.node_name):
            self.on_delete(old)
            self.on_add(new)
        else:
            self._changed(old, new)

    def on_delete(self, pod: corev1.Pod) -> None:
        """Whatever the cache has of a deleted pod goes, on whatever node.

        The event's pod may be stale: after a relist it is the last that the watch has shown, and it may have been bound since.
        Go: deletePod (DeletedFinalStateUnknown: the state may be stale, and is cleaned up anyway)
        """
        if self._nominator is not None:
            self._nominator.delete_nominated_pod_if_exists(pod)
        assumed = self._assumed(pod)
        placed = pod if pod.node_name else self._cache.get_pod(pod)
        if placed is not None and assumed is None:
            _ignoring_missing_edge(self._cache.remove_pod, placed)
        every(
            partial(self._plugins.tell, pod if placed is None or assumed is not None else placed, None),
            partial(self._end_binding_cycle, pod, assumed),
            partial(self._queue.tell, pod if placed is None else placed, None),
        )

    def _changed(self, old: corev1.Pod | None, new: corev1.Pod) -> None:
        """old: None for a pod that was not known, or that is told of once more."""
        if new.node_name:
            _ensure_cached(self._cache, new, known=old is not None and bool(old.node_name))
        assumed = None if new.node_name else self._assumed(new)
        if assumed is not None:
            self._assumed_changed(old, new, assumed)
            return
        self._nominate(old, new)
        self._all.tell(old, new)

    def _assumed_changed(self, old: corev1.Pod | None, new: corev1.Pod, assumed: corev1.Pod) -> None:
        """Its room and its nomination are the binding cycle's matter, until the pod is to go. Go: updatePodInSchedulingQueue"""
        ends = new.deleting and not (old is not None and old.deleting)
        steps = (
            partial(self._end_binding_cycle, new, assumed),
            partial(self._queue.tell, assumed, None),
        )
        every(partial(self._plugins.tell, old, new), *(steps if ends else ()))

    def _end_binding_cycle(self, pod: corev1.Pod, assumed: corev1.Pod | None) -> None:
        """A wait in Permit ends, and the cycle forgets its pod. A binding that is under way fails by itself, the API server binds
        no pod that is being deleted: its room is free at once. Go: handleAssumedPodDeletion
        """
        if not self._reject_waiting_pod(pod) and assumed is not None:
            _ignoring_missing_edge(self._cache.forget_pod, assumed)
            self._plugins.tell(assumed, None)

    def _assumed(self, pod: corev1.Pod) -> corev1.Pod | None:
        """With the node that it is assumed on."""
        return self._cache.get_pod(pod) if self._cache.is_assumed_pod(pod) else None

    def _nominate(self, old: corev1.Pod | None, new: corev1.Pod) -> None:
        if self._nominator is None:
            return
        if new.node_name:
            if old is None or not old.node_name:
                self._nominator.delete_nominated_pod_if_exists(new)
        elif old is not None:
            self._nominator.update_nominated_pod(old, new)
        else:  # a pod that is told of anew, after a fault, may be nominated no more
            self._nominator.add(new)


def _ensure_cached(cache: Cache, pod: corev1.Pod, *, known: bool) -> None:
    """The cache has the assigned pod as it is now, whatever it had of it: an event may come twice, or for one that was lost.

    known: whether the cache is to have it already, by the watch's word.
    """
    steps = (partial(cache.update_pod, pod), cache.add_pod)
    first, second = steps if known else reversed(steps)
    try:
        first(pod)
    except CacheError as error:
        log.warning("cache event out of order error=%s", error)
        _ignoring_missing_edge(second, pod)


def _ignoring_missing_edge(change: Callable[..., None], *objects: object) -> None:
    """An edge that the cache's state machine does not have is logged: what was to be so is so already."""
    try:
        change(*objects)
    except CacheError as error:
        log.warning("cache event out of order error=%s", error)
