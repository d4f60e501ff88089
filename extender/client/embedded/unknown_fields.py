"""Fields that an object in a file has and its Go type has not: misspelt ones, which would count as if they were not there.

`load` asks for what was written by hand; what an API server has let in has none. fields.json is recorded from the Go types of
Kubernetes 1.36.3 by tests/parity/record_fields. Counterpart: the API server's fieldValidation=Warn
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from extender.api import schedulingv1alpha1
from extender.client.interface import POD_GROUPS

Raw = dict[str, Any]
Fields = Mapping[str, str]
"""Of a type: each field, and the type of what it holds; empty where that is no object."""

TABLE = Path(__file__).with_name("fields.json")
_META = "apimachinery/pkg/apis/meta/v1.ObjectMeta"
_POD_GROUP, _POD_GROUP_SPEC = "PodGroup", "PodGroupSpec"


def unknown_fields(obj: Raw) -> Iterator[str]:
    """Each with its place, as `$.spec.contaners: unknown field; did you mean containers?`. None of a kind that is not known."""
    kinds, types = _table()
    yield from _unknown(obj, kinds.get(f"{obj.get('apiVersion')}/{obj.get('kind')}", ""), types, "$")


def _unknown(value: Any, type_: str, types: Mapping[str, Fields], path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(item, type_, types, f"{path}[{index}]")
    if not isinstance(value, dict) or type_ not in types:
        return
    fields = types[type_]
    for key, item in value.items():
        if key in fields:
            yield from _unknown(item, fields[key], types, f"{path}.{key}")
        else:
            yield f"{path}.{key}: unknown field{_meant(str(key), fields)}"


def _meant(key: str, fields: Fields) -> str:
    close = difflib.get_close_matches(key, fields, 1)
    return f"; did you mean {close[0]}?" if close else ""


@cache
def _table() -> tuple[Mapping[str, str], Mapping[str, Fields]]:
    """API version and kind -> its type; type -> its fields. PodGroup is a custom resource: its fields are those of our struct."""
    table = json.loads(TABLE.read_text())
    kinds: Raw = {**table["kinds"], f"{POD_GROUPS.api_version}/{POD_GROUPS.kind}": _POD_GROUP}
    types: Raw = {
        **table["types"],
        _POD_GROUP: {"apiVersion": "", "kind": "", "metadata": _META, "spec": _POD_GROUP_SPEC, "status": ""},
        _POD_GROUP_SPEC: _names(schedulingv1alpha1.PodGroupSpec),
    }
    return kinds, types


def _names(type_: type[Struct]) -> Fields:
    return {field.encode_name: "" for field in structs.fields(type_)}
