"""Objects from JSON, one by one: one that our structs cannot hold keeps no other from being seen.

Such an object counts as its last version that could be read; where there was none it counts as absent. A PodGroup is read
all the same: see client/unreadable. Each is named in the log and by an event on it (scheduler/actions/unreadable_events); their number
stands in /readyz?verbose and in a metric. Used by client/connection and watch_stream, the bookkeeping by the reflector.
Kubernetes: the Go types are those of the API server, so that client-go knows no such objects
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Container, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct

from extender.api import codec
from extender.api.metav1 import ListMeta, ObjectMeta
from extender.client.errors import UnreadableError
from extender.client.interface import Unreadable
from extender.client.short_steps import ShortSteps
from extender.client.unreadable import MAX_ERROR, decode

log = logging.getLogger(__name__)

T = TypeVar("T")


class _RawList(Struct, frozen=True):
    metadata: ListMeta
    items: tuple[msgspec.Raw, ...] | None = ()


class _Identified(Struct, frozen=True):
    metadata: dict[str, msgspec.Raw] = {}


def read_list(body: bytes, type_: type[T]) -> tuple[list[T], list[Unreadable], ListMeta]:
    """What of a list can be read, and what cannot. Raises UnreadableError where it is no list."""
    try:
        answer = codec.decode(body, _RawList)
    except codec.DecodeError as error:
        raise UnreadableError(f"the list could not be read: {error}") from error
    found: list[T] = []
    unreadable: list[Unreadable] = []
    steps = ShortSteps()
    for raw in answer.items or ():
        obj = read_object(bytes(raw), type_)
        if isinstance(obj, Unreadable):
            unreadable.append(obj)
        else:
            found.append(obj)
        steps.pause_if_due()
    return found, unreadable, answer.metadata


def read_object(raw: bytes, type_: type[T]) -> T | Unreadable:
    try:
        return decode(raw, type_)
    except codec.DecodeError as error:
        return Unreadable(_identity(raw), str(error)[:MAX_ERROR])


def _identity(raw: bytes) -> ObjectMeta:
    """What of it can be read; empty for the rest."""
    found: dict[str, str] = {}
    with contextlib.suppress(codec.DecodeError):
        metadata = codec.decode(raw, _Identified).metadata
        for field in ("name", "namespace", "uid", "resourceVersion"):
            with contextlib.suppress(codec.DecodeError):
                found[field] = codec.decode(bytes(metadata.get(field, b'""')), str)
    return ObjectMeta(
        name=found.get("name", ""),
        namespace=found.get("namespace", ""),
        uid=found.get("uid", ""),
        resource_version=found.get("resourceVersion", ""),
    )


class UnreadableObjects:
    """Those of one kind that are there now. Changed by the reflector's thread alone, read by any."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._objects: dict[str, Unreadable] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def all(self) -> Sequence[Unreadable]:
        return tuple(self._objects.values())

    def get(self, key: str) -> Unreadable | None:
        return self._objects.get(key)

    def put(self, obj: Unreadable) -> None:
        known = self._objects.get(obj.metadata.key)
        self._objects[obj.metadata.key] = obj
        if known is None or (known.metadata.uid, known.error) != (obj.metadata.uid, obj.error):
            self._report(obj)

    def remove(self, key: str) -> None:
        self._objects.pop(key, None)

    def keep_only(self, keys: Container[str]) -> None:
        for key in [key for key in self._objects if key not in keys]:
            self.remove(key)

    def _report(self, obj: Unreadable) -> None:
        from extender import metrics  # of no use to a command, which decodes objects too

        metrics.unexpected_errors.labels(f"unreadable-{self._kind}").inc()
        log.error(
            "object cannot be read kind=%s namespace=%s name=%s error=%s",
            self._kind,
            obj.metadata.namespace,
            obj.metadata.name,
            obj.error,
        )
