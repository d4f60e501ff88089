"""A cluster from YAML files, ready to be scheduled: which of its pods are ours, and what of it is not modelled.

The command simulate uses it, and tests. kube-scheduler sees the same objects through its informers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from extender.api import corev1
from extender.client.embedded import EmbeddedAPI
from extender.client.embedded.load import GANG_SCHEDULER, Loaded, load_files
from extender.client.embedded.workloads.workload import Made
from extender.client.interface import FOREIGN_POD_GROUPS, IN_TREE_GROUPS, POD_GROUPS, PODS, ResourceType
from extender.config.defaults import whole_profile
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration, KubeSchedulerConfiguration, KubeSchedulerProfile
from extender.plugins import names
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.sources.source import presets

_EVERYTHING = 10**9
DEFAULT_SCHEDULER = "default-scheduler"
MISSPELT = 10  # fields, each with a warning of its own


@dataclass(frozen=True, slots=True)
class Cluster:
    """What was loaded, with what there is to say about it. later: what controllers make once other pods run."""

    api: EmbeddedAPI
    pods: Sequence[corev1.Pod]
    pod_groups: int
    warnings: tuple[str, ...]
    later: Sequence[Made] = ()


def load_cluster(paths: Sequence[Path | str], now: Callable[[], str], gang_scheduler: str = GANG_SCHEDULER) -> Cluster:
    """Raises DecodeError with file, line and field, or OSError. gang_scheduler: as operators with a flag for it would name it."""
    api = EmbeddedAPI(now=now)
    loaded = load_files(api, paths, gang_scheduler, all_at_once=False)
    pods = api.list_page(PODS, limit=_EVERYTHING).items
    pod_groups = len(api.list_page(POD_GROUPS, limit=_EVERYTHING).items)
    return Cluster(api, pods, pod_groups, (*_of_files(loaded), *_of_claims(pods)), loaded.later)


def _of_files(loaded: Loaded) -> Iterator[str]:
    if loaded.ignored:
        yield f"left out, since scheduling does not look at them: {_counted(loaded.ignored)}"
    if loaded.unknown:
        yield (
            f"left out, since these kinds are not known here: {_counted(loaded.unknown)}; pods that a controller would make of "
            f"them are not simulated: {some(loaded.left_out)}"
        )
    yield from loaded.warnings
    yield from loaded.misspelt[:MISSPELT]
    if len(loaded.misspelt) > MISSPELT:
        yield f"{len(loaded.misspelt) - MISSPELT} more unknown fields"


def _of_claims(pods: Sequence[corev1.Pod]) -> Iterator[str]:
    claims = [pod.key for pod in pods if pod.spec.resource_claims and not pod.node_name]
    if claims:
        yield f"resource claims are not modelled: {some(claims)} will not be scheduled, as the message of each says"


def whole_configuration(cluster: Cluster, configuration: ExtenderConfiguration | None) -> KubeSchedulerConfiguration:
    """Every in-tree plugin, and gangs where there are any, for the schedulers that the configuration or the pods name."""
    scheduler_names = _scheduler_names(cluster, configuration)
    args = (configuration or ExtenderConfiguration()).coscheduling_args
    gangs = args if configuration is not None or _has_gangs(cluster, args) else None
    profiles = tuple(whole_profile(name, coscheduling=gangs) for name in scheduler_names)
    return KubeSchedulerConfiguration(profiles)


def unserved(cluster: Cluster, configuration: KubeSchedulerConfiguration) -> tuple[str, ...]:
    """What the cluster has and this configuration, or the files, leave out: a warning each."""
    served = {profile.scheduler_name for profile in configuration.profiles}
    others = Counter(
        pod.spec.scheduler_name for pod in cluster.pods if not pod.node_name and pod.spec.scheduler_name not in served
    )
    warnings = [f"no profile schedules for {name!r}: {count} pods are left alone" for name, count in others.items()]
    with_gangs = [profile for profile in configuration.profiles if enables(profile, names.COSCHEDULING)]
    warnings += _of_presets(
        cluster, GroupLabels.of(with_gangs[0].coscheduling_args if with_gangs else CoschedulingArgs())
    )
    if with_gangs:
        warnings += _of_groups(cluster, with_gangs[0].coscheduling_args)
        return tuple(warnings)
    warnings += _of_in_tree(cluster, GroupLabels())
    if members := _members(cluster, served):
        warnings.append(f"no profile has Coscheduling: members of gangs are scheduled singly ({some(members)})")
    return tuple(warnings)


def _of_in_tree(cluster: Cluster, labels: GroupLabels) -> Iterator[str]:
    """Pods of kube-scheduler's own groups alone, which are not read."""
    if named := [pod.key for pod in cluster.pods if _in_tree_alone(pod, labels) and not pod.node_name]:
        yield (
            f"spec.schedulingGroup counts only with inTreePodGroups in Coscheduling's arguments: {some(named)} are scheduled "
            "singly"
        )


