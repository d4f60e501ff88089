"""Which pods are nominated to which node: room that preemption, or a plan, made for them.

The filters count these pods beside those that run; the failure handler adds, assuming a pod takes it out.
kube-scheduler: pkg/scheduler/backend/queue/nominator.go
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.framework.interface import NominatingMode, PostFilterResult
from extender.framework.listers import Lister


@dataclass(frozen=True, slots=True)
class PodRef:
    """A nominated pod; what it asks for is looked up when it is needed. Go: podRef."""

    name: str
    namespace: str
    uid: str

    def to_pod(self) -> corev1.Pod:
        """Of a pod that the informer no longer has: no priority, no requests."""
        return corev1.Pod(ObjectMeta(name=self.name, namespace=self.namespace, uid=self.uid))


Lookup = Callable[[PodRef], corev1.Pod | None]
"""Finds a nominated pod among those that wait: in the queue, or, behind kube-scheduler, in the informer."""


class Nominator:
    """Implements framework.listers.Nominator. `_lock` guards both maps and is innermost; lookups run outside it.

    pod_lister: the informer's pods; a pod that it does not have, or has with a node, is not nominated.
    lookup: by default the pod lister's answer.
    """

    def __init__(self, pod_lister: Lister[corev1.Pod] | None = None, lookup: Lookup | None = None) -> None:
        self._pod_lister = pod_lister
        self._lookup = lookup if lookup is not None else self._from_lister
        self._lock = threading.Lock()
        self._pods_of: dict[str, list[PodRef]] = {}  # Go: nominatedPods
        self._node_of: dict[str, str] = {}  # Go: nominatedPodToNode

    def set_lookup(self, lookup: Lookup) -> None:
        """The queue that is built around the nominator puts its own in."""
        self._lookup = lookup

    def add(self, pod: corev1.Pod, nominating: PostFilterResult | None = None) -> None:
        """OVERRIDE nominates to the result's node (an empty one too), else status.nominatedNodeName counts, if set.

        Whatever was noted of the pod before is gone in either case. Go: AddNominatedPod.
        """
        with self._lock:
            self._delete(pod.uid)
            self._add(pod, nominating, self._known(pod))

    def update_nominated_pod(self, old: corev1.Pod, new: corev1.Pod) -> None:
        """An update in which neither pod names a node keeps the node in memory: the patch may still be on its way."""
        with self._lock:
            nominating = None
            if not old.status.nominated_node_name and not new.status.nominated_node_name:
                node_name = self._node_of.get(old.uid)
                if node_name is not None:
                    nominating = PostFilterResult(node_name, NominatingMode.OVERRIDE)
            self._delete(old.uid)
            self._add(new, nominating, self._known(new))

    def delete_nominated_pod_if_exists(self, pod: corev1.Pod) -> None:
        with self._lock:
            self._delete(pod.uid)

    def add_nominated_pod(self, pod: corev1.Pod, node_name: str) -> None:
        """With a node: to that node. Without one: where the pod's own status says, if it says anything."""
        override = PostFilterResult(node_name, NominatingMode.OVERRIDE)
        self.add(pod, override if node_name else None)

    def nominated_nodes(self) -> Sequence[str]:
        with self._lock:
            return [name for name in self._pods_of if name]

    def nominated_pods_for_node(self, node_name: str) -> Sequence[corev1.Pod]:
        """In the order in which they were nominated; one that is found nowhere is a bare pod."""
        with self._lock:
            refs = tuple(self._pods_of.get(node_name, ()))
        return [self._lookup(ref) or ref.to_pod() for ref in refs]

    def nominated_pods_but(self, uids: Set[str]) -> Sequence[tuple[str, corev1.Pod]]:
        """Node name and pod, of all but these; one that is found nowhere is a bare pod."""
        with self._lock:
            if self._node_of.keys() <= uids:  # as a rule, and quickly seen
                return ()
            others = {uid: name for uid, name in self._node_of.items() if uid not in uids and name}
            nodes = set(others.values())
            refs = [(name, ref) for name in sorted(nodes) for ref in self._pods_of[name] if ref.uid in others]
        return [(name, self._lookup(ref) or ref.to_pod()) for name, ref in refs]

    def nominated_node(self, uid: str) -> str | None:
        with self._lock:
            return self._node_of.get(uid)

    def nominated_pods(self) -> Mapping[str, Sequence[PodRef]]:
        """Node name -> the pods that are nominated there."""
        with self._lock:
            return {name: tuple(refs) for name, refs in self._pods_of.items()}

    def _known(self, pod: corev1.Pod) -> bool:
        """Whether the informer has the pod and it has no node yet. True where there is no informer. The lock is held: what the
        informer says later takes the nomination out again after it was added."""
        if self._pod_lister is None:
            return True
        seen = self._pod_lister.get(pod.key)
        return seen is not None and not seen.node_name

    def _from_lister(self, ref: PodRef) -> corev1.Pod | None:
        if self._pod_lister is None:
            return None
        pod = self._pod_lister.get(f"{ref.namespace}/{ref.name}")
        return pod if pod is not None and pod.uid == ref.uid else None

    def _add(self, pod: corev1.Pod, nominating: PostFilterResult | None, known: bool) -> None:
        if nominating is not None and nominating.mode is NominatingMode.OVERRIDE:
            node_name = nominating.nominated_node_name
        else:
            node_name = pod.status.nominated_node_name
            if not node_name:
                return
        if not known:
            return
        self._node_of[pod.uid] = node_name
        self._pods_of.setdefault(node_name, []).append(PodRef(pod.name, pod.namespace, pod.uid))

    def _delete(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is None:
            return
        left = [ref for ref in self._pods_of[node_name] if ref.uid != uid]
        if left:
            self._pods_of[node_name] = left
        else:
            del self._pods_of[node_name]
