"""Free room: as numpy columns for all nodes at once, and for one node.

The columns are the planner's own copy, which it lessens as it places; kube-scheduler's NodeResourcesFit asks the same of
one node at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resource

IntColumn: TypeAlias = NDArray[np.int64]
BoolColumn: TypeAlias = NDArray[np.bool_]
Amounts: TypeAlias = Mapping[str, int]

_MOST = 2**61  # amounts beyond it count as this much


def asked_of(requests: Resource) -> dict[str, int]:
    """What is asked for at all, by resource name."""
    amounts = {CPU: requests.milli_cpu, MEMORY: requests.memory, EPHEMERAL_STORAGE: requests.ephemeral_storage}
    return {name: min(amount, _MOST) for name, amount in {**amounts, **requests.scalar}.items() if amount > 0}


def free(node: NodeInfo, name: str) -> int:
    allocatable, requested = node.allocatable, node.requested
    match name:
        case "cpu":
            return allocatable.milli_cpu - requested.milli_cpu
        case "memory":
            return allocatable.memory - requested.memory
        case "ephemeral-storage":
            return allocatable.ephemeral_storage - requested.ephemeral_storage
        case "pods":
            return allocatable.allowed_pod_number - len(node.pods)
    return allocatable.scalar.get(name, 0) - requested.scalar.get(name, 0)


def _column(nodes: Sequence[NodeInfo], name: str) -> IntColumn:
    amounts = [free(node, name) for node in nodes]
    try:
        return np.array(amounts, dtype=np.int64)
    except OverflowError:
        return np.array([max(-_MOST, min(_MOST, amount)) for amount in amounts], dtype=np.int64)


def _bounded(amounts: IntColumn) -> IntColumn:
    return np.clip(amounts, -_MOST, _MOST)


class Room:
    """Free amounts of the resources that somebody asks for, one entry a node. Changes as places are taken."""

    __slots__ = ("_free",)

    def __init__(self, free: dict[str, IntColumn]) -> None:
        self._free = free

    @classmethod
    def of(cls, snapshot: NodeInfoLister, resources: Iterable[str]) -> Room:
        wanted = sorted({PODS, *resources})
        table = table_of(snapshot)
        if table is None:
            return cls({name: _column(snapshot.list(), name) for name in wanted})
        return cls({name: _bounded(table.allocatable(name)) - _bounded(table.requested(name)) for name in wanted})

    def copy(self) -> Room:
        return Room({name: column.copy() for name, column in self._free.items()})

    def capacity(self, asked: Amounts) -> IntColumn:
        """How many pods that ask for so much each node still takes."""
        least = self._free[PODS]
        for name, amount in asked.items():
            least = np.minimum(least, self._free[name] // amount)
        return np.maximum(least, 0)

    def capacity_at(self, index: int, asked: Amounts) -> int:
        least = min((int(self._free[name][index]) // amount for name, amount in asked.items()), default=_MOST)
        return max(0, min(least, int(self._free[PODS][index])))

    def take(self, at: IntColumn | int, asked: Amounts, count: IntColumn | int = 1) -> None:
        self._free[PODS][at] -= count
        for name, amount in asked.items():
            self._free[name][at] -= amount * count

    def give(self, at: IntColumn, amounts: Mapping[str, IntColumn]) -> None:
        """Amounts of some resources back to these nodes; a node may be named several times."""
        for name, column in amounts.items():
            np.add.at(self._free[name], at, column)

    def short_of(self, asked: Amounts, among: BoolColumn) -> dict[str, int]:
        """Resource -> the number of nodes that have too little of it for one more."""
        short = {PODS: int(np.count_nonzero(among & (self._free[PODS] < 1)))}
        for name, amount in asked.items():
            short[name] = int(np.count_nonzero(among & (self._free[name] < amount)))
        return {name: count for name, count in short.items() if count}


def capacity_for(node: NodeInfo, requests: Resource) -> int:
    """How many pods of these requests one node still takes."""
    least = free(node, PODS)
    for name, amount in asked_of(requests).items():
        least = min(least, free(node, name) // amount)
    return max(0, least)


def insufficient(node: NodeInfo, requests: Resource) -> list[str]:
    """The resources of which the node has too little for one more pod."""
    short = [PODS] if free(node, PODS) < 1 else []
    return short + [name for name, amount in asked_of(requests).items() if amount > free(node, name)]


def shortage(resource: str) -> str:
    """NodeResourcesFit's words."""
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"
