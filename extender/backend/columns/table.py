"""A snapshot by columns: one object that finds, builds and carries on each kind of them.

Implements framework.columnar.NodeTable; plugins get it from the snapshot. docs/design/0002-columns.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from extender.backend.columns.carried_columns import CarriedColumns
from extender.backend.columns.image_columns import ImageColumns
from extender.backend.columns.node_columns import NodeColumns
from extender.backend.columns.pod_columns import AffinityColumns, PodColumns, PortColumns
from extender.backend.columns.resource_columns import ResourceColumns
from extender.framework.columnar import (
    AffinityCounts,
    IntColumn,
    LabelColumn,
    Mask,
    PodCounts,
    Rows,
    TaintColumn,
)
from extender.framework.node_info import NodeInfo


class Table:
    """Frozen but for what is computed on first use."""

    __slots__ = (
        "_affinity",
        "_images",
        "_index",
        "_node_columns",
        "_pods",
        "_ports",
        "_resources",
        "all_rows",
        "names",
        "nodes",
    )

    def __init__(self, nodes: Sequence[NodeInfo], index: Mapping[str, int]) -> None:
        self.nodes = nodes
        self.names: Sequence[str] = tuple(index)
        self.all_rows: Rows = np.arange(len(nodes))
        self._index = index
        self._resources: CarriedColumns[ResourceColumns] = CarriedColumns(ResourceColumns.build)
        self._images = ImageColumns(nodes)
        self._node_columns: CarriedColumns[NodeColumns] = CarriedColumns(NodeColumns.build)
        self._pods: CarriedColumns[PodColumns] = CarriedColumns(PodColumns.build)
        self._affinity: CarriedColumns[AffinityColumns] = CarriedColumns(AffinityColumns.build)
        self._ports: CarriedColumns[PortColumns] = CarriedColumns(PortColumns.build)

    def next(self, nodes: Sequence[NodeInfo], rows: frozenset[int], *, node_changed: bool) -> Table:
        """For a snapshot of the same nodes in the same order, of which those at the rows differ.

        node_changed: whether the labels or taints of one do.
        """
        fresh = Table.__new__(Table)
        fresh.nodes, fresh.names, fresh.all_rows = nodes, self.names, self.all_rows
        fresh._index = self._index
        fresh._images = self._images.next(nodes, rows)
        count = len(nodes)
        fresh._resources = self._resources.next(rows, count)
        fresh._node_columns = self._node_columns.next(rows, count) if node_changed else self._node_columns
        fresh._pods = self._pods.next(rows, count)
        fresh._affinity = self._affinity.next(rows, count)
        fresh._ports = self._ports.next(rows, count)
        return fresh

    def reordered(self, nodes: Sequence[NodeInfo], index: Mapping[str, int]) -> Table:
        """For a snapshot of other nodes, or in another order. To count all pods anew took a second at 150,000 with labels of their own,
        whenever a node came."""
        fresh = Table(nodes, index)
        before = [self._index.get(node.name, -1) for node in nodes]
        same = (row if row >= 0 and self.nodes[row] is node else -1 for row, node in zip(before, nodes, strict=True))
        order = np.fromiter(same, dtype=np.int64, count=len(nodes))
        fresh._resources = self._resources.reordered(order)
        fresh._node_columns = self._node_columns.reordered(order)
        fresh._pods = self._pods.reordered(order)
        fresh._affinity = self._affinity.reordered(order)
        fresh._ports = self._ports.reordered(order)
        return fresh

    def __len__(self) -> int:
        return len(self.nodes)

    def position(self, name: str) -> int | None:
        return self._index.get(name)

    def rows_named(self, names: Sequence[str]) -> Rows | None:
        rows = list(map(self._index.get, names))
        return None if None in rows else np.array(rows, dtype=np.intp)

    def resources(self) -> ResourceColumns:
        return self._resources.get(self.nodes)

    def allocatable(self, resource: str) -> IntColumn:
        return self.resources().allocatable(resource)

    def requested(self, resource: str) -> IntColumn:
        return self.resources().requested(resource)

    def non_zero_requested(self, resource: str) -> IntColumn:
        return self.resources().non_zero_requested(resource)

    def label(self, key: str) -> LabelColumn:
        return self._node_columns.get(self.nodes).label(key, self.nodes)

    def taints(self) -> TaintColumn:
        return self._node_columns.get(self.nodes).taints(self.nodes)

    def unschedulable(self) -> Mask:
        return self._node_columns.get(self.nodes).unschedulable(self.nodes)

    def pods(self) -> PodCounts:
        return self._pods.get(self.nodes)

    def affinity(self) -> AffinityCounts:
        return self._affinity.get(self.nodes)

    def ports_in_use(self, conflicts: Callable[[tuple[str, str, int]], bool]) -> Mask:
        return self._ports.get(self.nodes).nodes_where(conflicts)

    def image(self, name: str) -> tuple[IntColumn, IntColumn]:
        return self._images.get(name)
