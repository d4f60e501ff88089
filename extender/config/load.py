"""Reads our own configuration file; unknown and doubled keys are refused, every error names the file and the field.

The scheduler's own file, KubeSchedulerConfiguration, is read by kube_scheduler.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from extender.config.defaults import BEHIND
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, KubeSchedulerProfile, LeaseRef, Plugins
from extender.config.yaml_file import ConfigurationError, read_yaml

API_VERSION = "gang-extender.dev/v1alpha1"
KIND = "ExtenderConfiguration"


class _Coscheduling(Struct, rename="camel", forbid_unknown_fields=True):
    permit_waiting_time_seconds: int = 60
    denied_pg_expiration_time_seconds: int = msgspec.field(name="deniedPGExpirationTimeSeconds", default=3)
    pod_group_backoff_seconds: int = 0
    pod_group_reject_percentage: int = 10
    pod_group_labels: tuple[str, ...] = CoschedulingArgs().pod_group_labels


class _PluginConfig(Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    args: dict[str, Any] = {}


class _Profile(Struct, rename="camel", forbid_unknown_fields=True):
    scheduler_name: str = "default-scheduler"
    plugin_config: tuple[_PluginConfig, ...] = ()


class _File(Struct, rename="camel", forbid_unknown_fields=True):
    api_version: str
    kind: str
    scheduler_names: tuple[str, ...] = ()
    leader_lease: str = ""
    bind_timeout_seconds: float = 120.0
    profiles: tuple[_Profile, ...] = ()
    topology: tuple[str, ...] = ()
    gang_victims: str = "wholeOrSurplus"
    shadow_after_seconds: float = 300.0
    shadow_max_seconds: float = 600.0
    shadow_max_nodes_percent: int = 25


def load_extender_configuration(path: Path | str) -> ExtenderConfiguration:
    """Raises ConfigurationError with all that is wrong, or OSError."""
    path = Path(path)
    document = read_yaml(path)
    file = _convert(document, _File, str(path), "$")
    errors = list(_mistakes(file))
    profiles = []
    for index, profile in enumerate(file.profiles):
        arguments: dict[str, Any] = {}
        for at, entry in enumerate(profile.plugin_config):
            where = f"$.profiles[{index}].pluginConfig[{at}]"
            if entry.name != "Coscheduling":
                errors.append(f'{where}.name: Unsupported value: {entry.name!r}: supported values: "Coscheduling"')
                continue
            try:
                args = _convert(entry.args, _Coscheduling, str(path), f"{where}.args")
            except ConfigurationError as error:
                errors.append(str(error).removeprefix(f"{path}: "))
                continue
            errors += [f"{where}.args.{text}" for text in _coscheduling_mistakes(args)]
            arguments[entry.name] = CoschedulingArgs(**msgspec.structs.asdict(args))
        profiles.append(KubeSchedulerProfile(profile.scheduler_name, Plugins(BEHIND), arguments))
    if errors:
        raise ConfigurationError("\n".join(f"{path}: {text}" for text in errors))
    namespace, _, name = file.leader_lease.partition("/")
    return ExtenderConfiguration(
        scheduler_names=file.scheduler_names,
        leader_lease=LeaseRef(namespace, name) if name else None,
        bind_timeout_seconds=file.bind_timeout_seconds,
        profiles=tuple(profiles),
        topology=file.topology,
        gang_victims=file.gang_victims,
        shadow_after_seconds=file.shadow_after_seconds,
        shadow_max_seconds=file.shadow_max_seconds,
        shadow_max_nodes_percent=file.shadow_max_nodes_percent,
    )


def _convert(value: Any, type_: Any, path: str, where: str) -> Any:
    try:
        return msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        text = str(error)
        if "`$" in text:
            text = text.replace("`$", f"`{where}", 1)
        else:
            text += f" - at `{where}`"
        raise ConfigurationError(f"{path}: {text}") from error


def _mistakes(file: _File) -> list[str]:
    errors = []
    if file.api_version != API_VERSION or file.kind != KIND:
        errors.append(f"$: {file.api_version} {file.kind} is not {API_VERSION} {KIND}")
    if not 10 <= file.bind_timeout_seconds <= 3600:
        errors.append(
            f"$.bindTimeoutSeconds: Invalid value: {file.bind_timeout_seconds:g}: must be between 10 and 3600"
        )
    if file.leader_lease and file.leader_lease.strip("/").count("/") != 1:
        errors.append(f"$.leaderLease: Invalid value: {file.leader_lease!r}: must be namespace/name")
    if file.gang_victims not in ("wholeOrSurplus", "surplusOnly", "any"):
        errors.append(
            f'$.gangVictims: Unsupported value: {file.gang_victims!r}: supported values: "wholeOrSurplus", "surplusOnly", "any"'
        )
    if not 0 <= file.shadow_max_nodes_percent <= 100:
        errors.append(
            f"$.shadowMaxNodesPercent: Invalid value: {file.shadow_max_nodes_percent}: must be between 0 and 100"
        )
    names = [profile.scheduler_name for profile in file.profiles]
    errors += [
        f"$.profiles[{index}].schedulerName: Duplicate value: {name!r}"
        for index, name in enumerate(names)
        if name in names[:index]
    ]
    return errors


def _coscheduling_mistakes(args: _Coscheduling) -> list[str]:
    errors = []
    for name, value, low, high in (
        ("permitWaitingTimeSeconds", args.permit_waiting_time_seconds, 0, 900),
        ("deniedPGExpirationTimeSeconds", args.denied_pg_expiration_time_seconds, 1, 3600),
        ("podGroupBackoffSeconds", args.pod_group_backoff_seconds, 0, 3600),
        ("podGroupRejectPercentage", args.pod_group_reject_percentage, 0, 100),
    ):
        if not low <= value <= high:
            errors.append(f"{name}: Invalid value: {value}: must be between {low} and {high}")
    if not args.pod_group_labels:
        errors.append("podGroupLabels: Required value")
    return errors
