"""A JSON schema of ExtenderConfiguration, made of its types: what editors complete and check extender.yaml by.

It says less than the reader (load, read_args): two keys that do not fit together are found by `gang-extender doctor` and at the start.
`gang-extender schema configuration` prints it. No counterpart: kube-scheduler publishes Go types only.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any

from extender.config import load
from extender.config.group_sources import MAX_NAME, MAX_SOURCES, PRESETS
from extender.config.plugin_args import CoschedulingArgs, GroupSource
from extender.config.read_profile import KUBE_API_VERSION, camel, key_of
from extender.config.types import (
    EXTENSION_POINTS,
    ExtenderConfiguration,
    KubeSchedulerProfile,
    NamespacedName,
    PluginRef,
    PluginSet,
    TopologyLevel,
)

Json = dict[str, Any]

LIMITS: Mapping[str, Json] = {
    "bindTimeoutSeconds": {"minimum": 10, "maximum": 3600},
    "maxHeldBinds": {"minimum": 1, "maximum": load.MOST_HELD_BINDS},
    "leaseDurationSeconds": {"minimum": load.LEAST_LEASE_SECONDS, "maximum": load.MOST_LEASE_SECONDS},
    "percentageOfNodesToScore": {"minimum": 0, "maximum": 100},
    "gangVictims": {"enum": list(load.GANG_VICTIMS)},
    "victimMinimumRunSeconds": {"minimum": 0, "maximum": 30 * load.DAY},
    "preemptionDelaySeconds": {"minimum": 0, "maximum": load.DAY},
    "evictThrough": {"enum": list(load.EVICT_THROUGH)},
    "shadowAfterSeconds": {"minimum": 0, "maximum": load.DAY},
    "shadowMaxSeconds": {"minimum": 0, "maximum": load.DAY},
    "shadowMaxNodesPercent": {"minimum": 0, "maximum": 100},
    "wakeBy": {"enum": list(load.WAKE_BY)},
    "permitWaitingTimeSeconds": {"minimum": 0, "maximum": 900},
    "deniedPGExpirationTimeSeconds": {"minimum": 1, "maximum": 3600},
    "podGroupBackoffSeconds": {"minimum": 0, "maximum": 3600},
    "podGroupRejectPercentage": {"minimum": 0, "maximum": 100},
    "podGroupLabels": {"minItems": 1},
    "groupSources": {"maxItems": MAX_SOURCES},
    "membersToComeSeconds": {"minimum": 0, "maximum": 86400},
    "inPartAfterSeconds": {"minimum": 0, "maximum": 86400},
    "earlyStartSilenceSeconds": {"minimum": 1, "maximum": 60},
    "earlyStartMaxSeconds": {"minimum": 1, "maximum": 300},
    "earlyStartPercentageOfRoom": {"minimum": 1, "maximum": 100},
}
"""What the types do not say; a test asks the reader about each."""


def configuration_schema() -> Json:
    header = {"apiVersion": {"const": load.API_VERSION}, "kind": {"const": load.KIND}}
    schema = _object(ExtenderConfiguration)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": load.KIND,
        **schema,
        "properties": {**header, **schema["properties"]},
        "required": list(header),
    }


def _of(type_: Any, key: str = "") -> Json:
    if type_ in _WRITTEN_OTHERWISE:
        return _WRITTEN_OTHERWISE[type_]()
    return {**_plain(type_), **LIMITS.get(key, {})}


def _plain(type_: Any) -> Json:
    if type_ in _PLAIN:
        return {"type": _PLAIN[type_]}
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin in (types.UnionType, typing.Union):  # a null is a field that is not there, as in all of Kubernetes
        (inner,) = (each for each in arguments if each is not types.NoneType)
        return _of(inner)
    if origin in (tuple, frozenset):
        return {"type": "array", "items": _of(arguments[0])}
    if isinstance(type_, type) and issubclass(type_, Enum):
        return {"enum": [each.value for each in type_]}
    if is_dataclass(type_):
        return _object(type_)
    raise TypeError(f"no schema for {type_}")


_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string"}


def _object(type_: Any, required: tuple[str, ...] = ()) -> Json:
    hints = typing.get_type_hints(type_)
    properties = {
        key: _with_default(each, _of(hints[each.name], key)) for each in fields(type_) for key in [key_of(each.name)]
    }
    schema: Json = {"type": "object", "additionalProperties": False, "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def _with_default(each: Field[Any], schema: Json) -> Json:
    """Where it is a value that a file can say."""
    default = each.default.value if isinstance(each.default, Enum) else each.default
    if default is MISSING or not isinstance(default, bool | int | float | str) or default == "":
        return schema
    return {**schema, "default": default}


def _reference() -> Json:
    return {"type": "string", "pattern": "^([^/]+/[^/]+)?$", "description": "namespace/name"}


def _level() -> Json:
    text = {"type": "string", "minLength": 1}
    level = {"name": text, "nodeLabel": text}
    named = {"type": "object", "additionalProperties": False, "properties": level, "required": list(level)}
    return {"anyOf": [text, named]}


def _source() -> Json:
    own = _object(GroupSource, ("name",))
    own["properties"]["name"] |= {"minLength": 1, "maxLength": MAX_NAME}
    for label, annotation in (("groupLabel", "groupAnnotation"), ("minMemberLabel", "minMemberAnnotation")):
        own.setdefault("allOf", []).append({"oneOf": [{"required": [label]}, {"required": [annotation]}]})
    preset = {"preset": {"enum": list(PRESETS)}}
    return {
        "anyOf": [{"type": "object", "additionalProperties": False, "properties": preset, "required": ["preset"]}, own]
    }


def _profile() -> Json:
    """As in KubeSchedulerConfiguration. Arguments of kube-scheduler's own plugins are as it documents them."""
    args = _object(CoschedulingArgs)
    args["properties"] |= {
        "apiVersion": {"const": KUBE_API_VERSION},
        "kind": {"const": "CoschedulingArgs"},
    }
    entry: Json = {
        "type": "object",
        "additionalProperties": False,
        "properties": {"name": {"type": "string", "minLength": 1}, "args": {"type": "object"}},
        "required": ["name"],
        "if": {"properties": {"name": {"const": "Coscheduling"}}},
        "then": {"properties": {"args": args}},
    }
    points = ("multi_point", *EXTENSION_POINTS)
    plugins = {camel(point): _object(PluginSet) for point in points}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "schedulerName": {"type": "string"},
            "percentageOfNodesToScore": _of(int, "percentageOfNodesToScore"),
            "plugins": {"type": "object", "additionalProperties": False, "properties": plugins},
            "pluginConfig": {"type": "array", "items": entry},
        },
    }


_WRITTEN_OTHERWISE: Mapping[Any, Callable[[], Json]] = {
    NamespacedName: _reference,
    TopologyLevel: _level,
    GroupSource: _source,
    KubeSchedulerProfile: _profile,
    PluginRef: lambda: _object(PluginRef, ("name",)),
}
"""Types that a file spells in another way than field by field."""
