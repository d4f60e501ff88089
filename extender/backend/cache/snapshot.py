"""All nodes at one instant, never changed afterwards: what one cycle, one plan or one held bind works on.

The cache derives each from the one before it, sharing all that did not change; threads keep theirs as long as they like.
kube-scheduler: pkg/scheduler/backend/cache/snapshot.go (there one snapshot is updated in place)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, TypeAlias

from extender.api import corev1
from extender.backend.cache.image_states import ImageStates
from extender.backend.cache.node_tree import NodeTree
from extender.backend.columns.resource_columns import ResourceColumns
from extender.backend.columns.table import Table
from extender.framework.node_info import NodeInfo, next_generation
from extender.framework.pod_info import PodInfo

Positions: TypeAlias = Sequence[int]


class Snapshot:
    """Implements framework.listers.NodeInfoLister and framework.columnar.ColumnarLister.

    What is computed on first use (columns, lists of nodes with affinity) is the same whichever thread computes it.
    """

    __slots__ = (
        "_affinity_at",
        "_affinity_nodes",
        "_anti_affinity_at",
        "_anti_affinity_nodes",
        "_claims",
        "_index",
        "_nodes",
        "_table",
        "generation",
        "node_generation",
        "order_version",
    )

    def __init__(
        self,
        nodes: tuple[NodeInfo, ...] = (),
        *,
        generation: int = 0,
        order_version: int = 0,
    ) -> None:
        self._nodes = nodes
        self._index = {node.name: i for i, node in enumerate(nodes)}
        self.generation = generation
        """Grows with every difference between snapshots of one cache."""
        self.node_generation = generation
        """When which nodes there are, or the labels, spec, annotations or allocatable of one, last changed. Label and taint
        masks that were made at one node_generation hold in every snapshot that has it."""
        self.order_version = order_version
        self._affinity_at = _where(nodes, _has_affinity)
        self._anti_affinity_at = _where(nodes, _has_anti_affinity)
        self._affinity_nodes: Sequence[NodeInfo] | None = None
        self._anti_affinity_nodes: Sequence[NodeInfo] | None = None
        self._claims: frozenset[str] | None = None
        self._table = Table(nodes, self._index)

    def list(self) -> Sequence[NodeInfo]:
        return self._nodes

    def get(self, name: str) -> NodeInfo:
        return self._nodes[self._index[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __len__(self) -> int:
        return len(self._nodes)

    def position(self, name: str) -> int:
        """Where the node is in `list()` and in the columns. Raises KeyError."""
        return self._index[name]

    def have_pods_with_affinity(self) -> Sequence[NodeInfo]:
        if self._affinity_nodes is None:
            self._affinity_nodes = [self._nodes[i] for i in self._affinity_at]
        return self._affinity_nodes

    def have_pods_with_required_anti_affinity(self) -> Sequence[NodeInfo]:
        if self._anti_affinity_nodes is None:
            self._anti_affinity_nodes = [self._nodes[i] for i in self._anti_affinity_at]
        return self._anti_affinity_nodes

    def is_pvc_used_by_pods(self, key: str) -> bool:
        """Whether a pod on any node uses the claim `namespace/name`. Go: StorageInfoLister.IsPVCUsedByPods."""
        if self._claims is None:
            self._claims = frozenset(key for node in self._nodes for key in node.pvc_ref_counts)
        return key in self._claims

    def columns(self) -> ResourceColumns:
        """Built on first use, from those of an earlier snapshot where only some rows differ."""
        return self._table.resources()

    def table(self) -> Table | None:
        """Everything by columns; None for a snapshot of nodes without node objects, or with names that are not unique."""
        return self._table if len(self._index) == len(self._nodes) and "" not in self._index else None

    def reordered(self, nodes: tuple[NodeInfo, ...], generation: int, order_version: int) -> Snapshot:
        """Of other nodes, or of the same in another order: the columns are carried on, and all else is new."""
        fresh = Snapshot(nodes, generation=generation, order_version=order_version)
        fresh._table = self._table.reordered(nodes, fresh._index)
        return fresh

    def replaced(self, changed: Mapping[str, NodeInfo], generation: int | None = None) -> Snapshot:
        """A snapshot with these nodes in place of those of the same names, the rest shared. Raises KeyError.

        Serves the cache and questions of "what if": hand in changed clones, never the snapshot's own nodes.
        """
        fresh = copy(self)
        fresh.generation = next_generation() if generation is None else generation
        if not changed:
            return fresh
        nodes = list(self._nodes)
        for name, node in changed.items():
            nodes[self._index[name]] = node
        rows = [self._index[name] for name in changed]
        node_changed = any(_node_differs(self._nodes[at], nodes[at]) for at in rows)
        if node_changed:
            fresh.node_generation = fresh.generation
        fresh._nodes = tuple(nodes)
        fresh._affinity_at = _moved(self._affinity_at, _has_affinity, self._nodes, nodes, rows)
        fresh._anti_affinity_at = _moved(self._anti_affinity_at, _has_anti_affinity, self._nodes, nodes, rows)
        fresh._affinity_nodes = fresh._anti_affinity_nodes = fresh._claims = None
        fresh._table = self._table.next(fresh._nodes, frozenset(rows), node_changed=node_changed)
        return fresh


def _node_differs(before: NodeInfo, after: NodeInfo) -> bool:
    return before.node is not after.node and _lasting(before.node) != _lasting(after.node)


def _lasting(node: corev1.Node | None) -> tuple[Any, ...] | None:
    """Without what a heartbeat changes, which are conditions only."""
    if node is None:
        return None
    status = node.status
    return node.metadata.labels, node.spec, node.metadata.annotations, status.allocatable, status.declared_features


def _has_affinity(node: NodeInfo) -> bool:
    return bool(node.pods_with_affinity)


def _has_anti_affinity(node: NodeInfo) -> bool:
    return bool(node.pods_with_required_anti_affinity)


def _where(nodes: Sequence[NodeInfo], holds: Callable[[NodeInfo], bool]) -> Positions:
    return [i for i, node in enumerate(nodes) if holds(node)]


def _moved(
    positions: Positions,
    holds: Callable[[NodeInfo], bool],
    before: Sequence[NodeInfo],
    after: Sequence[NodeInfo],
    rows: Sequence[int],
) -> Positions:
    """The sorted positions after the nodes at `rows` have changed; the same object where nothing flips."""
    flipped = [at for at in rows if holds(before[at]) != holds(after[at])]
    if not flipped:
        return positions
    fresh = list(positions)
    for at in flipped:
        where = bisect_left(fresh, at)
        if holds(after[at]):
            fresh.insert(where, at)
        else:
            del fresh[where]
    return fresh


def new_snapshot(pods: Iterable[corev1.Pod], nodes: Iterable[corev1.Node]) -> Snapshot:
    """Of plain objects, for tests and one-off questions; pods whose node is not given are left out. Go: NewSnapshot."""
    tree, images = NodeTree(), ImageStates()
    infos: dict[str, NodeInfo] = {}
    for node in nodes:
        tree.add_node(node)
        images.set_node(node)
        infos[node.name] = NodeInfo(node)
    for pod in pods:
        if pod.node_name in infos:
            infos[pod.node_name].add_pod(PodInfo(pod))
    for name, info in infos.items():
        info.image_states = images.summaries(name)
    return Snapshot(tuple(infos[name] for name in tree.list()), generation=next_generation())
