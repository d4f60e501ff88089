"""PodGroups of which a field is not what the type asks for: kept, with the field and the reason, so that their gangs are told.

A CustomResourceDefinition allows values that are no quantities. Objects of all other kinds are not kept: see client/decoding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import msgspec

from extender.api import (
    codec,
    koordinatorv1alpha1,
    schedulingv1alpha1,
    schedulingv1alpha2,
    schedulingv1alpha3,
    schedulingv1beta1,
    volcanov1beta1,
)

T = TypeVar("T")

MAX_ERROR = 500


_MARKED: Mapping[type[Any], type[Any]] = {
    type_: msgspec.defstruct(
        f"Unreadable{type_.__name__}", [("unreadable", str, "")], bases=(type_,), frozen=True, gc=False
    )
    for type_ in (
        schedulingv1alpha1.PodGroup,
        schedulingv1alpha2.PodGroup,
        schedulingv1beta1.PodGroup,
        schedulingv1alpha3.CompositePodGroup,
        koordinatorv1alpha1.PodGroup,
        volcanov1beta1.PodGroup,
    )
}
"""Each type, and its subclass with `unreadable` set, for objects whose spec cannot be read."""
_PLACE = re.compile(r"(?s:(?P<wrong>.*?))(?: - at `\$(?P<field>[^`]*)`)?")


def decode(raw: bytes, type_: type[T]) -> T:
    """Likewise codec.decode; a PodGroup without a spec that can be read says so in `unreadable`. Raises DecodeError."""
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
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(type_):
        if field.name == "metadata":
            found[field.name] = read(parts.get(field.name, b"null"), field.type)
        elif field.name in ("spec", "status") and parts.get(field.name) not in (None, b"null"):
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
