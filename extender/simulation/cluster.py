"""A cluster from YAML files, ready to be scheduled: whose pods are ours, and what of it is not modelled.

The command simulate uses it, and tests. kube-scheduler sees the same objects through its informers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.embedded.load import load_files
from extender.client.interface import POD_GROUPS, PODS
from extender.config.defaults import whole_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, KubeSchedulerConfiguration, KubeSchedulerProfile
from extender.plugins import names
from extender.plugins.coscheduling.spec.membership import GroupLabels

_EVERYTHING = 10**9


@dataclass(frozen=True, slots=True)
class Cluster:
    """What was loaded, with what there is to say about it."""

    api: EmbeddedAPI
    pods: Sequence[corev1.Pod]
    pod_groups: int
    warnings: tuple[str, ...]


def load_cluster(paths: Sequence[Path | str], now: Callable[[], str]) -> Cluster:
    """Raises DecodeError with file, line and field, or OSError."""
    api = EmbeddedAPI(now=now)
    loaded = load_files(api, paths)
    pods = api.list_page(PODS, limit=_EVERYTHING).items
    pod_groups = len(api.list_page(POD_GROUPS, limit=_EVERYTHING).items)
    warnings = []
    if loaded.ignored:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(loaded.ignored.items()))
        warnings.append(f"left out, since scheduling does not look at them: {kinds}")
    claims = [pod.key for pod in pods if pod.spec.resource_claims and not pod.node_name]
    if claims:
        warnings.append(
            f"resource claims are not modelled: {_some(claims)} will not be scheduled, as the message of each says"
        )
    return Cluster(api, pods, pod_groups, tuple(warnings))


def whole_configuration(cluster: Cluster, configuration: ExtenderConfiguration | None) -> KubeSchedulerConfiguration:
    """Every in-tree plugin, and gangs where there are any, for the schedulers that the configuration or the pods name."""
    scheduler_names = _scheduler_names(cluster, configuration)
    args = coscheduling_args(configuration)
    gangs = args if _has_gangs(cluster, args) else None
    profiles = tuple(whole_profile(name, coscheduling=gangs) for name in scheduler_names)
    return KubeSchedulerConfiguration(profiles)


def unserved(cluster: Cluster, configuration: KubeSchedulerConfiguration) -> tuple[str, ...]:
    """What a configuration leaves out that the cluster has, a warning each."""
    served = {profile.scheduler_name for profile in configuration.profiles}
    others = Counter(
        pod.spec.scheduler_name for pod in cluster.pods if not pod.node_name and pod.spec.scheduler_name not in served
    )
    warnings = [f"no profile schedules for {name!r}: {count} pods are left alone" for name, count in others.items()]
    if not any(_enables(profile, names.COSCHEDULING) for profile in configuration.profiles):
        labels = GroupLabels()
        members = [pod.key for pod in cluster.pods if not pod.node_name and labels.group_of(pod) is not None]
        if members:
            warnings.append(f"no profile has Coscheduling: members of gangs are scheduled singly ({_some(members)})")
    return tuple(warnings)


def _scheduler_names(cluster: Cluster, configuration: ExtenderConfiguration | None) -> Sequence[str]:
    if configuration is not None and configuration.profiles:
        return [profile.scheduler_name for profile in configuration.profiles]
    if configuration is not None and configuration.scheduler_names:
        return configuration.scheduler_names
    return sorted({pod.spec.scheduler_name for pod in cluster.pods if not pod.node_name}) or ["default-scheduler"]


def coscheduling_args(configuration: ExtenderConfiguration | None) -> CoschedulingArgs:
    """Of the first profile that has some."""
    for profile in configuration.profiles if configuration is not None else ():
        args = profile.plugin_config.get(names.COSCHEDULING)
        if isinstance(args, CoschedulingArgs):
            return args
    return CoschedulingArgs()


def _has_gangs(cluster: Cluster, args: CoschedulingArgs) -> bool:
    """Without any, the plugin would have nothing to do for any pod."""
    labels = GroupLabels(tuple(args.pod_group_labels))
    return cluster.pod_groups > 0 or any(labels.group_of(pod) is not None for pod in cluster.pods)


def _enables(profile: KubeSchedulerProfile, plugin: str) -> bool:
    plugins = profile.plugins
    return any(
        ref.name == plugin
        for plugin_set in (plugins.multi_point, *plugins.points.values())
        for ref in plugin_set.enabled
    )


def _some(keys: Sequence[str]) -> str:
    first = ", ".join(keys[:3])
    return first if len(keys) <= 3 else f"{first} and {len(keys) - 3} more"
