"""Objects that our structs cannot hold: each counts as absent, and keeps no other from being seen.

A list is read whole, and item by item only where that fails; a watch takes such an event for a deletion. A user who may create
objects of a kind that we watch could else keep us from ever seeing all others: a list that cannot be read is asked for again.
A PodGroup is not absent: its gang is told what is wrong with it.
Kubernetes: the Go types are those of the API server, so that client-go knows no such objects
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from extender import metrics
from extender.api import codec, schedulingv1alpha1, schedulingv1alpha2
from extender.api.metav1 import ListMeta, ObjectMeta

log = logging.getLogger(__name__)

T = TypeVar("T")

MAX_ERROR = 500


_MARKED: Mapping[type[Any], type[Any]] = {
    schedulingv1alpha1.PodGroup: schedulingv1alpha1.UnreadablePodGroup,
    schedulingv1alpha2.PodGroup: schedulingv1alpha2.UnreadablePodGroup,
}
_PLACE = re.compile(r"(?s:(?P<wrong>.*?))(?: - at `\$(?P<field>[^`]*)`)?")


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


def decode(raw: bytes, type_: type[T]) -> T:
    """Likewise codec.decode; a PodGroup without a spec that can be read is an UnreadablePodGroup. Raises DecodeError."""
    try:
        return codec.decode(raw, type_)
    except codec.DecodeError:
        if type_ not in _MARKED:
            raise
        parts = {name: bytes(part) for name, part in codec.decode(raw, dict[str, msgspec.Raw]).items()}
        return cast(T, _marked(_MARKED[type_], parts, codec.decode))


def convert(value: Any, type_: type[T]) -> T:
    """Likewise, of a value that is parsed already."""
    try:
        return codec.convert(value, type_)
    except codec.DecodeError:
        if type_ not in _MARKED or not isinstance(value, dict):
            raise
        return cast(T, _marked(_MARKED[type_], value, codec.convert))


def _marked(type_: type[Any], parts: Mapping[str, Any], read: Callable[[Any, Any], Any]) -> Any:
    """What of its parts can be read: the metadata has to be, what is wrong with a status is not its owner's matter."""
    found: dict[str, Any] = {"metadata": read(parts.get("metadata", b"null"), ObjectMeta)}
    for field in msgspec.structs.fields(type_):
        if field.name in ("spec", "status") and parts.get(field.name) not in (None, b"null"):
            try:
                found[field.name] = read(parts[field.name], field.type)
            except codec.DecodeError as error:
                if field.name == "spec":
                    found["unreadable"] = _placed(field.name, str(error))
    return type_(**found)


def _placed(part: str, error: str) -> str:
    """The field first, as the API server has it, and short."""
    found = _PLACE.fullmatch(error[:MAX_ERROR])
    field, wrong = (found["field"] or "", found["wrong"]) if found is not None else ("", error[:MAX_ERROR])
    return f"{part}{field}: Invalid value: {wrong}"


def readable(body: bytes, type_: type[T]) -> tuple[list[T], ListMeta]:
    """What of a list can be read. Raises DecodeError where it is no list."""
    answer = codec.decode(body, _RawList)
    found: list[T] = []
    for raw in answer.items or ():
        try:
            found.append(decode(bytes(raw), type_))
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
