"""Nodes and the pods on them, including assumed pods, whose binding is not confirmed yet: kube-scheduler's cache.

Event handlers add, update and remove; the binding cycle assumes and forgets; every cycle takes a snapshot.
kube-scheduler: pkg/scheduler/backend/cache/{cache,interface}.go

A pod's states, by UID. Assumed pods count on their node as added ones do.

                          add
      +-----------------------------------------------+   +------+
      |                                               v   v      | update
    Initial --- assume ---> Assumed ------ add -----> Added -----+
      ^                      |  | ^                     |
      |   forget, remove,    |  | | finish_binding      | remove
      +------ expire --------+  +-+                     |
      +-------------------------------------------------+

add on an assumed pod replaces the object: the event's node counts, even where it is not the assumed one. Expiry is off
unless a TTL is given (kube-scheduler had one of 30 s until 1.23): it runs from finish_binding, never before. Each edge,
and the words for those that are missing, is a row of the table in transitions.py.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cachetools import LRUCache
from msgspec.structs import replace

from extender.api import corev1
from extender.backend.cache.image_states import ImageStates
from extender.backend.cache.node_tree import NodeTree
from extender.backend.cache.snapshot import Snapshot
from extender.backend.cache.transitions import TRANSITIONS, Action, CacheError, PodState
from extender.framework.handle import Clock
from extender.framework.node_info import NodeInfo, next_generation
from extender.framework.pod_info import PodInfo

__all__ = ["Cache", "CacheError", "Dump"]

log = logging.getLogger(__name__)

REMEMBERED = 10_000  # pods that were assumed last


@dataclass(slots=True)
class _Entry:
    info: PodInfo
    state: PodState
    bound: float = math.inf  # set by finish_binding: when


@dataclass(frozen=True, slots=True)
class Dump:
    """What the cache holds, for debugging. nodes: nodes whose object it has; pods: UID -> key. Go: cache.Dump, with full copies."""

    nodes: frozenset[str]
    pods: Mapping[str, str]
    assumed_pods: frozenset[str]


class Cache:
    """Thread-safe. `_lock` guards everything, is the innermost lock, and covers no I/O and no caller's code."""

    def __init__(self, ttl: float | None = None, clock: Clock = time.monotonic) -> None:
        self._ttl = ttl
        self._clock = clock
        self._lock = threading.Lock()
        self._pods: dict[str, _Entry] = {}
        self._assumed: set[str] = set()
        self._once_assumed: LRUCache[str, bool] = LRUCache(REMEMBERED)  # UIDs
        self._nodes: OrderedDict[str, NodeInfo] = OrderedDict()  # the most recently changed last
        self._tree = NodeTree()
        self._images = ImageStates()
        self._nodes_left_generation = 0
        self._latest = Snapshot()
        self._prepared: dict[
            str, NodeInfo
        ] = {}  # clones for the next snapshot, as long as their generation is the node's

    # Pods

    def assume_pod(self, pod: corev1.Pod, node_name: str = "") -> corev1.Pod:
        """Counts the pod on the node from now on, before its binding is known. Returns the pod with its node set."""
        if node_name and pod.node_name != node_name:
            pod = replace(pod, spec=replace(pod.spec, node_name=node_name))
        if not pod.node_name:
            raise CacheError(f"pod {pod.uid}({pod.key}) cannot be assumed without a node")
        info = _computed(pod)
        with self._lock:
            self._follow(pod, Action.ASSUME)
            self._put(info, PodState.ASSUMED)
            self._once_assumed[pod.uid] = True
        return pod

    def finish_binding(self, pod: corev1.Pod) -> None:
        """The binding was accepted: an assumed pod may expire one TTL from now, if there is a TTL."""
        now = self._clock()
        with self._lock:
            self._follow(pod, Action.FINISH_BINDING)
            entry = self._pods.get(pod.uid)
            if entry is not None:
                entry.bound = now

    def forget_pod(self, pod: corev1.Pod) -> None:
        """Takes an assumption back. A pod without a node stands for the one that was assumed, wherever that was."""
        with self._lock:
            entry = self._pods.get(pod.uid)
            if entry is not None and pod.node_name and pod.node_name != entry.info.pod.node_name:
                raise CacheError(
                    f"pod {pod.uid}({pod.key}) was assumed on {pod.node_name} but assigned to {entry.info.pod.node_name}"
                )
            self._follow(pod, Action.FORGET)
            if entry is not None:
                self._drop(entry)

    def add_pod(self, pod: corev1.Pod) -> None:
        """An assigned pod was seen: a new one, or one that was assumed."""
        info = _computed(pod)
        with self._lock:
            self._follow(pod, Action.ADD)
            assumed = self._pods.get(pod.uid)
            if assumed is not None:
                if assumed.info.pod.node_name != pod.node_name:
                    log.warning(
                        "pod was added to a different node than it was assumed pod=%s assumed=%s added=%s",
                        pod.key,
                        assumed.info.pod.node_name,
                        pod.node_name,
                    )
                self._drop(assumed)
            self._put(info, PodState.ADDED)

    def update_pod(self, old: corev1.Pod, new: corev1.Pod) -> None:
        """Removes and adds: the pod goes to the end of its node's list."""
        info = _computed(new)
        with self._lock:
            self._follow(old, Action.UPDATE)
            entry = self._pods[old.uid]
            if entry.info.pod.node_name != new.node_name:
                log.error("pod updated on a different node than previously added to pod=%s", new.key)
            self._drop(entry)
            self._put(info, PodState.ADDED)

    def remove_pod(self, pod: corev1.Pod) -> None:
        """By the node that the cache knows, whatever the event says."""
        with self._lock:
            self._follow(pod, Action.REMOVE)
            entry = self._pods[pod.uid]
            if pod.node_name and pod.node_name != entry.info.pod.node_name:
                log.error("pod was added to a different node than it was assumed pod=%s", pod.key)
            self._drop(entry)
            self._once_assumed.pop(pod.uid, None)

    def cleanup_assumed_pods(self) -> Sequence[corev1.Pod]:
        """Expires assumed pods whose binding finished more than a TTL ago; returns them. Go 1.21: cleanupAssumedPods."""
        if self._ttl is None:
            return ()
        now = self._clock()
        expired = []
        with self._lock:
            for uid in list(self._assumed):
                entry = self._pods[uid]
                if now > entry.bound + self._ttl:
                    self._follow(entry.info.pod, Action.EXPIRE)
                    self._drop(entry)
                    expired.append(entry.info.pod)
        return expired

    def is_assumed_pod(self, pod: corev1.Pod) -> bool:
        with self._lock:
            return pod.uid in self._assumed

    def was_assumed(self, pod: corev1.Pod) -> bool:
        """Whether its binding, if it has one, is ours: of the last 10,000 pods that are there."""
        with self._lock:
            return pod.uid in self._once_assumed

    def assumed_uids(self) -> frozenset[str]:
        """Of all pods that are on their node by our word only."""
        with self._lock:
            return frozenset(self._assumed)

    def get_pod(self, pod: corev1.Pod) -> corev1.Pod | None:
        """The cached object of the pod with this UID, assumed or added; None if there is none."""
        return self.pod_by_uid(pod.uid)

    def bound_before(self, then: float) -> Sequence[corev1.Pod]:
        """Pods that are assumed still though their binding was accepted before then, in seconds of the clock."""
        with self._lock:
            entries = [self._pods[uid] for uid in self._assumed]
            return [entry.info.pod for entry in entries if entry.bound < then]

    def pod_by_uid(self, uid: str) -> corev1.Pod | None:
        with self._lock:
            entry = self._pods.get(uid)
        return None if entry is None else entry.info.pod

    # Nodes

    def add_node(self, node: corev1.Node) -> None:
        """A new node, or one that pods were seen on before it was."""
        with self._lock:
            self._set_node(node)

    def update_node(self, old: corev1.Node | None, new: corev1.Node) -> None:
        """A node that the cache does not know is added. `old` is there for symmetry with events; the cache knows better."""
        with self._lock:
            self._set_node(new)

    def remove_node(self, node: corev1.Node) -> None:
        """A node with pods stays as a ghost, in no snapshot, until the last of them is gone."""
        with self._lock:
            info = self._nodes.get(node.name)
            if info is None or info.node is None:
                raise CacheError(f"node {node.name} is not found")
            self._tree.remove_node(node.name)
            self._images.remove_node(node.name)
            self._nodes_left_generation = next_generation()
            if info.pods:
                info.remove_node()
                self._nodes.move_to_end(node.name)
            else:
                del self._nodes[node.name]

    # Views

    def snapshot(self) -> Snapshot:
        """The newest state. The same object as before where nothing has changed."""
        with self._lock:
            self._latest = self._derive(self._latest)
            return self._latest

    def prepare_snapshot(self, pause: Callable[[], None]) -> None:
        """Clones what has changed since the last snapshot, node by node, so that the next one is quickly made: after a list every node has.

        pause: called after each; no lock is held.
        """
        with self._lock:
            names = [info.node.name for info in self._changed_since(self._latest.generation) if info.node is not None]
        for name in names:
            with self._lock:
                info = self._nodes.get(name)
                if info is not None and info.node is not None:
                    self._prepared[name] = self._clone(name, info)
            pause()

    def update_snapshot(self, previous: Snapshot) -> Snapshot:
        """The newest state, sharing with `previous` what has not changed since; `previous` itself stays as it is.

        `previous` must come from this cache, or be an empty Snapshot().
        """
        with self._lock:
            return self._derive(previous)

    def node_count(self) -> int:
        """Ghosts included."""
        with self._lock:
            return len(self._nodes)

    def pod_count(self) -> int:
        with self._lock:
            return len(self._pods)

    def assumed_count(self) -> int:
        with self._lock:
            return len(self._assumed)

    def dump(self) -> Dump:
        with self._lock:
            nodes = frozenset(name for name, info in self._nodes.items() if info.node is not None)
            pods = {uid: entry.info.pod.key for uid, entry in self._pods.items()}
            return Dump(nodes, pods, frozenset(self._assumed))

    # Below here the lock is held

    def _follow(self, pod: corev1.Pod, action: Action) -> PodState:
        entry = self._pods.get(pod.uid)
        target = TRANSITIONS[PodState.INITIAL if entry is None else entry.state, action]
        if isinstance(target, str):
            raise CacheError(target.format(pod.uid, pod.key))
        return target

    def _put(self, info: PodInfo, state: PodState) -> None:
        uid, name = info.pod.uid, info.pod.node_name
        self._pods[uid] = _Entry(info, state)
        if state is PodState.ASSUMED:
            self._assumed.add(uid)
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = NodeInfo()
        node.add_pod(info)
        self._nodes.move_to_end(name)

    def _drop(self, entry: _Entry) -> None:
        pod = entry.info.pod
        del self._pods[pod.uid]
        self._assumed.discard(pod.uid)
        node = self._nodes[pod.node_name]
        node.remove_pod(pod)
        if node.node is None and not node.pods:
            del self._nodes[pod.node_name]
        else:
            self._nodes.move_to_end(pod.node_name)

    def _set_node(self, node: corev1.Node) -> None:
        info = self._nodes.get(node.name)
        if info is None:
            info = self._nodes[node.name] = NodeInfo()
        self._tree.add_node(node)
        self._images.set_node(node)
        info.set_node(node)
        self._nodes.move_to_end(node.name)

    def _derive(self, previous: Snapshot) -> Snapshot:
        """Only nodes changed since `previous` are cloned: they are at the end, in the order of their generations."""
        newest = next(reversed(self._nodes.values())).generation if self._nodes else 0
        generation = max(newest, self._nodes_left_generation)
        if generation == previous.generation:
            return previous
        prepared, self._prepared = self._prepared, {}
        changed: dict[str, NodeInfo] = {}
        for info in self._changed_since(previous.generation):
            if info.node is not None:
                name = info.node.name
                clone = prepared.get(name)
                still = clone is not None and clone.generation == info.generation
                changed[name] = self._clone(name, info, clone if still else None)
        if previous.order_version == self._tree.version:
            return previous.replaced(changed, generation)
        nodes = tuple(changed[name] if name in changed else previous.get(name) for name in self._tree.list())
        return previous.reordered(nodes, generation, self._tree.version)

    def _changed_since(self, generation: int) -> Iterator[NodeInfo]:
        """The newest first, ghosts among them."""
        for info in reversed(self._nodes.values()):
            if info.generation <= generation:
                return
            yield info

    def _clone(self, name: str, info: NodeInfo, clone: NodeInfo | None = None) -> NodeInfo:
        """clone: one that was made before. Images may have come to other nodes since."""
        clone = info.clone() if clone is None else clone
        clone.image_states = self._images.summaries(name)
        return clone


def _computed(pod: corev1.Pod) -> PodInfo:
    """Requests are computed on first use; here that is before the lock is taken, not under it."""
    info = PodInfo(pod)
    _ = info.requests, info.non_zero_requests
    return info
