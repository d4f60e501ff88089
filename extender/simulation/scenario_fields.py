"""The fields of a scenario as structs; whatever is wrong with one is said with its place.

scenario and scenario_gangs read by it. No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.api.codec import DecodeError, convert

Json = dict[str, Any]


class ScenarioError(ValueError):
    """A scenario that cannot be built; the text names the field, as in `$[3].nodes[0].metadata.name`."""


def one(scenario: Json, key: str, type_: type[Any], path: str) -> Any:
    if scenario.get(key) is None:
        raise ScenarioError(f"{path}.{key}: required")
    return converted(scenario[key], type_, f"{path}.{key}")


def listed(scenario: Json, key: str, path: str) -> list[Any]:
    entries = scenario.get(key) or []
    if not isinstance(entries, list):
        raise ScenarioError(f"{path}.{key}: expected an array")
    return entries


def many(scenario: Json, key: str, type_: type[Any], path: str) -> list[Any]:
    return [
        converted(entry, type_, f"{path}.{key}[{index}]") for index, entry in enumerate(listed(scenario, key, path))
    ]


def converted(value: Any, type_: type[Any], path: str) -> Any:
    try:
        return convert(value, type_)
    except DecodeError as error:
        text = str(error)
        if " - at `$" in text:
            text, _, where = text.partition(" - at `$")
            path += where.rstrip("`")
        raise ScenarioError(f"{path}: {text}") from error


def texts(scenario: Json, key: str, path: str) -> Mapping[str, str]:
    value = scenario.get(key) or {}
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise ScenarioError(f"{path}.{key}: expected an object of node name and message")
    return value
