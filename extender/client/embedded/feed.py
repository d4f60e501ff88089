"""Brings the embedded API's changes to informers on the caller's own thread, in the order in which they happened.

In place of watches, for a run that has to come out the same each time: nothing is seen before `pump` is called.
kube-scheduler: k8s.io/client-go/tools/cache (the reflector and the informers' queues)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from extender.client.embedded.api import EmbeddedAPI
from extender.client.embedded.history import Change
from extender.client.embedded.selectors import field_selector
from extender.client.informer import Informer, InformerFactory
from extender.client.interface import NODES, PODS, EventType, ResourceType
from extender.client.unreadable import convert

Seen = Callable[[ResourceType[Any], Any, Any], None]
"""(kind, old, new) of each change that was brought."""

_EVERYTHING = 10**9
_LATER = datetime.max.replace(tzinfo=UTC)


class Feed:
    """The informers' threads must not run. Not thread-safe."""

    def __init__(self, api: EmbeddedAPI, informers: InformerFactory, seen: Seen) -> None:
        self._api = api
        self._seen = seen
        self._targets = {str(each.resource): _Target(each) for each in informers.all()}
        self._version = 0

    def start(self) -> None:
        """What is there by now: nodes and pods last, pods in the order of their age and then of their creation here."""
        last = {str(NODES): 1, str(PODS): 2}
        for name, target in sorted(self._targets.items(), key=lambda item: (last.get(item[0], 0), item[0])):
            page = self._api.list_page(
                target.informer.resource, field_selector=target.informer.field_selector, limit=_EVERYTHING
            )
            for obj in sorted(page.items, key=_age):
                target.informer.store.put(obj)
                target.informer.changed(None, obj)
            target.informer.replaced()
            self._version = int(page.resource_version)

    def pump(self) -> int:
        """How many changes there were, those of kinds without a watch included."""
        changes: Sequence[Change] = self._api.changes(self._version)
        for change in changes:
            self._version = change.version
            target = self._targets.get(change.resource)
            if target is not None:
                self._bring(target, change)
        return len(changes)

    def _bring(self, target: _Target, change: Change) -> None:
        informer = target.informer
        if change.type is EventType.DELETED or not target.selects(change.object):
            obj = _value(target, change)
            old = informer.store.remove(obj.metadata.key)
            if old is not None:
                informer.changed(obj, None)
                self._seen(informer.resource, old, None)
            return
        new = _value(target, change)
        old = informer.store.put(new)
        informer.changed(old, new)
        self._seen(informer.resource, old, new)


class _Target:
    def __init__(self, informer: Informer[Any]) -> None:
        self.informer = informer
        self.selects = field_selector(informer.field_selector, "")


def _value(target: _Target, change: Change) -> Any:
    return change.value if change.value is not None else convert(change.object, target.informer.resource.type)


def _age(obj: Any) -> tuple[datetime, int]:
    meta = obj.metadata
    return meta.creation_timestamp or _LATER, int(meta.resource_version or 0)
