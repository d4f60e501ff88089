"""All nodes at once: what a plugin may offer beside its exact rule, and the columns that it reads for that.

A snapshot that carries columns shows them by `table()`; a hypothetical one has none, and the exact rules are asked node by
node. An answer from columns equals the exact rule's in every number and word, or is None: not this pod, not this way.
Nothing here has a counterpart in kube-scheduler, which asks 16 goroutines instead. docs/design/0002-columns.md
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from extender.api import corev1
from extender.framework.cycle_state import CycleState
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import AffinityTerm, WeightedAffinityTerm
from extender.framework.status import Status

IntColumn: TypeAlias = NDArray[np.int64]
Codes: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]
Rows: TypeAlias = NDArray[np.intp]
Number = TypeVar("Number", bound=np.generic)

FEW = 16
"""So few nodes are asked one by one: columns would cost more."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelColumn:
    """One label of all nodes. `codes`: an index into `values`, -1 where a node does not have the label, so that a lookup
    table with one more entry at its end answers for those too."""

    codes: Codes
    values: Sequence[str]
    index: Mapping[str, int]

    def sums(self, per_node: IntColumn) -> IntColumn:
        """By value: the sum over its nodes. What nodes without the label have is left out."""
        there = self.codes >= 0
        sums = np.bincount(self.codes[there], weights=per_node[there], minlength=len(self.values))
        return sums.astype(np.int64)

    def occupied(self, nodes: Mask) -> Mask:
        """By value: whether any of these nodes has it."""
        result = np.zeros(len(self.values) + 1, dtype=np.bool_)
        result[self.codes[nodes]] = True
        return result[:-1]

    def of_nodes(self, by_value: NDArray[Number], missing: object) -> NDArray[Number]:
        """Each node's entry of an array over the values."""
        return np.append(by_value, np.array([missing], dtype=by_value.dtype))[self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class TaintColumn:
    """`codes`: an index into `sets`, the different lists of taints that there are."""

    codes: Codes
    sets: Sequence[tuple[corev1.Taint, ...]]

    def nodes_where(self, holds: Callable[[tuple[corev1.Taint, ...]], bool]) -> Mask:
        return np.array([holds(taints) for taints in self.sets], dtype=np.bool_)[self.codes]


@dataclass(frozen=True, slots=True, eq=False)
class PodClass:
    """What a selector can tell of a pod: pods of one class are alike to every selector. `pod` has nothing but these."""

    key: bytes
    pod: corev1.Pod
    terminating: bool

    @property
    def namespace(self) -> str:
        return self.pod.metadata.namespace


@dataclass(frozen=True, slots=True, eq=False)
class AffinityClass:
    """Pods with the same pod affinity terms."""

    key: bytes
    required: tuple[AffinityTerm, ...]
    required_anti: tuple[AffinityTerm, ...]
    preferred: tuple[WeightedAffinityTerm, ...]
    preferred_anti: tuple[WeightedAffinityTerm, ...]


class PodCounts(Protocol):
    """All pods on all nodes, by class."""

    def matching(
        self, key: Hashable, matches: Callable[[PodClass], bool], namespaces: frozenset[str] | None = None
    ) -> IntColumn:
        """Pods per node whose class matches. What a class was found to be is kept under the key.

        namespaces: the only ones in which a class can match; None for all.
        """
        ...


class AffinityCounts(Protocol):
    """The pods that have affinity terms, by what terms they have."""

    def of_namespace(self, namespace: str) -> Sequence[tuple[int, AffinityClass]]:
        """(id, class) of those that may look at pods of the namespace."""
        ...

    def per_node(self, weights: Mapping[int, int]) -> IntColumn:
        """The sum of the weights, by class id, over the pods of each node."""
        ...


class NodeTable(Protocol):
    """A snapshot by columns; every column has one entry a node, in the order of `nodes`. Columns are read-only."""

    @property
    def nodes(self) -> Sequence[NodeInfo]: ...

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def all_rows(self) -> Rows: ...

    def __len__(self) -> int: ...

    def position(self, name: str) -> int | None:
        """The row of the node; None for a node that is not here."""
        ...

    def rows_named(self, names: Sequence[str]) -> Rows | None:
        """The rows of these nodes; None if one is not here."""
        ...

    def allocatable(self, resource: str) -> IntColumn: ...

    def requested(self, resource: str) -> IntColumn:
        """`pods` is the number of pods."""
        ...

    def non_zero_requested(self, resource: str) -> IntColumn: ...

    def label(self, key: str) -> LabelColumn: ...

    def taints(self) -> TaintColumn: ...

    def unschedulable(self) -> Mask: ...

    def pods(self) -> PodCounts: ...

    def affinity(self) -> AffinityCounts: ...

    def ports_in_use(self, conflicts: Callable[[tuple[str, str, int]], bool]) -> Mask:
        """Nodes with a host port (ip, protocol, port) in use for which this holds."""
        ...

    def image(self, name: str) -> tuple[IntColumn, IntColumn]:
        """(size, number of nodes that have it) as each node knows the image; 0 where it does not have it."""
        ...


@runtime_checkable
class ColumnarLister(Protocol):
    """A NodeInfoLister that has columns."""

    def table(self) -> NodeTable | None: ...


def table_of(snapshot: NodeInfoLister) -> NodeTable | None:
    return cast(ColumnarLister, snapshot).table() if _has_columns(type(snapshot)) else None


@lru_cache(maxsize=64)
def _has_columns(lister: type) -> bool:
    """Kept, since a protocol is compared member by member."""
    return issubclass(lister, ColumnarLister)


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """A Filter's answers for all nodes of a table: 0 passes, i is refused by `statuses[i - 1]`. No codes: all pass."""

    codes: NDArray[np.integer] | None = None
    statuses: Sequence[Status] = ()

    @classmethod
    def refused(cls, where: Mask, status: Status) -> Verdicts:
        return cls(where.astype(np.int32), (status,))


ALL_PASS = Verdicts()


class FilterColumns(ABC):
    """A FilterPlugin that can judge all nodes at once."""

    @abstractmethod
    def filter_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable) -> Verdicts | None:
        """After PreFilter ran on the table's snapshot, and was not followed by AddPod or RemovePod. None: ask `filter`."""


class ScoreColumns(ABC):
    """A ScorePlugin that can score all nodes at once."""

    @abstractmethod
    def score_columns(self, state: CycleState, pod: corev1.Pod, table: NodeTable, rows: Rows) -> IntColumn | None:
        """One score for each of the rows. None: ask `score`."""

    def normalize_columns(self, state: CycleState, pod: corev1.Pod, scores: IntColumn, rows: Rows) -> IntColumn | None:
        """The scores normalised, a new array. None: ask `normalize_score`."""
        return None
