"""Whether a change wakes a pod that a plugin refused: registration, mask and hint together, as the queue asks them.

Unlike the queue, a hint that fails is no yes here.
"""

from __future__ import annotations

from typing import Any

from extender.api import corev1
from extender.backend.queue.queueing_hints import build_hints
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.interface import ClusterEvent, Plugin, QueueingHint


def wakes(plugin: Plugin, pod: corev1.Pod, old: Any, new: Any) -> bool:
    """old None: a creation; new None: a deletion. The events are those that the handlers make of it."""
    return any(
        row.hint is None or row.hint(pod, old, new) is QueueingHint.QUEUE
        for row in build_hints([plugin])
        for event in happened(old, new)
        if events.matches(row.event, event)
    )


def happened(old: Any, new: Any) -> list[ClusterEvent]:
    obj = old if new is None else new
    if old is not None and new is not None:
        if isinstance(obj, corev1.Pod):
            return list(events.pod_scheduling_properties_change(old, new))
        if isinstance(obj, corev1.Node):
            return list(events.node_scheduling_properties_change(old, new))
        return [ClusterEvent(_resource(obj), ActionType.UPDATE)]
    return [ClusterEvent(_resource(obj), ActionType.ADD if old is None else ActionType.DELETE)]


def _resource(obj: Any) -> str:
    if isinstance(obj, corev1.Pod):
        return events.ASSIGNED_POD if obj.node_name or obj.status.nominated_node_name else events.UNSCHEDULABLE_POD
    return events.NODE if isinstance(obj, corev1.Node) else events.POD_GROUP
