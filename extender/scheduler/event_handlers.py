"""What the watch says, brought to the cache, the nominator, the waiting pods and the plugins, in this order.

Each informer calls from its own thread, one event at a time.
kube-scheduler: pkg/scheduler/eventhandlers.go
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from extender.api import corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.backend.cache.cache import Cache, CacheError
from extender.backend.queue.nominator import Nominator
from extender.crash import every

log = logging.getLogger(__name__)


class Observer(Protocol):
    """A plugin that keeps state of its own: None for an object that was not, or is no more, there."""

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None: ...

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> None: ...

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None: ...


class PodHandlers:
    """Assigned pods go to the cache; the others only to the nominator and the observers."""

    def __init__(
        self,
        cache: Cache,
        nominator: Nominator,
        observers: Sequence[Observer],
        reject_waiting_pod: Callable[[corev1.Pod], bool],
    ) -> None:
        """reject_waiting_pod: ends a wait in Permit; returns whether there was one."""
        self._cache = cache
        self._nominator = nominator
        self._observers = observers
        self._reject_waiting_pod = reject_waiting_pod

    def on_add(self, pod: corev1.Pod) -> None:
        if pod.node_name:
            on_its_node(self._cache, pod)
            self._nominator.delete_nominated_pod_if_exists(pod)
        elif pod.status.nominated_node_name:
            self._nominator.add_nominated_pod(pod, pod.status.nominated_node_name)
        self._tell(None, pod)

    def on_update(self, old: corev1.Pod, new: corev1.Pod) -> None:
        if old.uid != new.uid:  # deleted and made again between two looks
            self.on_delete(old)
            self.on_add(new)
            return
        if new.node_name:
            on_its_node(self._cache, new, known=bool(old.node_name))
            if not old.node_name:
                self._nominator.delete_nominated_pod_if_exists(new)
        else:
            self._nominator.update_nominated_pod(old, new)
        ends = new.deleting and not old.deleting and not new.node_name
        self._tell(old, new, *((partial(self._reject_waiting_pod, new),) if ends else ()))

    def on_delete(self, pod: corev1.Pod) -> None:
        self._nominator.delete_nominated_pod_if_exists(pod)
        forget_deleted(self._cache, pod, lambda gone: self._tell(gone, None), self._reject_waiting_pod)

    def _tell(self, old: corev1.Pod | None, new: corev1.Pod | None, *more: Callable[[], object]) -> None:
        """Each hears of it though another raises; then the event comes again."""
        every(*(partial(observer.on_pod, old, new) for observer in self._observers), *more)


class NodeHandlers:
    def __init__(self, cache: Cache, observers: Sequence[Observer]) -> None:
        self._cache = cache
        self._observers = observers

    def on_add(self, node: corev1.Node) -> None:
        self._cache.add_node(node)
        self._tell(None, node)

    def on_update(self, old: corev1.Node, new: corev1.Node) -> None:
        self._cache.update_node(old, new)
        self._tell(old, new)

    def on_delete(self, node: corev1.Node) -> None:
        kept(self._cache.remove_node, node)
        self._tell(node, None)

    def _tell(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        every(*(partial(observer.on_node, old, new) for observer in self._observers))


class PodGroupHandlers:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def on_add(self, group: PodGroup) -> None:
        self._tell(None, group)

    def on_update(self, old: PodGroup, new: PodGroup) -> None:
        self._tell(old, new)

    def on_delete(self, group: PodGroup) -> None:
        self._tell(group, None)

    def _tell(self, old: PodGroup | None, new: PodGroup | None) -> None:
        every(*(partial(observer.on_pod_group, old, new) for observer in self._observers))


def on_its_node(cache: Cache, pod: corev1.Pod, *, known: bool = False) -> None:
    """The cache has the assigned pod as it is now, whatever it had of it: an event may come twice, or for one that was lost.

    known: whether the cache is to have it already, by the watch's word.
    """
    steps = (partial(cache.update_pod, pod), cache.add_pod)
    first, second = steps if known else reversed(steps)
    try:
        first(pod)
    except CacheError as error:
        log.warning("cache event out of order error=%s", error)
        kept(second, pod)


def forget_deleted(
    cache: Cache,
    pod: corev1.Pod,
    tell: Callable[[corev1.Pod], None],
    reject_waiting_pod: Callable[[corev1.Pod], bool],
) -> None:
    """Whatever the cache has of a deleted pod goes, on whatever node.

    The event's pod may be stale: after a relist it is the last that the watch has shown, and it may have been bound since. One
    that waits in Permit is forgotten by its binding cycle, when that ends. tell: has the plugins hear of the deletion, and
    once more with the pod on its node where its room comes free only after that.
    Go: deletePod and handleAssumedPodDeletion (DeletedFinalStateUnknown: the state may be stale, and is cleaned up anyway)
    """
    known = on_node(cache, pod)
    assumed = cache.is_assumed_pod(pod)
    if known is not None and not assumed:
        kept(cache.remove_pod, known)

    def end_of_its_call() -> None:
        if not reject_waiting_pod(pod) and assumed and known is not None:
            kept(cache.forget_pod, known)
            tell(known)

    every(partial(tell, pod if assumed or known is None else known), end_of_its_call)


def on_node(cache: Cache, pod: corev1.Pod) -> corev1.Pod | None:
    """The pod on its node, by the event's word or the cache's; None if it is on none."""
    return pod if pod.node_name else cache.get_pod(pod)


def kept(change: Callable[..., None], *objects: object) -> None:
    """An edge that the cache's state machine does not have is logged: what was to be so is so already."""
    try:
        change(*objects)
    except CacheError as error:
        log.warning("cache event out of order error=%s", error)
