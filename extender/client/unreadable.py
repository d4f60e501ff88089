"""Objects that our structs cannot hold: each counts as absent, and keeps no other from being seen.

A list is read whole, and item by item only where that fails; a watch takes such an event for a deletion. Whoever may create an
object of a kind that we watch could else keep us from ever seeing all others: a list that cannot be read is asked for again.
Kubernetes: the Go types are those of the API server, so that client-go knows no such objects
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from extender import metrics
from extender.api import codec
from extender.api.metav1 import ListMeta

log = logging.getLogger(__name__)

T = TypeVar("T")


class _RawList(Struct, frozen=True):
    metadata: ListMeta
    items: tuple[msgspec.Raw, ...] | None = ()


class _RawObject(Struct, frozen=True):
    metadata: msgspec.Raw


class _Name(Struct, frozen=True, rename="camel"):
    name: str = ""
    namespace: str = ""


class _Named(Struct, frozen=True):
    metadata: _Name = _Name()


def readable(body: bytes, type_: type[T]) -> tuple[list[T], ListMeta]:
    """What of a list can be read. Raises DecodeError where it is no list."""
    answer = codec.decode(body, _RawList)
    found: list[T] = []
    for raw in answer.items or ():
        try:
            found.append(codec.decode(bytes(raw), type_))
        except codec.DecodeError as error:
            tell(bytes(raw), type_, error)
    return found, answer.metadata


def bare(raw: bytes, type_: type[T]) -> T:
    """An object of which the metadata alone is read. Raises DecodeError."""
    metadata = codec.decode(raw, _RawObject).metadata
    return cast(Any, codec.decode(b'{"metadata":' + bytes(metadata) + b"}", type_))  # type: ignore[no-any-return]


def tell(raw: bytes, type_: type[Any], error: Exception) -> None:
    named = _Name()
    with contextlib.suppress(codec.DecodeError):
        named = codec.decode(raw, _Named).metadata
    metrics.unexpected_errors.labels(f"unreadable-{type_.__name__}").inc()
    log.error(
        "object cannot be read, and counts as absent kind=%s namespace=%s name=%s error=%s",
        type_.__name__,
        named.namespace,
        named.name,
        error,
    )
