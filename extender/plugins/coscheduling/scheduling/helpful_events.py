"""Which events of pods and nodes can help a gang that waits for room: all others touch no verdict and wake no gang.

GroupEvents and Preemption ask. kube-scheduler: events.go (NodeSchedulingPropertiesChange, PodSchedulingPropertiesChange), and the
queueing hints of its plugins
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.api import corev1
from extender.api.quantity import Quantity
from extender.framework.events import scaled_down


def frees_room(old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
    """Whether a node has more room after this: a pod there has gone, has ended, or asks for less than before."""
    if old is None or not old.node_name or old.terminal:
        return False
    return new is None or new.terminal or scaled_down(old, new)


def node_may_help(old: corev1.Node | None, new: corev1.Node | None) -> bool:
    """Whether a node came, or has changed so that a pod may fit on it now that did not: not by a cordon, a taint more or less to
    give. kube-scheduler leaves that to the hints of NodeUnschedulable, TaintToleration and NodeResourcesFit."""
    if old is None or new is None:
        return new is not None
    return (
        (old.spec.unschedulable and not new.spec.unschedulable)
        or any(taint not in new.spec.taints for taint in old.spec.taints)
        or _grew(old.status.allocatable, new.status.allocatable)
        or old.metadata.labels != new.metadata.labels
        or (old.not_ready and not new.not_ready)
        or bool(set(new.status.declared_features) - set(old.status.declared_features))
    )


def _grew(old: Mapping[str, Quantity], new: Mapping[str, Quantity]) -> bool:
    """Whether there is more of any resource."""
    return any(
        name not in old or (amount.value, amount.milli_value) > (old[name].value, old[name].milli_value)
        for name, amount in new.items()
    )
