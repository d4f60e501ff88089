"""A pod with what the plugins would otherwise compute again for every node: its affinity terms, requests and host ports.

kube-scheduler: k8s.io/kube-scheduler/framework/types.go (PodInfo, AffinityTerm)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from extender.api import corev1
from extender.api.metav1 import LabelSelector
from extender.framework.aggregate import aggregate
from extender.framework.resource import Resource
from extender.framework.selector_errors import label_selector_error
from extender.framework.shared_requests import Requested, requested_by


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """One pod affinity term; a selector of None matches nothing, an empty one everything."""

    namespaces: frozenset[str]
    selector: LabelSelector | None
    topology_key: str
    namespace_selector: LabelSelector | None

    def matches(self, pod: corev1.Pod, namespace_labels: Mapping[str, str]) -> bool:
        """Go: AffinityTerm.Matches. namespace_labels are those of the pod's namespace, or {} where they were merged already."""
        if pod.metadata.namespace in self.namespaces or (
            self.namespace_selector is not None and self.namespace_selector.matches(namespace_labels)
        ):
            return self.selector is not None and self.selector.matches(pod.metadata.labels)
        return False


@dataclass(frozen=True, slots=True)
class WeightedAffinityTerm:
    term: AffinityTerm
    weight: int


def _term(pod: corev1.Pod, term: corev1.PodAffinityTerm) -> AffinityTerm:
    if term.namespaces or term.namespace_selector is not None:
        namespaces = frozenset(term.namespaces)
    else:
        namespaces = frozenset((pod.metadata.namespace,))
    return AffinityTerm(namespaces, term.label_selector, term.topology_key, term.namespace_selector)


def _unweighted(affinity: corev1.PodAffinity) -> Iterable[corev1.PodAffinityTerm]:
    return (each.pod_affinity_term for each in affinity.preferred_during_scheduling_ignored_during_execution)


def _terms_error(terms: Iterable[corev1.PodAffinityTerm]) -> str:
    """The first thing that is wrong, or ""."""
    errors = (label_selector_error(t.label_selector) or label_selector_error(t.namespace_selector) for t in terms)
    return next(filter(None, errors), "")


def _required(pod: corev1.Pod, affinity: corev1.PodAffinity | None) -> tuple[AffinityTerm, ...]:
    """Of terms of which one cannot be read, none."""
    if affinity is None or _terms_error(affinity.required_during_scheduling_ignored_during_execution):
        return ()
    return tuple(_term(pod, term) for term in affinity.required_during_scheduling_ignored_during_execution)


def _preferred(pod: corev1.Pod, affinity: corev1.PodAffinity | None) -> tuple[WeightedAffinityTerm, ...]:
    """Of terms of which one cannot be read, none."""
    if affinity is None or _terms_error(_unweighted(affinity)):
        return ()
    return tuple(
        WeightedAffinityTerm(_term(pod, weighted.pod_affinity_term), weighted.weight)
        for weighted in affinity.preferred_during_scheduling_ignored_during_execution
    )


def host_ports(pod: corev1.Pod) -> Iterator[corev1.ContainerPort]:
    """The ports that take one of the node's, of containers and sidecars."""
    for container in pod.spec.containers:
        yield from (port for port in container.ports if port.host_port > 0)
    for container in pod.spec.init_containers:
        if container.restartable:
            yield from (port for port in container.ports if port.host_port > 0)


class PodInfo:
    """Computed on first use and kept; the pod is a frozen value, so nothing here goes stale. Compared by identity.

    class_key, affinity_key: what kind of pod it is to the snapshot's pod columns, which set them. Go has no such thing.
    """

    class_key: bytes | None = None
    affinity_key: bytes | None = None

    def __init__(self, pod: corev1.Pod) -> None:
        self.pod = pod

    def __repr__(self) -> str:
        return f"PodInfo({self.pod.key})"

    @cached_property
    def required_affinity_terms(self) -> tuple[AffinityTerm, ...]:
        affinity = self.pod.spec.affinity
        return _required(self.pod, affinity.pod_affinity) if affinity else ()

    @cached_property
    def required_anti_affinity_terms(self) -> tuple[AffinityTerm, ...]:
        affinity = self.pod.spec.affinity
        return _required(self.pod, affinity.pod_anti_affinity) if affinity else ()

    @cached_property
    def preferred_affinity_terms(self) -> tuple[WeightedAffinityTerm, ...]:
        affinity = self.pod.spec.affinity
        return _preferred(self.pod, affinity.pod_affinity) if affinity else ()

    @cached_property
    def preferred_anti_affinity_terms(self) -> tuple[WeightedAffinityTerm, ...]:
        affinity = self.pod.spec.affinity
        return _preferred(self.pod, affinity.pod_anti_affinity) if affinity else ()

    @property
    def affinity_error(self) -> str:
        """What is wrong with its pod affinity terms, or "". Go: the error of NewPodInfo."""
        affinity = self.pod.spec.affinity
        if affinity is None:
            return ""
        kinds = {"Affinity": affinity.pod_affinity, "AntiAffinity": affinity.pod_anti_affinity}
        required = {
            f"required{kind}Terms": _terms_error(terms.required_during_scheduling_ignored_during_execution)
            for kind, terms in kinds.items()
            if terms is not None
        }
        preferred = {
            f"preferred{kind}Terms": _terms_error(_unweighted(terms))
            for kind, terms in kinds.items()
            if terms is not None
        }
        return aggregate(f"{name}: {text}" for name, text in (required | preferred).items() if text)

    @property
    def with_affinity(self) -> bool:
        """The pod has a podAffinity or podAntiAffinity stanza, an empty one too."""
        affinity = self.pod.spec.affinity
        return affinity is not None and (affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None)

    @cached_property
    def _requested(self) -> Requested:
        return requested_by(self.pod)

    @cached_property
    def requests(self) -> Resource:
        """What the node's accounting counts for it: PodRequests with status."""
        return self._requested.accounted

    @cached_property
    def non_zero_requests(self) -> tuple[int, int]:
        """(milliCPU, bytes) with the defaults of 100m and 200Mi where nothing is asked for."""
        return self._requested.non_zero

    @cached_property
    def host_ports(self) -> tuple[corev1.ContainerPort, ...]:
        return tuple(host_ports(self.pod))

    @cached_property
    def claim_keys(self) -> tuple[str, ...]:
        """`namespace/claim` of each volume that names a claim; those of ephemeral volumes are not counted, as in Go."""
        return tuple(
            f"{self.pod.namespace}/{volume.persistent_volume_claim.claim_name}"
            for volume in self.pod.spec.volumes
            if volume.persistent_volume_claim is not None
        )
