"""When a pod that found no room is worth another try: room came free, or a node came or grew that could take it.

NodeResourcesFit registers these. DeviceClasses, from which extended resources may come, are not modelled.
kube-scheduler: pkg/scheduler/framework/plugins/noderesources/fit.go (isSchedulableAfter...)
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import corev1
from extender.framework.events import NODE, POD, ActionType
from extender.framework.interface import ClusterEvent, ClusterEventWithHint, QueueingHint
from extender.framework.pod_requests import Amounts, pod_requests
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, MEMORY, Resource, is_scalar_resource_name
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified, pair, placed


def events_to_register() -> Sequence[ClusterEventWithHint]:
    pods = ClusterEvent(POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
    nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
    return [ClusterEventWithHint(pods, after_pod_event), ClusterEventWithHint(nodes, after_node_change)]


def after_pod_event(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """A placed pod went; or it, or the refused pod itself, asks for less."""
    before, after = pair(corev1.Pod, old, new)
    if after is None:
        return QUEUE if before is not None and placed(before) else QUEUE_SKIP
    if after.uid == pod.uid:
        return QUEUE
    if before is None or not after.spec.node_name:
        return QUEUE_SKIP
    return QUEUE if _frees_what_is_asked_for(pod, before, after) else QUEUE_SKIP


def _frees_what_is_asked_for(pod: corev1.Pod, before: corev1.Pod, after: corev1.Pod) -> bool:
    asked = pod_requests(pod, use_status=True)
    had, has = pod_requests(before, use_status=True), pod_requests(after, use_status=True)
    return any(amount and _accounted(name) and had.get(name, 0) > has.get(name, 0) for name, amount in asked.items())


def _accounted(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource_name(name)


def after_node_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """A node that could take the pod if it were empty, and is new or has more of something that the pod asks for.

    Ignored resources count here all the same, as in kube-scheduler.
    """
    before, after = modified(corev1.Node, old, new)
    asked = pod_requests(pod)
    if not _fits_alone(asked, after):
        return QUEUE_SKIP
    return QUEUE if before is None or _more_of(asked, before, after) else QUEUE_SKIP


def _fits_alone(asked: Amounts, node: corev1.Node) -> bool:
    there = Resource.from_list(node.status.allocatable)
    return there.allowed_pod_number >= 1 and all(
        amount <= there.amount(name) for name, amount in asked.items() if amount > 0 and _accounted(name)
    )


def _more_of(asked: Amounts, before: corev1.Node, after: corev1.Node) -> bool:
    had, has = Resource.from_list(before.status.allocatable), Resource.from_list(after.status.allocatable)
    if has.allowed_pod_number > had.allowed_pod_number:
        return True
    return any(has.amount(name) > had.amount(name) for name, amount in asked.items() if amount > 0 and _accounted(name))
