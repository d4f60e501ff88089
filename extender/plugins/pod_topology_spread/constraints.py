"""Constraints as the plugin reads them: the pod's own, or the defaults with the selector of whatever owns the pod.

kube-scheduler: pkg/scheduler/framework/plugins/podtopologyspread/common.go, pkg/scheduler/framework/plugins/helper/spread.go
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from extender.api import corev1
from extender.api.corev1.toleration import NO_EXECUTE, NO_SCHEDULE
from extender.api.metav1 import LabelSelector, LabelSelectorRequirement
from extender.framework.handle import Handle
from extender.framework.node_selector import required_node_affinity_matches
from extender.framework.pod_info import PodInfo
from extender.framework.selector_errors import SelectorError, label_selector_error

DO_NOT_SCHEDULE = "DoNotSchedule"
SCHEDULE_ANYWAY = "ScheduleAnyway"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

SYSTEM_DEFAULTS = (
    corev1.TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    corev1.TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)


@dataclass(frozen=True, slots=True)
class Selector:
    """All of the parts; no part at all selects nothing here. Go: labels.Selector, with Nothing and Everything as they count."""

    parts: tuple[LabelSelector, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        return not self.nothing and all(part.empty for part in self.parts)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return not self.nothing and all(part.matches(labels) for part in self.parts)


NOTHING = Selector(nothing=True)


@dataclass(frozen=True, slots=True)
class Constraint:
    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False

    def takes(self, pod: corev1.Pod, node: corev1.Node) -> bool:
        """Whether the node counts for the pod, by the inclusion policies. Go: matchNodeInclusionPolicies."""
        if self.honor_affinity and not required_node_affinity_matches(pod, node):
            return False
        return not self.honor_taints or not any(
            taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not any(t.tolerates(taint) for t in pod.spec.tolerations)
            for taint in node.spec.taints
        )


def parse(pod: corev1.Pod, constraints: Iterable[corev1.TopologySpreadConstraint], when: str) -> list[Constraint]:
    """Those of one kind, DoNotSchedule or ScheduleAnyway. Raises SelectorError for a selector that cannot be read."""
    return [_parse(pod, constraint) for constraint in constraints if constraint.when_unsatisfiable == when]


def _parse(pod: corev1.Pod, constraint: corev1.TopologySpreadConstraint) -> Constraint:
    return Constraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        selector=_selector(pod, constraint),
        min_domains=constraint.min_domains or 1,
        honor_affinity=constraint.node_affinity_policy in (None, "Honor"),
        honor_taints=constraint.node_taints_policy == "Honor",
    )


def _selector(pod: corev1.Pod, constraint: corev1.TopologySpreadConstraint) -> Selector:
    """With the values that the pod itself has for matchLabelKeys. A missing selector stays: nothing."""
    if constraint.label_selector is None:
        return NOTHING
    if unreadable := label_selector_error(constraint.label_selector):
        raise SelectorError(unreadable)
    labels = pod.metadata.labels
    own = tuple(
        LabelSelectorRequirement(key, "In", (labels[key],)) for key in constraint.match_label_keys if key in labels
    )
    parts = (constraint.label_selector, LabelSelector(match_expressions=own)) if own else (constraint.label_selector,)
    return Selector(parts)


def defaults(
    pod: corev1.Pod, constraints: Iterable[corev1.TopologySpreadConstraint], when: str, handle: Handle
) -> list[Constraint]:
    """The scheduler's own constraints; none for a pod that no service and no controller selects."""
    wanted = [constraint for constraint in constraints if constraint.when_unsatisfiable == when]
    if not wanted:
        return []
    selector = default_selector(pod, handle)
    if selector.empty:
        return []
    return [
        Constraint(
            max_skew=c.max_skew,
            topology_key=c.topology_key,
            selector=selector,
            min_domains=c.min_domains or 1,
            honor_affinity=c.node_affinity_policy in (None, "Honor"),
            honor_taints=c.node_taints_policy == "Honor",
        )
        for c in wanted
    ]


def default_selector(pod: corev1.Pod, handle: Handle) -> Selector:
    """The selectors of the services that select the pod, and of its controller, all together. Go: DefaultSelector."""
    parts: list[LabelSelector] = []
    services = cast("Iterable[corev1.Service]", handle.lister(corev1.Service).by_namespace(pod.namespace))
    merged: dict[str, str] = {}
    for service in services:
        selector = service.spec.selector
        if selector and all(pod.labels.get(key) == value for key, value in selector.items()):
            merged.update(selector)
    if merged:
        parts.append(LabelSelector(match_labels=merged))
    owner = pod.metadata.controller
    if owner is not None:
        key = f"{pod.namespace}/{owner.name}"
        controller = _controller_selector(owner.kind, owner.api_version, key, handle)
        if controller is not None:
            parts.append(controller)
    return Selector(tuple(parts))


def _controller_selector(kind: str, api_version: str, key: str, handle: Handle) -> LabelSelector | None:
    match kind, api_version:
        case "ReplicationController", "v1":
            found = cast("corev1.ReplicationController | None", handle.lister(corev1.ReplicationController).get(key))
            return LabelSelector(match_labels=found.spec.selector or {}) if found is not None else None
        case "ReplicaSet", "apps/v1":
            replica_set = cast("corev1.ReplicaSet | None", handle.lister(corev1.ReplicaSet).get(key))
            return replica_set.spec.selector if replica_set is not None else None
        case "StatefulSet", "apps/v1":
            stateful_set = cast("corev1.StatefulSet | None", handle.lister(corev1.StatefulSet).get(key))
            return stateful_set.spec.selector if stateful_set is not None else None
    return None


def has_all_keys(labels: Mapping[str, str], constraints: Sequence[Constraint]) -> bool:
    return all(constraint.topology_key in labels for constraint in constraints)


def count_matching(pods: Iterable[PodInfo], selector: Selector, namespace: str) -> int:
    """Pods of the namespace that are not going; an empty selector counts none. Go: countPodsMatchSelector."""
    if selector.empty or selector.nothing:
        return 0
    return sum(
        1
        for info in pods
        if info.pod.metadata.namespace == namespace
        and info.pod.metadata.deletion_timestamp is None
        and selector.matches(info.pod.metadata.labels)
    )
