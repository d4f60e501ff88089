"""Some of the nodes of a table, in any order: a list that knows their rows, so that nothing has to look a node up again.

What passes between cycles and plugins where the snapshot has columns; all other code sees a sequence of nodes.
No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from extender.framework.columnar import Mask, NodeTable, Rows
from extender.framework.named_nodes import NamedNodes
from extender.framework.node_info import NodeInfo

T = TypeVar("T")


class NodeRows(Sequence[NodeInfo]):
    """Some of a table's nodes, in any order, that know their rows."""

    __slots__ = ("rows", "table")

    def __init__(self, table: NodeTable, rows: Rows) -> None:
        self.table = table
        self.rows = rows

    @overload
    def __getitem__(self, index: int) -> NodeInfo: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[NodeInfo]: ...

    def __getitem__(self, index: int | slice) -> NodeInfo | Sequence[NodeInfo]:
        if isinstance(index, slice):
            return NodeRows(self.table, self.rows[index])
        return self.table.nodes[int(self.rows[index])]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[NodeInfo]:
        return iter(taken(self.table.nodes, self.rows))

    def names(self) -> Sequence[str]:
        """Looked up when they are asked for, which most nodes never are."""
        return _Names(self.table.names, self.rows)


class _Names(Sequence[str]):
    """The names of some rows."""

    __slots__ = ("_names", "_rows")

    def __init__(self, names: Sequence[str], rows: Rows) -> None:
        self._names = names
        self._rows = rows

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return taken(self._names, self._rows[index])
        return self._names[int(self._rows[index])]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(taken(self._names, self._rows))


def taken(values: Sequence[T], at: NDArray[np.integer]) -> Sequence[T]:
    """The values at these places."""
    if len(at) < 2:
        return [values[i] for i in at.tolist()]
    result: Sequence[T] = itemgetter(*at.tolist())(values)
    return result


def rows_in(table: NodeTable, nodes: Sequence[NodeInfo]) -> Rows | None:
    """Where the nodes are in the table; None if one of them is not the table's own."""
    if isinstance(nodes, NamedNodes):
        nodes = nodes.found()
    if nodes is table.nodes:
        return table.all_rows
    if isinstance(nodes, NodeRows) and nodes.table is table:
        return nodes.rows
    own, rows = table.nodes, []
    for node in nodes:
        row = table.position(node.name)
        if row is None or own[row] is not node:
            return None
        rows.append(row)
    return np.array(rows, dtype=np.intp)


def only(table: NodeTable, rows: Rows) -> Mask | None:
    """These rows as a mask; None for all of them."""
    if rows is table.all_rows:
        return None
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[rows] = True
    return mask


def names_of(nodes: Sequence[NodeInfo]) -> Sequence[str]:
    """Without a look at the nodes, where those know their names."""
    if isinstance(nodes, NamedNodes):
        return nodes.names
    return nodes.names() if isinstance(nodes, NodeRows) else [node.name for node in nodes]
