"""Volumes, claims, classes and CSI objects: what happens to them may wake pods that were refused for them.

Nothing of it is cached here; plugins read the informers' stores.
kube-scheduler: pkg/scheduler/eventhandlers.go (addAllEventHandlers, buildEvtResHandler)
"""

from __future__ import annotations

from typing import Any

from extender.backend.queue.scheduling_queue import PriorityQueue
from extender.client.informer import InformerFactory
from extender.client.interface import (
    CSI_DRIVERS,
    CSI_NODES,
    CSI_STORAGE_CAPACITIES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
    ResourceType,
)
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.interface import ClusterEvent

STORAGE_RESOURCES: tuple[tuple[ResourceType[Any], str], ...] = (
    (PERSISTENT_VOLUMES, events.PERSISTENT_VOLUME),
    (PERSISTENT_VOLUME_CLAIMS, events.PERSISTENT_VOLUME_CLAIM),
    (STORAGE_CLASSES, events.STORAGE_CLASS),
    (CSI_NODES, events.CSI_NODE),
    (CSI_DRIVERS, events.CSI_DRIVER),
    (CSI_STORAGE_CAPACITIES, events.CSI_STORAGE_CAPACITY),
    (VOLUME_ATTACHMENTS, events.VOLUME_ATTACHMENT),
)


class EventsToQueue:
    """An informer's handler: each change becomes an event of the queue, which asks the hints."""

    def __init__(self, queue: PriorityQueue, resource: str) -> None:
        self._queue = queue
        self._added = ClusterEvent(resource, ActionType.ADD, f"{resource}Add")
        self._updated = ClusterEvent(resource, ActionType.UPDATE, f"{resource}Update")
        self._deleted = ClusterEvent(resource, ActionType.DELETE, f"{resource}Delete")

    def on_add(self, obj: Any) -> None:
        self._queue.move_all_to_active_or_backoff_queue(self._added, None, obj)

    def on_update(self, old: Any, new: Any) -> None:
        self._queue.move_all_to_active_or_backoff_queue(self._updated, old, new)

    def on_delete(self, obj: Any) -> None:
        self._queue.move_all_to_active_or_backoff_queue(self._deleted, obj, None)


def watch_storage(informers: InformerFactory, queue: PriorityQueue) -> None:
    """Before the informers start; kinds that the server does not serve are empty."""
    for resource, event_resource in STORAGE_RESOURCES:
        informers.informer(resource, optional=True).add_handler(EventsToQueue(queue, event_resource))
