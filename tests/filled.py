"""An object of any struct type with every field filled, and the places in it: for tests of what a field may hold.

Used by the tests of nulls and by tests/parity/test_fields.py. A place is the keys that lead to a field, `*` for the one
element of a list or map.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

Place = tuple[str, ...]
ELEMENT = "*"
KEY = "key"

_SCALARS: dict[type[inspect.Type], Any] = {
    inspect.StrType: "text",
    inspect.IntType: 1,
    inspect.BoolType: True,
    inspect.DateTimeType: "2026-01-01T00:00:00Z",
    inspect.CustomType: "1",  # a quantity
}


def filled(type_: type[Any]) -> dict[str, Any]:
    """In JSON spelling; lists and maps have one element."""
    value: dict[str, Any] = _value(inspect.type_info(type_))
    return value


def _value(of: inspect.Type) -> Any:
    of = not_null(of)
    if isinstance(of, inspect.StructType):
        return {field.encode_name: _value(field.type) for field in of.fields}
    if isinstance(of, inspect.VarTupleType | inspect.ListType):
        return [_value(of.item_type)]
    if isinstance(of, inspect.DictType):
        return {KEY: _value(of.value_type)}
    return _SCALARS[type(of)]


def not_null(of: inspect.Type) -> inspect.Type:
    """Of `X | None`: X."""
    if isinstance(of, inspect.UnionType):
        return next(each for each in of.types if not isinstance(each, inspect.NoneType))
    return of


def fields(type_: type[Any]) -> Iterator[tuple[Place, inspect.Field]]:
    """Every field of every struct in it, the outer ones first."""
    yield from _fields(inspect.type_info(type_), ())


def _fields(of: inspect.Type, place: Place) -> Iterator[tuple[Place, inspect.Field]]:
    of = not_null(of)
    if isinstance(of, inspect.StructType):
        for field in of.fields:
            here = (*place, field.encode_name)
            yield here, field
            yield from _fields(field.type, here)
    elif isinstance(of, inspect.VarTupleType | inspect.ListType):
        yield from _fields(of.item_type, (*place, ELEMENT))
    elif isinstance(of, inspect.DictType):
        yield from _fields(of.value_type, (*place, ELEMENT))


def with_null(value: dict[str, Any], place: Place) -> dict[str, Any]:
    """A copy with null in that place."""
    changed = copy.deepcopy(value)
    _around(changed, place)[place[-1]] = None
    return changed


def without(value: dict[str, Any], place: Place) -> dict[str, Any]:
    """A copy without that field."""
    changed = copy.deepcopy(value)
    del _around(changed, place)[place[-1]]
    return changed


def _around(value: Any, place: Place) -> Any:
    for key in place[:-1]:
        if key == ELEMENT:
            key = KEY if isinstance(value, dict) else 0  # type: ignore[assignment]
        value = value[key]
    return value
