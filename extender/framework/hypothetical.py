"""Snapshots of what is not so yet: the cluster with promised pods in place.

Plans for gangs and the search for victims make them, and the plugins read them. Made of a snapshot that knows how to differ from
itself they keep its columns; made of plain nodes they have none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo


@runtime_checkable
class Replaceable(Protocol):
    """A snapshot that can say what it would be with other nodes in place of those of the same names."""

    def replaced(self, changed: Mapping[str, NodeInfo]) -> NodeInfoLister: ...


class HypotheticalSnapshot:
    """Some nodes as a snapshot. Implements framework.listers.NodeInfoLister."""

    def __init__(self, nodes: Sequence[NodeInfo]) -> None:
        self._nodes = nodes
        self._by_name = {node.name: node for node in nodes}
        self.generation = 0

    def list(self) -> Sequence[NodeInfo]:
        return self._nodes

    def get(self, name: str) -> NodeInfo:
        return self._by_name[name]

    def have_pods_with_affinity(self) -> Sequence[NodeInfo]:
        return [node for node in self._nodes if node.pods_with_affinity]

    def have_pods_with_required_anti_affinity(self) -> Sequence[NodeInfo]:
        return [node for node in self._nodes if node.pods_with_required_anti_affinity]

    def is_pvc_used_by_pods(self, key: str) -> bool:
        return any(key in node.pvc_ref_counts for node in self._nodes)


Cluster = NodeInfoLister | Sequence[NodeInfo]
"""A snapshot, which may have columns, or plain nodes."""


def snapshot_of(cluster: Cluster) -> NodeInfoLister:
    return HypotheticalSnapshot(cluster) if isinstance(cluster, Sequence) else cluster


def with_pods(cluster: Cluster, promised: Iterable[tuple[str, PodInfo]]) -> NodeInfoLister:
    """The cluster with these pods on these nodes; a pod that is there already counts once, a node that is gone does not
    count. Nodes without promises are shared, not copied."""
    snapshot = snapshot_of(cluster)
    changed: dict[str, NodeInfo] = {}
    for name, pod in promised:
        node = changed.get(name)
        if node is None:
            try:
                node = changed[name] = snapshot.get(name).clone()
            except KeyError:
                continue
        if all(info.pod.metadata.uid != pod.pod.metadata.uid for info in node.pods):
            node.add_pod(pod)
    return with_nodes(snapshot, changed)


def without_pods(cluster: Cluster, gone: Mapping[str, Collection[str]]) -> NodeInfoLister:
    """The cluster without these pods: node name -> UIDs. Pods outlive their node for a while, and give no room then."""
    snapshot = snapshot_of(cluster)
    changed: dict[str, NodeInfo] = {}
    for name, uids in gone.items():
        try:
            node = snapshot.get(name)
        except KeyError:
            continue
        here = [info for info in node.pods if info.pod.metadata.uid in uids]
        if here:
            changed[name] = node.clone()
            for info in here:
                changed[name].remove_pod(info.pod)
    return with_nodes(snapshot, changed)


def with_nodes(snapshot: NodeInfoLister, changed: Mapping[str, NodeInfo]) -> NodeInfoLister:
    """With these in place of those of the same names."""
    if not changed:
        return snapshot
    if isinstance(snapshot, Replaceable):
        return snapshot.replaced(changed)
    return HypotheticalSnapshot([changed.get(node.name, node) for node in snapshot.list()])
