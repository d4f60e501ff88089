"""JSON bytes and YAML values to structs and back: one decoder per type, with the path in every error.

Everything that comes from outside passes through here once.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from extender.api.quantity import Quantity, parse_quantity

T = TypeVar("T")


class DecodeError(ValueError):
    """The input is not what the type asks for. The text names the field, as in `$.Pod.metadata.name`."""


def _decode_hook(type_: type, raw: Any) -> Any:
    if type_ is Quantity:
        return parse_quantity(raw)
    raise NotImplementedError(f"no decoding for {type_}")


def _encode_hook(value: Any) -> Any:
    if isinstance(value, Quantity):
        return value.text
    raise NotImplementedError(f"no encoding for {type(value)}")


_encoder = msgspec.json.Encoder(enc_hook=_encode_hook)


@lru_cache(maxsize=256)
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_, dec_hook=_decode_hook)


_NOT_OF_THE_TYPE = (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError)


DEEPEST = 200
"""Levels of nesting that are read. The API server takes 10,000, and gives them back in `managedFields` and whatever else it does not know;
what skips them here may go no deeper than Python's own limits, which differ by version."""
_STRING_OR_BRACKET = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)
_OPENING = (b"[", b"{")


def decode(data: bytes, type_: type[T], *, nulls: bool = True) -> T:
    """Parses JSON into `type_`. Raises DecodeError for malformed, truncated or wrongly typed input. No field that is read is DEEPEST levels
    deep; where the input is deeper than Python goes, what is beyond them counts as null.

    A null in a field that may be absent counts as absent: Go writes one for each empty slice, map and time that has no
    `omitempty`. Such input is read a second time, everything else once. Of a key that is there twice the last counts, as a whole;
    Go's decoder would merge two objects, but no API server and no kube-scheduler writes a key twice.
    nulls: False where the caller reads the parts of such input one by one.
    """
    try:
        try:
            value: T = _decoder(type_).decode(data)  # type: ignore[arg-type]
        except RecursionError:
            data = shallow(data)
            value = _decoder(type_).decode(data)  # type: ignore[arg-type]
    except _NOT_OF_THE_TYPE as error:
        if nulls and isinstance(error, msgspec.ValidationError) and b"null" in data:
            return _decode_with_nulls(data, type_)
        raise DecodeError(str(error) or type(error).__name__) from error
    return value


def shallow(data: bytes) -> bytes:
    """The same JSON with null for each value beyond DEEPEST levels; as it is where brackets are missing."""
    pieces: list[bytes] = []
    depth = kept = left_out_from = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        text = token[0]
        if text in _OPENING:
            depth += 1
            if depth == DEEPEST + 1:
                left_out_from = token.start()
        elif text in (b"]", b"}"):
            if depth == DEEPEST + 1:
                pieces += (data[kept:left_out_from], b"null")
                kept = token.end()
            depth -= 1
    return b"".join((*pieces, data[kept:]))


def _decode_with_nulls(data: bytes, type_: type[T]) -> T:
    try:
        plain = _without_null_fields(msgspec.json.decode(data), _type_info(type_))  # type: ignore[arg-type]
    except _NOT_OF_THE_TYPE as error:
        raise DecodeError(str(error) or type(error).__name__) from error
    return convert(plain, type_, nulls=False)


@lru_cache(maxsize=256)
def _type_info(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


def _without_null_fields(value: Any, wanted: inspect.Type) -> Any:
    """A copy with the wanted fields only, without those that are null and may be absent. A null in a list or map stays."""
    if isinstance(wanted, inspect.UnionType):  # of one type and None
        wanted = next(each for each in wanted.types if not isinstance(each, inspect.NoneType))
    if isinstance(value, dict) and isinstance(wanted, inspect.StructType):
        return {
            field.encode_name: _without_null_fields(value[field.encode_name], field.type)
            for field in wanted.fields
            if field.encode_name in value and (field.required or value[field.encode_name] is not None)
        }
    if isinstance(value, dict) and isinstance(wanted, inspect.DictType):
        return {key: _without_null_fields(item, wanted.value_type) for key, item in value.items()}
    if isinstance(value, list) and isinstance(wanted, inspect.VarTupleType | inspect.ListType):
        return [_without_null_fields(item, wanted.item_type) for item in value]
    return value


def convert(value: Any, type_: type[T], *, nulls: bool = True) -> T:
    """The same for a value that is already parsed (YAML, a dict in a test). Nulls are dropped first: to Kubernetes they mean unset.

    nulls: False where it is known that there are none.
    """
    try:
        plain = without_nulls(value) if nulls else value
        return msgspec.convert(plain, type_, dec_hook=_decode_hook, strict=True)
    except (msgspec.ValidationError, RecursionError, OverflowError) as error:
        raise DecodeError(str(error) or type(error).__name__) from error


def without_nulls(value: Any) -> Any:
    """A copy without the keys whose value is null, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def encode(value: Any) -> bytes:
    """JSON bytes of a struct, dict or list."""
    return _encoder.encode(value)


def to_builtins(value: Any) -> Any:
    """A struct as plain dicts, lists, strings and numbers, in JSON spelling."""
    return json.loads(_encoder.encode(value))
