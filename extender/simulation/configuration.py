"""What a simulation goes by, of the configuration files that the user gives: kube-scheduler's, the extender's own, or both.

    neither           every default plugin, for the schedulers that the pods name; gangs, where there are any, by the plugin alone
    the extender's    the same, for the schedulers that it serves, with its settings
    kube-scheduler's  its profiles; those that it sends to this extender have gangs, with the extender's default settings
    both              its profiles, with gangs and the extender's settings for those that the extender serves

The command simulate uses it. No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from extender.client.embedded.load import GANG_SCHEDULER
from extender.config.defaults import BEHIND
from extender.config.types import (
    ExtenderConfiguration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    PluginRef,
    Plugins,
    PluginSet,
)
from extender.plugins import names
from extender.scheduler.in_process import http_extender
from extender.simulation.cluster import Cluster, enables, whole_configuration
from extender.simulation.extenders import SortedExtenders, sort_extenders

POST_FILTER = "post_filter"


@dataclass(frozen=True, slots=True)
class Files:
    """What was read; None for what was not given."""

    kube_scheduler: KubeSchedulerConfiguration | None = None
    extender: ExtenderConfiguration | None = None


@dataclass(frozen=True, slots=True)
class Configured:
    """extender: the settings of the extender that Coscheduling stands for, None where it is a plugin as any other."""

    kube_scheduler: KubeSchedulerConfiguration
    extender: ExtenderConfiguration | None
    warnings: tuple[str, ...] = ()


def gang_scheduler(files: Files) -> str:
    """The schedulerName of pods of operators that have a flag for it: the shipped one, unless the files serve others alone."""
    configuration = files.extender or files.kube_scheduler
    served = [profile.scheduler_name for profile in configuration.profiles] if configuration is not None else []
    if files.extender is not None:
        served = [*files.extender.scheduler_names, *served]
    return GANG_SCHEDULER if GANG_SCHEDULER in served or not served else served[0]


def configured(cluster: Cluster, files: Files, *, call_extenders: bool = False) -> Configured:
    """call_extenders: whether extenders other than this one may be asked. Raises ExtenderError for an entry that makes no sense."""
    if files.kube_scheduler is None:
        return _by_the_extender_alone(cluster, files.extender)
    for entry in files.kube_scheduler.extenders:
        http_extender.check(entry)
    extenders = sort_extenders(
        files.kube_scheduler.extenders, configured=files.extender is not None, call=call_extenders
    )
    configuration, warnings = with_this_extender(files.kube_scheduler, extenders, files.extender)
    settings = files.extender
    if extenders.own and settings is None:
        settings = ExtenderConfiguration()
    return Configured(configuration, settings, (*extenders.warnings, *warnings))


def _by_the_extender_alone(cluster: Cluster, settings: ExtenderConfiguration | None) -> Configured:
    whole = whole_configuration(cluster, settings)
    if settings is None:
        return Configured(whole, None)
    warnings: list[str] = []
    profiles = tuple(_with_plugins_behind(_as_extender(profile), settings, warnings) for profile in whole.profiles)
    percentage = settings.percentage_of_nodes_to_score
    configuration = replace(whole, profiles=profiles, percentage_of_nodes_to_score=percentage)
    return Configured(configuration, settings, tuple(warnings))


def with_this_extender(
    configuration: KubeSchedulerConfiguration, extenders: SortedExtenders, settings: ExtenderConfiguration | None
) -> tuple[KubeSchedulerConfiguration, tuple[str, ...]]:
    """Coscheduling in place of the entries that are this extender; and what there is to say of it. settings: None if not given."""
    left = replace(configuration, extenders=extenders.called)
    if not extenders.own:
        unused = settings is not None and not any(enables(each, names.COSCHEDULING) for each in left.profiles)
        return left, _NOT_ASKED if unused else ()
    warnings: list[str] = []
    if settings is None:
        prefixes = ", ".join(dict.fromkeys(entry.url_prefix for entry in extenders.own))
        warnings.append(f"{prefixes} is taken for this extender, with its default settings: give its --config as well")
    settings = settings or ExtenderConfiguration()
    profiles = []
    for profile in left.profiles:
        if not settings.serves(profile.scheduler_name):
            warnings.append(
                f"the extender does not serve {profile.scheduler_name!r}, whose pods kube-scheduler sends to it: their bind "
                "calls would fail; simulated as if they were not sent"
            )
        elif not enables(profile, names.COSCHEDULING):
            with_gangs = _with_coscheduling(profile, settings, extenders.weight)
            profile = _with_plugins_behind(with_gangs, settings, warnings)
        profiles.append(profile)
    return replace(left, profiles=tuple(profiles)), tuple(warnings)


_NOT_ASKED = (
    "no entry of extenders: is this extender: kube-scheduler does not ask it, and its configuration changes nothing",
)


def _with_coscheduling(
    profile: KubeSchedulerProfile, settings: ExtenderConfiguration, weight: int
) -> KubeSchedulerProfile:
    """Last of all, as an extender is asked about the nodes that the plugins leave. weight: of its scores, as in the entry."""
    args = {**profile.plugin_config, names.COSCHEDULING: settings.coscheduling_args}
    coscheduling = Plugins(PluginSet((PluginRef(names.COSCHEDULING, weight),)))
    plugins = _with(profile.plugins, coscheduling, {names.COSCHEDULING})
    return _as_extender(replace(profile, plugins=plugins, plugin_config=args))


def _as_extender(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """An extender is not asked where kube-scheduler runs PostFilter: it has the verb preempt."""
    old = profile.plugins.at(POST_FILTER)
    without = PluginSet(old.enabled, (*old.disabled, PluginRef(names.COSCHEDULING)))
    plugins = replace(profile.plugins, points={**profile.plugins.points, POST_FILTER: without})
    return replace(profile, plugins=plugins)


def _with_plugins_behind(
    profile: KubeSchedulerProfile, settings: ExtenderConfiguration, warnings: list[str]
) -> KubeSchedulerProfile:
    """What the extender's own profile enables besides. A plugin that kube-scheduler's profile has too runs once here."""
    behind = _profile_behind(settings, profile.scheduler_name)
    if behind is None:
        return profile
    more = {ref.name for each in _sets(behind.plugins) for ref in each.enabled} - {ref.name for ref in BEHIND.enabled}
    twice = sorted(name for name in more if enables(profile, name))
    if twice:
        warnings.append(
            f"plugins of the extender's profile {behind.scheduler_name!r} that kube-scheduler's has too count once here: "
            f"{', '.join(twice)}"
        )
    new = more.difference(twice)
    args = {name: args for name, args in behind.plugin_config.items() if name in new}
    plugins = _with(profile.plugins, behind.plugins, new)
    return replace(profile, plugins=plugins, plugin_config={**profile.plugin_config, **args})


def _profile_behind(settings: ExtenderConfiguration, scheduler_name: str) -> KubeSchedulerProfile | None:
    """The one of that name, else the first, as behind the verbs."""
    named = [profile for profile in settings.profiles if profile.scheduler_name == scheduler_name]
    return next(iter((*named, *settings.profiles)), None)


def _with(plugins: Plugins, more: Plugins, new: Collection[str]) -> Plugins:
    """With those plugins of `more` that are new, at the points where they are there."""

    def added(old: PluginSet, other: PluginSet) -> PluginSet:
        return PluginSet((*old.enabled, *(ref for ref in other.enabled if ref.name in new)), old.disabled)

    points = {point: added(plugins.at(point), more.at(point)) for point in {**plugins.points, **more.points}}
    return Plugins(added(plugins.multi_point, more.multi_point), points)


def _sets(plugins: Plugins) -> Iterable[PluginSet]:
    return plugins.multi_point, *plugins.points.values()
