"""What happens to pods and nodes, in kube-scheduler's words, and which of it may help any pod that waits for room.

GroupEvents notes it, GangHints asks which gangs it helps; Preemption asks as well. kube-scheduler: pkg/scheduler/framework/events.go
(NodeSchedulingPropertiesChange, PodSchedulingPropertiesChange), pkg/scheduler/eventhandlers.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from extender.api import corev1
from extender.api.quantity import Quantity
from extender.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    NODE_ADD,
    NODE_DELETE,
    ActionType,
    node_scheduling_properties_change,
    pod_scheduling_properties_change,
    scaled_down,
)
from extender.framework.interface import ClusterEvent

MATTERS = ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_SCALE_DOWN  # of what changes in a pod on its node


@dataclass(frozen=True, slots=True)
class Happened:
    """events: in kube-scheduler's words. old: None before the object was there; new: None after its end.

    may_help: whether it could help a pod of which nothing is known.
    """

    events: Sequence[ClusterEvent]
    old: corev1.Pod | corev1.Node | None
    new: corev1.Pod | corev1.Node | None
    may_help: bool


def of_pod(old: corev1.Pod | None, new: corev1.Pod | None) -> Happened | None:
    """None for what concerns no other pod: one that waits, the status of one that runs. A pod that has ended is gone, and one that is
    being deleted counts for no spread constraint any more."""
    was = old if old is not None and old.node_name and not old.terminal else None
    is_ = new if new is not None and new.node_name and not new.terminal else None
    if was is None and is_ is None:
        return None
    if was is None:
        return Happened((ASSIGNED_POD_ADD,), None, is_, may_help=False)
    if is_ is None:
        return Happened((ASSIGNED_POD_DELETE,), was, None, may_help=True)
    events = [event for event in pod_scheduling_properties_change(was, is_) if event.action & MATTERS]
    if is_.deleting and not was.deleting:
        events.append(ASSIGNED_POD_DELETE)
    return Happened(events, was, is_, may_help=frees_room(was, is_)) if events else None


def of_node(old: corev1.Node | None, new: corev1.Node | None) -> Happened | None:
    """None for a heartbeat."""
    if old is None or new is None:
        return Happened((NODE_ADD if old is None else NODE_DELETE,), old, new, may_help=new is not None)
    events = node_scheduling_properties_change(old, new)
    return Happened(events, old, new, may_help=node_may_help(old, new)) if events else None


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
        or grew(old.status.allocatable, new.status.allocatable)
        or old.metadata.labels != new.metadata.labels
        or (old.not_ready and not new.not_ready)
        or bool(set(new.status.declared_features) - set(old.status.declared_features))
    )


def grew(old: Mapping[str, Quantity], new: Mapping[str, Quantity]) -> bool:
    """Whether there is more of any resource."""
    return any(
        name not in old or (amount.value, amount.milli_value) > (old[name].value, old[name].milli_value)
        for name, amount in new.items()
    )


def changed_labels(old: corev1.Node, new: corev1.Node) -> frozenset[str]:
    before, after = old.metadata.labels, new.metadata.labels
    return frozenset(key for key in {*before, *after} if before.get(key) != after.get(key))
