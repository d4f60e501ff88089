"""One entry of `profiles:`, in our own file and in KubeSchedulerConfiguration alike.

What the file says is merged into the defaults; enabled plugins whose arguments it leaves out get the default ones.
kube-scheduler: pkg/scheduler/apis/config/v1/defaults.go (setDefaults_KubeSchedulerProfile)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.config.defaults import default_args, merge_plugins
from extender.config.plugin_args import PluginArgs
from extender.config.read_args import read_args
from extender.config.section import Section
from extender.config.types import EXTENSION_POINTS, KubeSchedulerProfile, PluginRef, Plugins, PluginSet

KUBE_API_VERSION = "kubescheduler.config.k8s.io/v1"
REMOVED_PLUGINS = frozenset({"AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"})
ALPHA_POINTS = ("placementGenerate", "placementScore")


SPELT_OTHERWISE = {
    "denied_pg_expiration_time_seconds": "deniedPGExpirationTimeSeconds",
    "filter_timeout_seconds": "filterTimeout",
    "binding_timeout_seconds": "bindingTimeout",
}
"""Fields whose key in the file is not their name in camelCase."""


def key_of(field: str) -> str:
    """Of a field of the configuration's types, as it stands in the file."""
    return SPELT_OTHERWISE.get(field, camel(field))


def camel(point: str) -> str:
    """`pre_filter` to `preFilter`, as it stands in the file."""
    first, *others = point.split("_")
    return first + "".join(part.capitalize() for part in others)


def read_profile(
    section: Section, defaults: Plugins, default_name: str, args_version: str = KUBE_API_VERSION
) -> KubeSchedulerProfile:
    """default_name: of a profile that names no scheduler."""
    name = section.text("schedulerName", default_name)
    percentage = None
    if "percentageOfNodesToScore" in section:
        percentage = section.integer("percentageOfNodesToScore", 0, high=100, why="not in valid range [0-100]")
    plugins = merge_plugins(defaults, _plugins(section.section("plugins")))
    config = _plugin_config(section, args_version)
    section.finish()
    return KubeSchedulerProfile(name, plugins, with_default_args(plugins, config), percentage)


def with_default_args(
    plugins: Plugins, config: Mapping[str, PluginArgs | Mapping[str, Any]]
) -> Mapping[str, PluginArgs | Mapping[str, Any]]:
    """Adds the default arguments of enabled plugins that have some."""
    enabled = {ref.name for plugin_set in (plugins.multi_point, *plugins.points.values()) for ref in plugin_set.enabled}
    filled = dict(config)
    for name in sorted(enabled - set(config)):
        args = default_args(name)
        if args is not None:
            filled[name] = args
    return filled


def _plugins(section: Section) -> Plugins:
    multi_point = _plugin_set(section.section("multiPoint"))
    points = {point: _plugin_set(section.section(camel(point))) for point in EXTENSION_POINTS}
    for alpha in ALPHA_POINTS:
        if _plugin_set(section.section(alpha)).enabled:
            section.wrong(alpha, "not supported: placing pod groups is behind an alpha feature gate of kube-scheduler")
    section.finish()
    return Plugins(multi_point, {point: found for point, found in points.items() if found != PluginSet()})


def _plugin_set(section: Section) -> PluginSet:
    enabled = tuple(_plugin_ref(entry) for entry in section.sections("enabled"))
    disabled = tuple(_plugin_ref(entry) for entry in section.sections("disabled"))
    for index, ref in enumerate(enabled):
        if ref.name in REMOVED_PLUGINS:
            section.invalid(f"enabled[{index}]", ref.name, "the plugin is gone: NodeVolumeLimits does its work")
    section.finish()
    return PluginSet(enabled, disabled)


def _plugin_ref(section: Section) -> PluginRef:
    ref = PluginRef(section.text("name"), section.integer("weight", 0))
    if not ref.name:
        section.required("name")
    section.finish()
    return ref


def _plugin_config(section: Section, args_version: str) -> dict[str, PluginArgs | Mapping[str, Any]]:
    config: dict[str, PluginArgs | Mapping[str, Any]] = {}
    for index, entry in enumerate(section.sections("pluginConfig")):
        name = entry.text("name")
        if not name:
            entry.required("name")
        elif name in REMOVED_PLUGINS:
            section.invalid(f"pluginConfig[{index}]", name, "the plugin is gone: NodeVolumeLimits does its work")
        if name in config:
            section.wrong(f"pluginConfig[{index}]", f'Duplicate value: "{name}"')
        config[name] = read_args(name, entry.section("args"), args_version)
        entry.finish()
    return config
