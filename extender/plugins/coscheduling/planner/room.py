"""Free room: as numpy columns for all nodes at once, for one node, summed up as a refusal, and counted before a plan.

The columns are the planner's own copy, which it lessens as it places; kube-scheduler's NodeResourcesFit asks the same of
one node at a time. In a refusal room comes before all other reasons; then the most frequent reason, and of equally frequent ones
the first in the alphabet, so that the text stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, Resource
from extender.framework.status import Status
from extender.plugins import names
from extender.plugins.coscheduling.planner.request import Cause, Request

IntColumn: TypeAlias = NDArray[np.int64]
BoolColumn: TypeAlias = NDArray[np.bool_]
Amounts: TypeAlias = Mapping[str, int]

_MOST = 2**61  # amounts beyond it count as this much
_ROUNDED = 1.0 + 1e-9  # sums of amounts are not exact to the last byte


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
    return np.minimum(np.maximum(amounts, -_MOST), _MOST)  # np.clip takes three times as long for a hundred nodes


class Room:
    """Free amounts of the resources that pods ask for, one entry a node. Changes as places are taken."""

    __slots__ = ("_free",)

    def __init__(self, free: dict[str, IntColumn]) -> None:
        self._free = free

    @classmethod
    def of(cls, snapshot: NodeInfoLister, resources: Iterable[str], at: IntColumn | None = None) -> Room:
        """at: rows of the only nodes to be looked at; None for all."""
        wanted = sorted({PODS, *resources})
        table = table_of(snapshot)
        if table is None:
            nodes = snapshot.list()
            nodes = nodes if at is None else [nodes[row] for row in at.tolist()]
            return cls({name: _column(nodes, name) for name in wanted})
        rows = slice(None) if at is None else at
        return cls(
            {name: _bounded(table.allocatable(name)[rows]) - _bounded(table.requested(name)[rows]) for name in wanted}
        )

    def copy(self) -> Room:
        return Room({name: column.copy() for name, column in self._free.items()})

    def become(self, other: Room) -> None:
        """The same free amounts as the other, which is not used any more."""
        self._free = other._free

    def capacity(self, asked: Amounts) -> IntColumn:
        """How many pods that ask for so much each node still takes."""
        least = self._free[PODS]
        for name, amount in asked.items():
            least = np.minimum(least, self._free[name] // amount)
        return np.maximum(least, 0)

    def may_hold(self, at: IntColumn, asked: Amounts, pods: int) -> bool:
        """Whether these nodes have so much in all: else there is no need to try. What lies in pieces counts as if it did not."""
        return all(
            np.maximum(self._free[name][at], 0).sum(dtype=np.float64) * _ROUNDED >= amount
            for name, amount in {**asked, PODS: pods}.items()
        )

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


def shortage(resource: str) -> str:
    """NodeResourcesFit's words."""
    return "Too many pods" if resource == PODS else f"Insufficient {resource}"


class Counting:
    """Counts of one snapshot are kept until the next, so that many gangs that are alike are counted once. For one thread."""

    def __init__(self) -> None:
        self._snapshot: NodeInfoLister | None = None
        self._counts: dict[tuple[str, int], int] = {}

    def too_little(self, snapshot: NodeInfoLister, request: Request, resource: str) -> bool:
        """Whether that is sure for this resource. False where a member asks for none of it, or nothing is known.

        What is promised to others, and what filters refuse, would only lessen it.
        """
        if not resource or not request.needed or len(request.members) < request.needed:
            return False
        least = 1 if resource == PODS else min(asked_of(info.requests).get(resource, 0) for info in request.members)
        return least > 0 and self._hold(snapshot, resource, least) < request.needed

    def _hold(self, snapshot: NodeInfoLister, resource: str, amount: int) -> int:
        """How many pods of that size all nodes hold together, by this resource and the number of pods."""
        if self._snapshot is not snapshot:
            self._snapshot, self._counts = snapshot, {}
        key = resource, amount
        if key not in self._counts:
            asked = {} if resource == PODS else {resource: amount}
            self._counts[key] = int(Room.of(snapshot, asked).capacity(asked).sum())
        return self._counts[key]


NO_NODE = "no node takes it"


class Refusals:
    def __init__(self) -> None:
        self._others: Counter[tuple[str, str]] = Counter()  # (reason, plugin)
        self._room: Counter[str] = Counter()  # resource

    def count(self, said: Mapping[Status, int]) -> None:
        """Status -> the number of nodes that said it. Those of NodeResourcesFit are left to `short`, which looks at what is left after all
        that was placed."""
        for status, times in said.items():
            if not status.success and status.plugin != names.NODE_RESOURCES_FIT:
                for reason in status.reasons:
                    self._others[reason, status.plugin] += times

    def short(self, resources: Mapping[str, int]) -> None:
        """Resource -> the number of nodes that have too little of it."""
        self._room.update(resources)

    @property
    def resource(self) -> str:
        """What most nodes have too little of; empty where room is not the matter."""
        return min(self._room, key=lambda name: (-self._room[name], name), default="")

    @property
    def reason(self) -> str:
        if self._room:
            return shortage(self.resource)
        return self._main()[0]

    @property
    def cause(self) -> Cause:
        if self._room:
            return Cause.ROOM
        affinity = self._main()[1] in (names.POD_TOPOLOGY_SPREAD, names.INTER_POD_AFFINITY)
        return Cause.AFFINITY if affinity else Cause.NODES

    def _main(self) -> tuple[str, str]:
        return min(self._others, key=lambda entry: (-self._others[entry], entry), default=(NO_NODE, ""))
