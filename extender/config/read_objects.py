"""The pieces of pods that stand in plugin arguments: a node affinity, default spread constraints.

Read strictly, as the rest of the file, and checked as the API server would.
Kubernetes: k8s.io/component-helpers/scheduling/corev1/nodeaffinity
"""

from __future__ import annotations

from extender.api import corev1
from extender.config.section import MAX_INT32, Section
from extender.config.validation import node_selector_requirement, qualified_name

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def read_node_affinity(section: Section) -> corev1.NodeAffinity:
    required = None
    if REQUIRED in section:
        selector = section.section(REQUIRED)
        required = corev1.NodeSelector(tuple(_term(term) for term in selector.sections("nodeSelectorTerms")))
        selector.finish()
    preferred = None
    if PREFERRED in section:
        preferred = tuple(_preferred(entry) for entry in section.sections(PREFERRED))
    section.finish()
    return corev1.NodeAffinity(required, preferred)


def _preferred(section: Section) -> corev1.PreferredSchedulingTerm:
    """One without weight counts for nothing, and is not looked at closely."""
    weight = section.integer("weight", 0)
    preference = section.section("preference")
    if weight == 0:
        preference = Section(section.plain("preference"), preference.path, [])
    term = corev1.PreferredSchedulingTerm(weight, _term(preference))
    section.finish()
    return term


def _term(section: Section) -> corev1.NodeSelectorTerm:
    term = corev1.NodeSelectorTerm(
        tuple(_expression(entry) for entry in section.sections("matchExpressions")),
        tuple(_field(entry) for entry in section.sections("matchFields")),
    )
    section.finish()
    return term


def _expression(section: Section) -> corev1.NodeSelectorRequirement:
    key = section.text("key")
    operator = section.choice("operator", OPERATORS, "")
    values = section.texts("values")
    if wrong := qualified_name(key):
        section.invalid("key", key, wrong)
    for below, value, wrong in node_selector_requirement(key, operator, values) if operator else ():
        section.invalid(f"values{below}", value, wrong)
    section.finish()
    return corev1.NodeSelectorRequirement(key, operator, values)


def _field(section: Section) -> corev1.NodeSelectorRequirement:
    key = section.text("key")
    operator = section.choice("operator", FIELD_OPERATORS, "")
    values = section.texts("values")
    if operator and len(values) != 1:
        section.invalid("values", list(values), "must have one element")
    section.finish()
    return corev1.NodeSelectorRequirement(key, operator, values)


def read_topology_spread_constraint(section: Section) -> corev1.TopologySpreadConstraint:
    """A default constraint: its selector comes from the pod's owner, so that it must not name one."""
    max_skew = section.integer("maxSkew", 0, low=1, why="not in valid range (0, inf)")
    if "maxSkew" not in section:
        section.invalid("maxSkew", 0, "not in valid range (0, inf)")
    topology_key = section.text("topologyKey")
    if not topology_key:
        section.required("topologyKey", "can not be empty")
    elif wrong := qualified_name(topology_key):
        section.invalid("topologyKey", topology_key, wrong)
    when = section.text("whenUnsatisfiable")
    if not when:
        section.required("whenUnsatisfiable", "can not be empty")
    elif when not in ACTIONS:
        section.unsupported("whenUnsatisfiable", when, ACTIONS)
    if section.plain("labelSelector") is not None:
        section.wrong("labelSelector", "Forbidden: constraint must not define a selector, as they deduced for each pod")
    constraint = corev1.TopologySpreadConstraint(
        max_skew=max_skew,
        topology_key=topology_key,
        when_unsatisfiable=when,
        min_domains=section.integer("minDomains", 0, low=-MAX_INT32) or None,
        node_affinity_policy=section.text("nodeAffinityPolicy") or None,
        node_taints_policy=section.text("nodeTaintsPolicy") or None,
        match_label_keys=section.texts("matchLabelKeys"),
    )
    section.finish()
    return constraint
