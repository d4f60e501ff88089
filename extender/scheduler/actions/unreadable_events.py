"""Warning events about objects that cannot be read: their owner hears which field it is, and that the object is not seen.

Background ticks it. Each fault is told once, a hundred at a time, with a turn for each namespace. PodGroups are not among them:
what is wrong with one stands in its condition. kube-scheduler knows no such objects: it has the Go types of the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from extender.api import corev1
from extender.client.fair_queue import FairQueue
from extender.client.informer import Informer
from extender.client.interface import EventRecorder, ResourceType, Unreadable

REASON = "CannotBeRead"
ACTION = "Decoding"
MOST_AT_A_TIME = 100
NOTE = (
    "gang-extender cannot read this {kind}, and goes by the last version that it could read, or else by none: {error}"
)

_Fault = tuple[str, str]  # the object's UID, and what is wrong


class UnreadableEvents:
    """For one thread."""

    def __init__(
        self, informers: Callable[[], Iterable[Informer[object]]], events: EventRecorder, leads: Callable[[], bool]
    ) -> None:
        self._informers = informers
        self._events = events
        self._leads = leads
        self._told: dict[tuple[ResourceType[object], str], _Fault] = {}  # of objects that are there and cannot be read

    def tick(self) -> None:
        """About once a second."""
        if not self._leads():
            return
        there = {(resource, obj.metadata.key): obj for resource, obj in self._unreadable()}
        self._told = {key: fault for key, fault in self._told.items() if key in there}
        waiting: FairQueue[tuple[ResourceType[object], Unreadable]] = FairQueue()
        for key, obj in there.items():
            if self._told.get(key) != _fault(obj):
                waiting.put(obj.metadata.namespace, (key[0], obj))
        for _ in range(min(MOST_AT_A_TIME, len(waiting))):
            self._tell(*waiting.take())

    def _unreadable(self) -> Iterator[tuple[ResourceType[object], Unreadable]]:
        """Of which the metadata could be read."""
        for informer in self._informers():
            for obj in informer.unreadable:
                if obj.metadata.name and obj.metadata.uid:
                    yield informer.resource, obj

    def _tell(self, resource: ResourceType[object], obj: Unreadable) -> None:
        of = obj.metadata
        self._told[resource, of.key] = _fault(obj)
        regarding = corev1.ObjectReference(resource.kind, resource.api_version, of.namespace, of.name, of.uid)
        self._events.event(regarding, "Warning", REASON, ACTION, NOTE.format(kind=resource.kind, error=obj.error))


def _fault(obj: Unreadable) -> _Fault:
    return obj.metadata.uid, obj.error
