"""A node and the pods on it, summed up for the plugins.

The cache owns the ones that change; a snapshot holds clones that never change; a dry run clones again.
kube-scheduler: k8s.io/kube-scheduler/framework/types.go (NodeInfo), pkg/scheduler/framework/types.go
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource

DEFAULT_BIND_ALL_HOST_IP = "0.0.0.0"  # noqa: S104 - the API's spelling of "any address", nothing is bound here

_generations = itertools.count(1)


def next_generation() -> int:
    """Greater than any before it, in the whole process. Go: framework.nextGeneration."""
    return next(_generations)


@dataclass(frozen=True, slots=True)
class ImageStateSummary:
    size: int
    num_nodes: int


class HostPortInfo:
    """The host ports in use on a node, a set: two pods with the same port free it with the first that goes."""

    __slots__ = ("_ports",)

    def __init__(self, ports: Iterable[tuple[str, str, int]] = ()) -> None:
        self._ports: set[tuple[str, str, int]] = set(ports)  # (ip, protocol, port)

    @staticmethod
    def _key(ip: str, protocol: str, port: int) -> tuple[str, str, int]:
        return ip or DEFAULT_BIND_ALL_HOST_IP, protocol or "TCP", port

    def add(self, ip: str, protocol: str, port: int) -> None:
        if port > 0:
            self._ports.add(self._key(ip, protocol, port))

    def remove(self, ip: str, protocol: str, port: int) -> None:
        self._ports.discard(self._key(ip, protocol, port))

    def conflicts(self, ip: str, protocol: str, port: int) -> bool:
        """Go: HostPortInfo.CheckConflict; the wildcard address meets every other."""
        if port <= 0 or not self._ports:
            return False
        ip, protocol, port = self._key(ip, protocol, port)
        if ip == DEFAULT_BIND_ALL_HOST_IP:
            return any(used[1:] == (protocol, port) for used in self._ports)
        return (ip, protocol, port) in self._ports or (DEFAULT_BIND_ALL_HOST_IP, protocol, port) in self._ports

    def clone(self) -> HostPortInfo:
        return HostPortInfo(self._ports)

    def __len__(self) -> int:
        return len(self._ports)

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """(ip, protocol, port)"""
        return iter(self._ports)


class NodeInfo:
    """`generation` grows with every change; equal generations of one node mean equal contents."""

    __slots__ = (
        "allocatable",
        "generation",
        "image_states",
        "node",
        "non_zero_memory",
        "non_zero_milli_cpu",
        "pods",
        "pods_with_affinity",
        "pods_with_required_anti_affinity",
        "pvc_ref_counts",
        "requested",
        "used_ports",
    )

    def __init__(self, node: corev1.Node | None = None, pods: Iterable[PodInfo] = ()) -> None:
        self.node: corev1.Node | None = None
        self.allocatable = Resource()
        self.requested = Resource()
        self.non_zero_milli_cpu = 0
        self.non_zero_memory = 0
        self.pods: list[PodInfo] = []
        self.pods_with_affinity: list[PodInfo] = []
        self.pods_with_required_anti_affinity: list[PodInfo] = []
        self.used_ports = HostPortInfo()
        self.image_states: dict[str, ImageStateSummary] = {}
        self.pvc_ref_counts: dict[str, int] = {}
        self.generation = next_generation()
        if node is not None:
            self.set_node(node)
        for pod in pods:
            self.add_pod(pod)

    @property
    def name(self) -> str:
        return self.node.metadata.name if self.node is not None else ""

    @property
    def labels(self) -> dict[str, str]:
        return self.node.metadata.labels if self.node is not None else {}

    @property
    def unschedulable(self) -> bool:
        return self.node is not None and self.node.spec.unschedulable

    def set_node(self, node: corev1.Node) -> None:
        self.node = node
        self.allocatable = Resource.from_list(node.status.allocatable)
        self.generation = next_generation()

    def remove_node(self) -> None:
        """The node object is gone while pods are still on it."""
        self.node = None
        self.generation = next_generation()

    def add_pod(self, info: PodInfo) -> None:
        self.pods.append(info)
        if info.with_affinity:
            self.pods_with_affinity.append(info)
        if info.required_anti_affinity_terms:
            self.pods_with_required_anti_affinity.append(info)
        self._account(info, 1)

    def remove_pod(self, pod: corev1.Pod) -> bool:
        """Removes by UID. The last pod takes the place of the removed one, as in Go. False if it was not here."""
        for index, info in enumerate(self.pods):
            if info.pod.metadata.uid == pod.metadata.uid:
                break
        else:
            return False
        _swap_remove(self.pods, index)
        for pods in (self.pods_with_affinity, self.pods_with_required_anti_affinity):
            for at, other in enumerate(pods):
                if other.pod.metadata.uid == pod.metadata.uid:
                    _swap_remove(pods, at)
                    break
        self._account(info, -1)
        return True

    def _account(self, info: PodInfo, sign: int) -> None:
        if sign > 0:
            self.requested.add(info.requests)
        else:
            self.requested.subtract(info.requests)
        milli_cpu, memory = info.non_zero_requests
        self.non_zero_milli_cpu += sign * milli_cpu
        self.non_zero_memory += sign * memory
        for port in info.host_ports:
            change = self.used_ports.add if sign > 0 else self.used_ports.remove
            change(port.host_ip, port.protocol, port.host_port)
        for key in info.claim_keys:
            count = self.pvc_ref_counts.get(key, 0) + sign
            if count > 0:
                self.pvc_ref_counts[key] = count
            else:
                self.pvc_ref_counts.pop(key, None)
        self.generation = next_generation()

    def clone(self) -> NodeInfo:
        """An independent copy of the same generation. Go: NodeInfo.Snapshot."""
        copy = NodeInfo.__new__(NodeInfo)
        copy.node = self.node
        copy.allocatable = self.allocatable
        copy.requested = self.requested.clone()
        copy.non_zero_milli_cpu = self.non_zero_milli_cpu
        copy.non_zero_memory = self.non_zero_memory
        copy.pods = list(self.pods)
        copy.pods_with_affinity = list(self.pods_with_affinity)
        copy.pods_with_required_anti_affinity = list(self.pods_with_required_anti_affinity)
        copy.used_ports = self.used_ports.clone()
        copy.image_states = self.image_states
        copy.pvc_ref_counts = dict(self.pvc_ref_counts)
        copy.generation = self.generation
        return copy

    def __repr__(self) -> str:
        return f"NodeInfo({self.name!r}, pods={len(self.pods)}, requested={self.requested})"


def _swap_remove(items: list[PodInfo], index: int) -> None:
    items[index] = items[-1]
    items.pop()
