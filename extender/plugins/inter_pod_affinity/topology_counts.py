"""How many terms meet on each (topology key, value): what filtering looks up for a node.

kube-scheduler: pkg/scheduler/framework/plugins/interpodaffinity/filtering.go (preFilterState, topologyToMatchedTermCount)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from extender.api import corev1
from extender.framework.columnar import IntColumn, NodeTable
from extender.framework.pod_info import AffinityTerm, PodInfo

Pair = tuple[str, str]
Counts = dict[Pair, int]
ByKey = dict[str, IntColumn]
"""Topology key -> by value of the label: how many."""


def add(counts: Counts, key: str, labels: Mapping[str, str], amount: int) -> None:
    """A node without the key is in no domain; what comes to zero is gone."""
    value = labels.get(key)
    if value is None:
        return
    pair = (key, value)
    total = counts.get(pair, 0) + amount
    if total:
        counts[pair] = total
    else:
        counts.pop(pair, None)


def matches_all(terms: Sequence[AffinityTerm], pod: corev1.Pod) -> bool:
    """Whether the pod meets every one of the incoming pod's terms; their namespaces are merged already."""
    return bool(terms) and all(term.matches(pod, {}) for term in terms)


@dataclass(frozen=True, slots=True, eq=False)
class TopologyColumns:
    """What TopologyCounts says, for one table."""

    table: NodeTable
    existing_anti: ByKey
    affinity: ByKey
    anti: ByKey


@dataclass(slots=True)
class TopologyCounts:
    """existing_anti: required anti terms of existing pods that the incoming pod meets. affinity, anti: the incoming
    pod's own required terms, met by existing pods. Cloned for each dry run. columns: the same for all nodes of a table,
    as long as nothing has changed."""

    pod: corev1.Pod
    namespace_labels: Mapping[str, str]
    affinity_terms: tuple[AffinityTerm, ...]
    anti_terms: tuple[AffinityTerm, ...]
    existing_anti: Counts = field(default_factory=dict)
    affinity: Counts = field(default_factory=dict)
    anti: Counts = field(default_factory=dict)
    columns: TopologyColumns | None = None

    def clone(self) -> Self:
        return type(self)(
            self.pod,
            self.namespace_labels,
            self.affinity_terms,
            self.anti_terms,
            dict(self.existing_anti),
            dict(self.affinity),
            dict(self.anti),
        )

    def count_existing_anti(self, existing: PodInfo, labels: Mapping[str, str], amount: int) -> None:
        for term in existing.required_anti_affinity_terms:
            if term.matches(self.pod, self.namespace_labels):
                add(self.existing_anti, term.topology_key, labels, amount)

    def count_own(self, existing: corev1.Pod, labels: Mapping[str, str], amount: int) -> None:
        if matches_all(self.affinity_terms, existing):
            for term in self.affinity_terms:
                add(self.affinity, term.topology_key, labels, amount)
        for term in self.anti_terms:
            if term.matches(existing, {}):
                add(self.anti, term.topology_key, labels, amount)

    def update(self, existing: PodInfo, labels: Mapping[str, str], amount: int) -> None:
        """A pod that comes to, or goes from, a node of these labels."""
        self.columns = None
        self.count_existing_anti(existing, labels, amount)
        self.count_own(existing.pod, labels, amount)


def merged(terms: Iterable[AffinityTerm], namespaces_of: NamespacesOf) -> tuple[AffinityTerm, ...]:
    """The incoming pod's terms with the namespaces that their selector finds named. The selector stays in force and is
    asked again with no labels, as kube-scheduler does: one with NotIn finds pods of namespaces that it excludes."""
    result = []
    for term in terms:
        if term.namespace_selector is not None:
            found = namespaces_of(term)
            term = AffinityTerm(term.namespaces | found, term.selector, term.topology_key, term.namespace_selector)
        result.append(term)
    return tuple(result)


class NamespacesOf:
    """Names of the namespaces whose labels a term's namespaceSelector selects."""

    def __init__(self, namespaces: Iterable[corev1.Namespace]) -> None:
        self._namespaces = tuple(namespaces)

    def __call__(self, term: AffinityTerm) -> frozenset[str]:
        selector = term.namespace_selector
        if selector is None:
            return frozenset()
        return frozenset(n.metadata.name for n in self._namespaces if selector.matches(n.metadata.labels))
