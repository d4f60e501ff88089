"""Why no node fits, in kube-scheduler's words.

kube-scheduler: pkg/scheduler/framework/types.go (Diagnosis, FitError)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from extender.api import corev1
from extender.framework.interface import NodeToStatus
from extender.framework.status import Status, unresolvable

NO_NODE_AVAILABLE_MESSAGE = "0/{} nodes are available"


def _nothing() -> NodeToStatus:
    return NodeToStatus({}, unresolvable())


@dataclass(slots=True)
class Diagnosis:
    node_to_status: NodeToStatus = field(default_factory=_nothing)
    unschedulable_plugins: set[str] = field(default_factory=set)
    pending_plugins: set[str] = field(default_factory=set)
    pre_filter_message: str = ""
    post_filter_message: str = ""

    def add_plugin_status(self, status: Status) -> None:
        """Notes which plugin refused, for requeueing. Go: Diagnosis.AddPluginStatus."""
        if not status.plugin:
            return
        if status.code.name == "PENDING":
            self.pending_plugins.add(status.plugin)
        if status.rejected:
            self.unschedulable_plugins.add(status.plugin)


class FitError(Exception):
    """No node passed all filters. Its text is what the pod's event and condition say."""

    def __init__(self, pod: corev1.Pod, num_all_nodes: int, diagnosis: Diagnosis) -> None:
        super().__init__(pod.key)
        self.pod = pod
        self.num_all_nodes = num_all_nodes
        self.diagnosis = diagnosis

    def __str__(self) -> str:
        diagnosis = self.diagnosis
        text = NO_NODE_AVAILABLE_MESSAGE.format(self.num_all_nodes) + ":"
        if diagnosis.pre_filter_message:
            text += f" {diagnosis.pre_filter_message}."
        else:
            reasons = self._histogram()
            if reasons:
                text += f" {reasons}."
        if diagnosis.post_filter_message:
            text += f" {diagnosis.post_filter_message}"
        return text

    def _histogram(self) -> str:
        counts: Counter[str] = Counter()
        statuses = self.diagnosis.node_to_status
        for status in statuses.statuses.values():
            counts.update(status.reasons)
        absent = self.num_all_nodes - len(statuses.statuses)
        if absent > 0:
            for reason in statuses.absent.reasons:
                counts[reason] += absent
        return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