def _of_groups(cluster: Cluster, args: CoschedulingArgs) -> Iterator[str]:
    labels = GroupLabels.of(args)
    if not args.in_tree_pod_groups:
        yield from _of_in_tree(cluster, labels)
    in_tree = IN_TREE_GROUPS if args.in_tree_pod_groups else ()
    kinds: list[ResourceType[Any]] = [POD_GROUPS, *in_tree, *FOREIGN_POD_GROUPS]
    there = {group.key for kind in kinds for group in cluster.api.list_page(kind, limit=_EVERYTHING).items}
    refs = [labels.group_of(pod) for pod in cluster.pods]
    missing = sorted({ref.key for ref in refs if ref is not None and not ref.lightweight} - there)
    if missing:
        yield f"pods name PodGroups that are not in the files, and wait for them: {some(missing)}"


def _of_presets(cluster: Cluster, labels: GroupLabels) -> Iterator[str]:
    """Pods with keys that would make gangs of them, were they configured."""
    for source in presets():
        keyed = (pod for pod in cluster.pods if not pod.node_name and source.group.text(pod.metadata))
        if named := [pod.key for pod in keyed if labels.group_of(pod) is None]:
            yield (
                f"{source.group} makes gangs only with groupSources: [{{preset: {source.name}}}] in Coscheduling's arguments: "
                f"{some(named)} are scheduled singly"
            )


def _in_tree_alone(pod: corev1.Pod, labels: GroupLabels) -> bool:
    return labels.group_of(pod) is None and pod.spec.scheduling_group is not None


def _members(cluster: Cluster, served: Collection[str]) -> list[str]:
    """Pods of gangs that are to be scheduled."""
    labels = GroupLabels()
    ours = (pod for pod in cluster.pods if not pod.node_name and pod.spec.scheduler_name in served)
    return [pod.key for pod in ours if labels.group_of(pod) is not None]


def _scheduler_names(cluster: Cluster, configuration: ExtenderConfiguration | None) -> Sequence[str]:
    if configuration is not None and configuration.profiles:
        return [profile.scheduler_name for profile in configuration.profiles]
    if configuration is not None and configuration.scheduler_names:
        return configuration.scheduler_names
    named = {pod.spec.scheduler_name for pod in cluster.pods if not pod.node_name}
    named |= {each.object["spec"].get("schedulerName") or DEFAULT_SCHEDULER for each in cluster.later}
    return sorted(named) or [DEFAULT_SCHEDULER]


def _has_gangs(cluster: Cluster, args: CoschedulingArgs) -> bool:
    """Without any, the plugin would have nothing to do for any pod."""
    labels = GroupLabels.of(args)
    return cluster.pod_groups > 0 or any(labels.group_of(pod) is not None for pod in cluster.pods)


def enables(profile: KubeSchedulerProfile, plugin: str) -> bool:
    plugins = profile.plugins
    return any(
        ref.name == plugin
        for plugin_set in (plugins.multi_point, *plugins.points.values())
        for ref in plugin_set.enabled
    )


def some(keys: Sequence[str]) -> str:
    """The first three, and how many more."""
    first = ", ".join(keys[:3])
    return first if len(keys) <= 3 else f"{first} and {len(keys) - 3} more"


def _counted(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
