"""Node selectors and node and pod affinity, as written in a pod's spec.

How they match is decided in framework (pod affinity terms) and plugins (node affinity).
"""

from __future__ import annotations

from extender.api.metav1 import Int32, LabelSelector, Object


class NodeSelectorRequirement(Object, frozen=True, gc=False):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Object, frozen=True, gc=False):
    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Object, frozen=True, gc=False):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Object, frozen=True, gc=False):
    weight: Int32
    preference: NodeSelectorTerm


class NodeAffinity(Object, frozen=True, gc=False):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] | None = None


class PodAffinityTerm(Object, frozen=True, gc=False):
    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Object, frozen=True, gc=False):
    weight: Int32
    pod_affinity_term: PodAffinityTerm


class PodAffinity(Object, frozen=True, gc=False):
    """Both podAffinity and podAntiAffinity have this shape."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Object, frozen=True, gc=False):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None
