"""The configuration that the extender runs with, as a file that says all of it would have it: what is left out there is its default.

Logged at the start, shown at /configuration, and held by the doctor against the file. It holds no secrets: there are none in the file.
kube-scheduler logs its own likewise: cmd/kube-scheduler/app/options/configfile.go (LogOrWriteConfig)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from extender.api import codec
from extender.config.defaults import served_profiles
from extender.config.durations import go_duration
from extender.config.plugin_args import PluginArgs, ScoringStrategy
from extender.config.read_profile import camel, key_of, with_default_args
from extender.config.types import ExtenderConfiguration, KubeSchedulerProfile, NamespacedName, Plugins, TopologyLevel

Json = Any

DURATIONS = frozenset(("filter_timeout_seconds", "binding_timeout_seconds"))


def effective(configuration: ExtenderConfiguration) -> dict[str, Json]:
    """JSON that, with apiVersion and kind, reads as a configuration to the same effect. Lists and texts that are empty are left out."""
    profiles = [replace(each, plugin_config=_with_defaults(each)) for each in served_profiles(configuration)]
    return dict(_fields(replace(configuration, profiles=tuple(profiles))))


def _with_defaults(profile: KubeSchedulerProfile) -> Mapping[str, PluginArgs | Mapping[str, Any]]:
    return with_default_args(profile.plugins, profile.plugin_config)


def differences(one: Mapping[str, Json], other: Mapping[str, Json]) -> list[str]:
    """The fields, as in `profiles[0].pluginConfig[3].args.inTreePodGroups`, that do not say the same; a field around others is named only
    where the two have not the same fields or items below it."""
    return sorted(_differences("", one, other))


def _differences(path: str, one: Json, other: Json) -> Iterator[str]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in one.keys() | other.keys():
            yield from _differences(f"{path}.{key}" if path else key, one.get(key), other.get(key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (each, its) in enumerate(zip(one, other, strict=True)):
            yield from _differences(f"{path}[{index}]", each, its)
    elif one != other:
        yield path


def _fields(value: Any) -> Iterator[tuple[str, Json]]:
    for each in fields(value):
        found = getattr(value, each.name)
        name = key_of(each.name)
        shown = go_duration(found) if each.name in DURATIONS else _json(found)
        if shown is not None and shown != "" and not (isinstance(shown, Collection) and not shown):
            yield name, shown


def _json(value: Any) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Enum():
            return value.value
        case NamespacedName():
            return f"{value.namespace}/{value.name}"
        case TopologyLevel():
            return {"name": value.name, "nodeLabel": value.key}
        case KubeSchedulerProfile():
            return dict(_profile(value))
        case Plugins():
            points = {camel(point): _json(plugin_set) for point, plugin_set in value.points.items()}
            return {"multiPoint": _json(value.multi_point), **points}
        case ScoringStrategy():
            return dict(_scoring_strategy(value))
        case Mapping():
            return {str(key): _json(each) for key, each in value.items()}
        case set() | frozenset():
            return sorted(value)
        case tuple() | list():
            return [_json(each) for each in value]
        case _ if is_dataclass(value):
            return dict(_fields(value))
        case _:
            return codec.to_builtins(value)


def _profile(profile: KubeSchedulerProfile) -> Iterator[tuple[str, Json]]:
    for name, shown in _fields(profile):
        if name != "pluginConfig":
            yield name, shown
    if profile.plugin_config:
        yield "pluginConfig", [_plugin_config(name, args) for name, args in sorted(profile.plugin_config.items())]


def _plugin_config(name: str, args: PluginArgs | Mapping[str, Any]) -> Json:
    return {"name": name, "args": _json(args)}


def _scoring_strategy(strategy: ScoringStrategy) -> Iterator[tuple[str, Json]]:
    for name, shown in _fields(strategy):
        if name == "shape":
            yield "requestedToCapacityRatio", {"shape": shown}
        else:
            yield name, shown
