"""When a pod refused for its spread is worth another try: the counts of a domain, or the domains themselves, have changed.

PodTopologySpread registers these, bound to the constraints that hold for the refused pod.
kube-scheduler: pkg/scheduler/framework/plugins/podtopologyspread/plugin.go (isSchedulableAfter...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from extender.api import corev1
from extender.framework.events import NODE, POD, ActionType
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, QueueingHint
from extender.plugins.hints import QUEUE, QUEUE_SKIP, pair, placed
from extender.plugins.pod_topology_spread.constraints import Constraint, has_all_keys

POD_CHANGES = ActionType.ADD | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION | ActionType.DELETE
NODE_CHANGES = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT


@dataclass(frozen=True, slots=True)
class SpreadHints:
    """constraints_of: the hard constraints of a pod, its own or the defaults."""

    constraints_of: Callable[[corev1.Pod], Sequence[Constraint]]

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(ClusterEvent(POD, POD_CHANGES), self.after_pod_change),
            ClusterEventWithHint(ClusterEvent(NODE, NODE_CHANGES), self.after_node_change),
        ]

    def after_pod_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        before, after = pair(corev1.Pod, old, new)
        if any(other is not None and not _involved(other, pod) for other in (before, after)):
            return QUEUE_SKIP
        constraints = self.constraints_of(pod)
        if before is not None and after is not None:
            return QUEUE if _update_counts(pod, before, after, constraints) else QUEUE_SKIP
        other = after or before
        return QUEUE if other is not None and _selected(constraints, other.labels) else QUEUE_SKIP

    def after_node_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A node without all of the topology keys is in no domain."""
        before, after = pair(corev1.Node, old, new)
        constraints = self.constraints_of(pod)
        was = before is not None and has_all_keys(before.labels, constraints)
        is_ = after is not None and has_all_keys(after.labels, constraints)
        if before is None or after is None:
            return QUEUE if was or is_ else QUEUE_SKIP
        if was != is_:
            return QUEUE
        moved = any(before.labels.get(c.topology_key) != after.labels.get(c.topology_key) for c in constraints)
        return QUEUE if is_ and (moved or before.spec.taints != after.spec.taints) else QUEUE_SKIP


def _involved(other: corev1.Pod, pod: corev1.Pod) -> bool:
    return other.uid == pod.uid or (placed(other) and other.namespace == pod.namespace)


def _update_counts(pod: corev1.Pod, before: corev1.Pod, after: corev1.Pod, constraints: Sequence[Constraint]) -> bool:
    """The refused pod tolerates more where taints count, or labels changed sides of a selector."""
    if (
        after.uid == pod.uid
        and before.spec.tolerations != after.spec.tolerations
        and any(constraint.honor_taints for constraint in constraints)
    ):
        return True
    if before.labels == after.labels:
        return False
    return any(c.selector.matches(before.labels) != c.selector.matches(after.labels) for c in constraints)


def _selected(constraints: Sequence[Constraint], labels: Mapping[str, str]) -> bool:
    return any(constraint.selector.matches(labels) for constraint in constraints)
