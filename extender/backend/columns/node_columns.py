"""Labels, taints and cordons of all nodes as columns: what changes only where a node object does.

The table of a snapshot shares them with the next as long as no node differs. No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from extender.api import corev1
from extender.framework.columnar import IntColumn, LabelColumn, Mask, TaintColumn
from extender.framework.node_info import NodeInfo

MOST_LABELS = 256  # columns that are kept; a key that no node has costs nothing


class NodeColumns:
    """Frozen but for what is computed on first use; two threads that ask first compute the same.

    It keeps no nodes: the caller hands in those of a snapshot that has these labels and taints.
    """

    __slots__ = ("_keys", "_labels", "_taints", "_unschedulable")

    def __init__(self) -> None:
        self._keys: frozenset[str] | None = None
        self._labels: dict[str, LabelColumn] = {}
        self._taints: TaintColumn | None = None
        self._unschedulable: Mask | None = None

    @classmethod
    def build(cls, nodes: Sequence[NodeInfo]) -> Self:
        return cls()

    def updated(self, nodes: Sequence[NodeInfo], rows: Sequence[int]) -> Self:
        """Label columns are patched; one with a value that is new is made anew, as are the taints."""
        fresh = type(self)()
        for key, column in list(self._labels.items()):
            patched = _patched_label(key, column, nodes, rows)
            if patched is not None:
                fresh._labels[key] = patched
        if self._keys is not None:
            fresh._keys = self._keys.union(*(_node(nodes[row]).metadata.labels for row in rows))
        return fresh

    def taken(self, order: IntColumn) -> Self:
        rows = np.maximum(order, 0)
        fresh = type(self)()
        fresh._keys = self._keys
        for key, column in list(self._labels.items()):
            fresh._labels[key] = LabelColumn(column.codes[rows], column.values, column.index)
        if (taints := self._taints) is not None:
            fresh._taints = TaintColumn(taints.codes[rows], taints.sets)
        if (unschedulable := self._unschedulable) is not None:
            fresh._unschedulable = unschedulable[rows]
        return fresh

    def label(self, key: str, nodes: Sequence[NodeInfo]) -> LabelColumn:
        column = self._labels.get(key)
        if column is None:
            if self._keys is None:
                self._keys = frozenset(key for node in nodes for key in _node(node).metadata.labels)
            if key not in self._keys:
                return LabelColumn(np.full(len(nodes), -1, dtype=np.int32), (), {})
            if len(self._labels) >= MOST_LABELS:
                self._labels.clear()
            column = self._labels[key] = _label(key, nodes)
        return column

    def taints(self, nodes: Sequence[NodeInfo]) -> TaintColumn:
        if self._taints is None:
            ids: dict[tuple[corev1.Taint, ...], int] = {}
            codes = [ids.setdefault(_node(node).spec.taints, len(ids)) for node in nodes]
            self._taints = TaintColumn(np.array(codes, dtype=np.int32), tuple(ids))
        return self._taints

    def unschedulable(self, nodes: Sequence[NodeInfo]) -> Mask:
        if self._unschedulable is None:
            self._unschedulable = np.array([node.unschedulable for node in nodes], dtype=np.bool_)
        return self._unschedulable


def _node(info: NodeInfo) -> corev1.Node:
    assert info.node is not None  # noqa: S101 - a snapshot with a node that is gone has no table
    return info.node


def _label(key: str, nodes: Sequence[NodeInfo]) -> LabelColumn:
    index: dict[str, int] = {}
    codes = []
    for info in nodes:
        value = _node(info).metadata.labels.get(key)
        codes.append(-1 if value is None else index.setdefault(value, len(index)))
    return LabelColumn(np.array(codes, dtype=np.int32), tuple(index), index)


def _patched_label(key: str, column: LabelColumn, nodes: Sequence[NodeInfo], rows: Sequence[int]) -> LabelColumn | None:
    values = [_node(nodes[row]).metadata.labels.get(key) for row in rows]
    if any(value is not None and value not in column.index for value in values):
        return None
    codes = column.codes.copy()
    codes[rows] = [-1 if value is None else column.index[value] for value in values]
    return LabelColumn(codes, column.values, column.index)
