"""Scheduler name -> Framework: one for each profile.

All profiles share one queue, so they sort alike; and one Coscheduling, since a group is one thing whichever profile asks for its
members. kube-scheduler: pkg/scheduler/profile/profile.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from extender.config.types import KubeSchedulerProfile
from extender.framework.interface import Plugin
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.registry import Registry
from extender.plugins import names

SHARED = frozenset({names.COSCHEDULING})


class ProfileError(ValueError):
    """Profiles that do not go together."""


def new_map(
    profiles: Iterable[KubeSchedulerProfile],
    registry: Registry,
    dependencies: FrameworkDependencies,
    *,
    shared: Collection[str] = SHARED,
) -> dict[str, Framework]:
    """In the order of the profiles; the plugins in `shared` are built by the first that has them, and are one for all.

    Raises ProfileError, or RegistryError and PluginSetError for a profile that no framework can be built of.
    """
    frameworks: dict[str, Framework] = {}
    built: dict[str, Plugin] = {}
    first: Framework | None = None
    for profile in profiles:
        framework = Framework(profile, registry, dependencies, shared=built, beside=first)
        _check(framework, frameworks, first)
        first = first or framework
        frameworks[profile.scheduler_name] = framework
        built |= {name: plugin for name, plugin in framework.plugins.items() if name in shared and name not in built}
    return frameworks


def _check(framework: Framework, others: Mapping[str, Framework], first: Framework | None) -> None:
    """Go: cfgValidator.validate."""
    name = framework.profile_name
    if not name:
        raise ProfileError("scheduler name is needed")
    if name in others:
        raise ProfileError(f'duplicate profile with scheduler name "{name}"')
    if first is None:
        return
    sort, first_sort = framework.queue_sort_plugins[0].name, first.queue_sort_plugins[0].name
    if sort != first_sort:
        raise ProfileError(f'different queue sort plugins for profile "{name}": "{sort}", first: "{first_sort}"')
    if framework.profile.plugin_config.get(sort) != first.profile.plugin_config.get(sort):
        raise ProfileError(f'different queue sort plugin args for profile "{name}"')
