"""A snapshot's resources as numpy columns, one entry a node in the snapshot's order.

The planner and the vectorised filters and scores look at all nodes at once: they read these in place of 5,000 NodeInfos.
They have no counterpart in kube-scheduler; a test holds them equal to the NodeInfos.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from extender.api.quantity import MAX_INT64
from extender.framework.node_info import NodeInfo
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, PODS

IntColumn: TypeAlias = NDArray[np.int64]

MOST_SCALARS = 64  # scalar resources whose columns are kept; one that no node has or is asked for costs nothing
MOST_NAMES = 1024  # beyond it the names that are in use are counted anew, since those that are gone stay until then

_ROWS = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2, PODS: 3}
_NON_ZERO_ROWS = {CPU: 4, MEMORY: 5}


def _saturated(amount: int) -> int:
    return max(-MAX_INT64 - 1, min(MAX_INT64, amount))


def _allocatable(node: NodeInfo) -> tuple[int, ...]:
    amounts = node.allocatable
    return amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage, amounts.allowed_pod_number


def _requested(node: NodeInfo) -> tuple[int, ...]:
    amounts = node.requested
    return (
        amounts.milli_cpu,
        amounts.memory,
        amounts.ephemeral_storage,
        len(node.pods),
        node.non_zero_milli_cpu,
        node.non_zero_memory,
    )


def _table(rows: Sequence[tuple[int, ...]], width: int) -> IntColumn:
    """Transposed: one row a resource, so that a resource's column is contiguous."""
    try:
        table = np.array(rows, dtype=np.int64)
    except OverflowError:
        table = np.array([[_saturated(amount) for amount in row] for row in rows], dtype=np.int64)
    return np.ascontiguousarray(table.reshape(len(rows), width).T)


def _frozen(table: IntColumn) -> IntColumn:
    table.flags.writeable = False
    return table


class ResourceColumns:
    """Read-only int64 arrays; amounts beyond int64 saturate. cpu in milliCPU, `pods` requested is the number of pods.

    Frozen but for the scalar resources, which are computed on first use; two threads that do so at once compute the same.
    Pods may ask for any names: what is kept of them is bounded.
    """

    __slots__ = ("_allocatable", "_nodes", "_nothing", "_requested", "_scalar_names", "_scalars")

    def __init__(
        self, nodes: Sequence[NodeInfo], allocatable: IntColumn, requested: IntColumn, nothing: IntColumn
    ) -> None:
        """nothing: zeros, which all resources share that no node has."""
        self._nodes = nodes
        self._allocatable = allocatable
        self._requested = requested
        self._nothing = nothing
        self._scalars: dict[str, tuple[IntColumn, IntColumn]] = {}
        self._scalar_names: frozenset[str] | None = None

    @classmethod
    def build(cls, nodes: Sequence[NodeInfo]) -> ResourceColumns:
        allocatable = _frozen(_table([_allocatable(node) for node in nodes], 4))
        requested = _frozen(_table([_requested(node) for node in nodes], 6))
        return cls(nodes, allocatable, requested, _frozen(np.zeros(len(nodes), dtype=np.int64)))

    def updated(self, nodes: Sequence[NodeInfo], changed: Iterable[int]) -> ResourceColumns:
        """For a snapshot with the same nodes in the same order, of which those at `changed` differ."""
        at = sorted(changed)
        requested = self._requested.copy()
        requested[:, at] = _table([_requested(nodes[i]) for i in at], 6)
        allocatable = self._allocatable
        moved = [i for i in at if nodes[i].allocatable is not self._nodes[i].allocatable]
        if moved:
            allocatable = allocatable.copy()
            allocatable[:, moved] = _table([_allocatable(nodes[i]) for i in moved], 4)
        fresh = ResourceColumns(nodes, _frozen(allocatable), _frozen(requested), self._nothing)
        for name, (total, used) in list(self._scalars.items()):
            fresh._scalars[name] = _updated_scalar(name, total, used, nodes, at)
        names = self._scalar_names
        if names is not None:
            here = _scalar_names(nodes[i] for i in at)
            names = names if here <= names else names | here
            fresh._scalar_names = names if len(names) <= MOST_NAMES else None
        return fresh

    def taken(self, order: IntColumn) -> ResourceColumns:
        rows = np.maximum(order, 0)
        nodes = [self._nodes[row] for row in rows.tolist()]
        nothing = _frozen(np.zeros(len(rows), dtype=np.int64))
        fresh = ResourceColumns(nodes, _frozen(self._allocatable[:, rows]), _frozen(self._requested[:, rows]), nothing)
        for name, (total, used) in list(self._scalars.items()):
            fresh._scalars[name] = _frozen(total[rows]), _frozen(used[rows])
        fresh._scalar_names = self._scalar_names
        return fresh

    def __len__(self) -> int:
        return len(self._nodes)

    def allocatable(self, resource: str) -> IntColumn:
        row = _ROWS.get(resource)
        return self._scalar(resource)[0] if row is None else self._allocatable[row]

    def requested(self, resource: str) -> IntColumn:
        row = _ROWS.get(resource)
        return self._scalar(resource)[1] if row is None else self._requested[row]

    def non_zero_requested(self, resource: str) -> IntColumn:
        """With the scheduler's defaults where a pod asks for nothing; cpu and memory only, others as `requested`."""
        row = _NON_ZERO_ROWS.get(resource)
        return self.requested(resource) if row is None else self._requested[row]

    def free(self, resource: str) -> IntColumn:
        """Allocatable less requested, computed anew; never above allocatable, and negative where overcommitted."""
        allocatable, requested = self.allocatable(resource), self.requested(resource)
        with np.errstate(over="ignore"):
            difference = allocatable - requested
        wrapped = (requested > 0) & (allocatable < 0) & (difference > 0)
        difference[wrapped] = -MAX_INT64 - 1
        return difference

    def _scalar(self, resource: str) -> tuple[IntColumn, IntColumn]:
        columns = self._scalars.get(resource)
        if columns is None:
            if self._scalar_names is None:
                self._scalar_names = _scalar_names(self._nodes)
            if resource not in self._scalar_names:
                return self._nothing, self._nothing
            if len(self._scalars) >= MOST_SCALARS:
                self._scalars.clear()
            table = _frozen(_scalar_table(resource, self._nodes))
            columns = self._scalars[resource] = (table[0], table[1])
        return columns


def _scalar_names(nodes: Iterable[NodeInfo]) -> frozenset[str]:
    """Those that are on any of the nodes: whose amount is not 0 there, allocatable or requested."""
    amounts = (side for node in nodes for side in (node.allocatable.scalar, node.requested.scalar) if side)
    return frozenset(name for side in amounts for name, amount in side.items() if amount)


def _scalar_table(resource: str, nodes: Sequence[NodeInfo]) -> IntColumn:
    return _table([(n.allocatable.scalar.get(resource, 0), n.requested.scalar.get(resource, 0)) for n in nodes], 2)


def _updated_scalar(
    resource: str, allocatable: IntColumn, requested: IntColumn, nodes: Sequence[NodeInfo], at: Sequence[int]
) -> tuple[IntColumn, IntColumn]:
    fresh = _scalar_table(resource, [nodes[i] for i in at])
    if not np.array_equal(allocatable[at], fresh[0]):
        allocatable = allocatable.copy()
        allocatable[at] = fresh[0]
    if not np.array_equal(requested[at], fresh[1]):
        requested = requested.copy()
        requested[at] = fresh[1]
    return _frozen(allocatable), _frozen(requested)
