"""Node selectors against nodes: nodeSelector and the terms of node affinity.

NodeAffinity, PodTopologySpread and the volume plugins match by it.
Kubernetes: k8s.io/component-helpers/scheduling/corev1/nodeaffinity
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from extender.api import corev1
from extender.framework.selector_errors import expression_is_readable, int64

METADATA_NAME = "metadata.name"


def requirement_matches(requirement: corev1.NodeSelectorRequirement, values: Mapping[str, str]) -> bool:
    """One requirement against labels; one that cannot be read matches nothing."""
    if not expression_is_readable(requirement):
        return False
    key, wanted = requirement.key, requirement.values
    match requirement.operator:
        case "In":
            return key in values and values[key] in wanted
        case "NotIn":
            return key not in values or values[key] not in wanted
        case "Exists":
            return key in values
        case "DoesNotExist":
            return key not in values
        case "Gt" | "Lt":
            have, bound = int64(values[key]) if key in values else None, int64(wanted[0])
            if have is None or bound is None:
                return False
            return have > bound if requirement.operator == "Gt" else have < bound
    return False


def term_matches(term: corev1.NodeSelectorTerm, node: corev1.Node) -> bool:
    """All expressions and fields; an empty term matches nothing."""
    if not term.match_expressions and not term.match_fields:
        return False
    labels = node.metadata.labels
    return all(requirement_matches(r, labels) for r in term.match_expressions) and all(
        field_matches(r, node) for r in term.match_fields
    )


def field_matches(requirement: corev1.NodeSelectorRequirement, node: corev1.Node) -> bool:
    """metadata.name is the only field that has a value, In and NotIn with one value the only ways to ask for it."""
    if len(requirement.values) != 1:
        return False
    have = node.metadata.name if requirement.key == METADATA_NAME else ""
    match requirement.operator:
        case "In":
            return requirement.values[0] == have
        case "NotIn":
            return requirement.values[0] != have
    return False


def selector_matches(terms: Iterable[corev1.NodeSelectorTerm], node: corev1.Node) -> bool:
    """Any of the terms."""
    return any(term_matches(term, node) for term in terms)


def required_node_affinity_matches(pod: corev1.Pod, node: corev1.Node) -> bool:
    """nodeSelector and required node affinity. Go: RequiredNodeAffinity.Match."""
    if pod.spec.node_selector:
        labels = node.metadata.labels
        if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
            return False
    affinity = pod.spec.affinity
    if affinity is None or affinity.node_affinity is None:
        return True
    required = affinity.node_affinity.required_during_scheduling_ignored_during_execution
    return required is None or selector_matches(required.node_selector_terms, node)
