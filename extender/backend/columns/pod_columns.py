"""All pods of a snapshot by class: (node, class) pairs, so that a selector is asked once a class, and counting is numpy's.

InterPodAffinity and PodTopologySpread count by them; NodePorts asks for ports in use in the same way. No counterpart in
kube-scheduler; a test holds the counts equal to those by the pods themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, Self, TypeVar

import msgspec
import numpy as np

from extender.api import corev1
from extender.api.metav1 import ObjectMeta
from extender.backend.columns.class_ids import ClassIds
from extender.framework.columnar import AffinityClass, Codes, IntColumn, Mask, PodClass
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import AffinityTerm, PodInfo

T = TypeVar("T")
PortInUse = tuple[str, str, int]

_encode = msgspec.msgpack.Encoder().encode


class ClassColumns(Generic[T]):
    """Frozen but for its numbers, which grow and are shared by a line of snapshots. The pairs are in no order."""

    __slots__ = ("bound", "classes", "count", "id_of", "row_of")

    def __init__(self, classes: ClassIds[T], count: int, row_of: Codes, id_of: Codes) -> None:
        self.classes = classes
        self.count = count
        self.row_of = row_of
        self.id_of = id_of
        self.bound = int(id_of.max(initial=-1)) + 1

    @staticmethod
    def ids_of(classes: ClassIds[T], node: NodeInfo) -> list[int]:
        """The numbers of what is on the node, one for each thing."""
        raise NotImplementedError

    @classmethod
    def build(cls, nodes: Sequence[NodeInfo]) -> Self:
        classes: ClassIds[T] = ClassIds()
        pairs = cls._pairs(classes, nodes, range(len(nodes)))
        classes.settle()
        return cls(classes, len(nodes), *pairs)

    def updated(self, nodes: Sequence[NodeInfo], rows: Sequence[int]) -> Self:
        classes = self.classes
        row_of, id_of = self._pairs(classes, nodes, rows)
        if not len(row_of) and not len(self.row_of):
            return self  # nothing of the kind in the whole cluster, as most have no host ports
        gone = np.zeros(self.count, dtype=np.bool_)
        gone[rows] = True
        kept = ~gone[self.row_of]
        row_of = np.concatenate((self.row_of[kept], row_of))
        id_of = np.concatenate((self.id_of[kept], id_of))
        if classes.crowded:
            classes, moved = classes.kept(np.unique(id_of).tolist())
            id_of = moved[id_of]
        return type(self)(classes, self.count, row_of, id_of)

    def taken(self, order: IntColumn) -> Self:
        there = np.flatnonzero(order >= 0)
        row_of = np.full(self.count, -1, dtype=np.int32)
        row_of[order[there]] = there
        moved = row_of[self.row_of]
        return type(self)(self.classes, len(order), moved[moved >= 0], self.id_of[moved >= 0])

    @classmethod
    def _pairs(cls, classes: ClassIds[T], nodes: Sequence[NodeInfo], rows: Iterable[int]) -> tuple[Codes, Codes]:
        lengths: list[int] = []
        ids: list[int] = []
        rows = list(rows)
        for row in rows:
            here = cls.ids_of(classes, nodes[row])
            lengths.append(len(here))
            ids += here
        return np.repeat(np.array(rows, dtype=np.int32), lengths), np.array(ids, dtype=np.int32)

    def matching(
        self, key: Hashable, matches: Callable[[T], bool], namespaces: frozenset[str] | None = None
    ) -> IntColumn:
        """How many of the matching are on each node."""
        hits = self.classes.matching(key, matches, namespaces, self.bound)
        return np.bincount(self.row_of[hits[self.id_of]], minlength=self.count)


class PodColumns(ClassColumns[PodClass]):
    """Implements framework.columnar.PodCounts."""

    __slots__ = ()

    @staticmethod
    def ids_of(classes: ClassIds[PodClass], node: NodeInfo) -> list[int]:
        ids = []
        for info in node.pods:
            key = info.class_key
            known = classes.get(key) if key is not None else None
            ids.append(known if known is not None else _add_pod_class(classes, info))
        return ids


def _add_pod_class(classes: ClassIds[PodClass], info: PodInfo) -> int:
    meta = info.pod.metadata
    key = _encode((meta.namespace, meta.labels, info.pod.deleting))
    pod = corev1.Pod(metadata=ObjectMeta(namespace=meta.namespace, labels=meta.labels))
    number, kept = classes.add(key, PodClass(key, pod, info.pod.deleting), meta.namespace)
    info.class_key = kept.key  # one object for all pods of the class
    return number


class AffinityColumns(ClassColumns[AffinityClass]):
    """Implements framework.columnar.AffinityCounts."""

    __slots__ = ()

    @staticmethod
    def ids_of(classes: ClassIds[AffinityClass], node: NodeInfo) -> list[int]:
        ids = []
        for info in node.pods_with_affinity:
            key = info.affinity_key
            known = classes.get(key) if key is not None else None
            ids.append(known if known is not None else _add_affinity_class(classes, info))
        return ids

    def of_namespace(self, namespace: str) -> Sequence[tuple[int, AffinityClass]]:
        return self.classes.candidates(namespace)

    def per_node(self, weights: Mapping[int, int]) -> IntColumn:
        """Exact below 2^53."""
        by_id = np.zeros(max(self.bound, max(weights, default=-1) + 1), dtype=np.int64)
        by_id[list(weights)] = list(weights.values())
        each = by_id[self.id_of]
        met = each != 0
        return np.bincount(self.row_of[met], weights=each[met], minlength=self.count).astype(np.int64)


def _add_affinity_class(classes: ClassIds[AffinityClass], info: PodInfo) -> int:
    affinity = info.pod.spec.affinity
    terms = (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ()
    key = _encode((info.pod.namespace, terms))
    made = AffinityClass(
        key,
        info.required_affinity_terms,
        info.required_anti_affinity_terms,
        info.preferred_affinity_terms,
        info.preferred_anti_affinity_terms,
    )
    number, kept = classes.add(key, made, _only_namespace(made))
    info.affinity_key = kept.key
    return number


def _only_namespace(terms: AffinityClass) -> str | None:
    """Where all pods that the terms can meet are; None for terms that look further."""
    weighted = (*terms.preferred, *terms.preferred_anti)
    every: list[AffinityTerm] = [*terms.required, *terms.required_anti, *(one.term for one in weighted)]
    namespaces = frozenset[str]().union(*(term.namespaces for term in every))
    if len(namespaces) != 1 or any(term.namespace_selector is not None for term in every):
        return None
    return next(iter(namespaces))


class PortColumns(ClassColumns[PortInUse]):
    """The host ports in use, (ip, protocol, port)."""

    __slots__ = ()

    @staticmethod
    def ids_of(classes: ClassIds[PortInUse], node: NodeInfo) -> list[int]:
        return [classes.add(_encode(port), port)[0] for port in node.used_ports]

    def nodes_where(self, conflicts: Callable[[PortInUse], bool]) -> Mask:
        return self.matching(None, conflicts) > 0
