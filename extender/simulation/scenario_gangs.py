"""What a scenario says of groups of pods, read and checked: keys of our own beside those of the parity corpus.

A scenario in which no pod is of a group, and that has no podGroups, is read as if these keys did not exist.
No counterpart in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extender.api import corev1, schedulingv1alpha1, schedulingv1alpha2, schedulingv1alpha3, schedulingv1beta1
from extender.client.interface import FOREIGN_POD_GROUPS
from extender.config.load import read_extender_configuration
from extender.config.plugin_args import CoschedulingArgs
from extender.config.types import ExtenderConfiguration
from extender.config.yaml_file import ConfigurationError, Document
from extender.framework.runtime.framework import Framework, FrameworkDependencies
from extender.framework.runtime.registry import Registry
from extender.plugins import names
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.simulation.gangs import Gangs, Members, PodGroup, new_coscheduling
from extender.simulation.scenario_fields import Json, ScenarioError, converted, listed, many

GANG_KEYS = frozenset({"podGroups", "pendingPods", "extender", "mayEvict"})
OF_VERSION: dict[str, type[PodGroup]] = {
    "": schedulingv1alpha1.PodGroup,
    f"{schedulingv1alpha1.GROUP}/{schedulingv1alpha1.VERSION}": schedulingv1alpha1.PodGroup,
    f"{schedulingv1alpha2.GROUP}/{schedulingv1alpha2.VERSION}": schedulingv1alpha2.PodGroup,
    f"{schedulingv1beta1.GROUP}/{schedulingv1beta1.VERSION}": schedulingv1beta1.PodGroup,
    **{each.api_version: each.type for each in FOREIGN_POD_GROUPS},
}
OF_KIND: dict[str, dict[str, type[PodGroup]]] = {
    "PodGroup": OF_VERSION,
    "CompositePodGroup": {
        f"{schedulingv1alpha3.GROUP}/{schedulingv1alpha3.VERSION}": schedulingv1alpha3.CompositePodGroup
    },
}


def gangs_of(
    scenario: Json,
    pending: corev1.Pod,
    framework: Framework,
    registry: Registry,
    dependencies: FrameworkDependencies,
    path: str,
    *,
    scores: bool = False,
) -> Gangs | None:
    """framework: of the pod's profile, which may have Coscheduling itself. scores: whether single pods are scored by what they
    leave free, as the extender does it. Raises ScenarioError, RegistryError."""
    own = framework.plugins.get(names.COSCHEDULING)
    configuration = settings_of(scenario, path) or ExtenderConfiguration()
    args = _args(framework, configuration)
    may_evict = _may_evict(scenario, path)
    pods = list(_pods(scenario, pending, path))
    pod_groups = _pod_groups(scenario, args, path)
    if not _any_group(pods, pod_groups, args, path) and own is None:
        return None
    coscheduling = own if isinstance(own, Coscheduling) else new_coscheduling(args, registry, dependencies)
    gangs = Gangs(coscheduling, registry, dependencies, configuration, may_evict=may_evict, scores=scores)
    gangs.see(Members([pod for _, pod in pods], pod_groups))
    return gangs


def settings_of(scenario: Json, path: str) -> ExtenderConfiguration | None:
    """The extender's own; None where the scenario says nothing of them. Raises ScenarioError."""
    if scenario.get("extender") is None:
        return None
    try:
        return read_extender_configuration(Document(f"{path}.extender", scenario["extender"]))
    except ConfigurationError as error:
        raise ScenarioError(str(error)) from error


def _args(framework: Framework, configuration: ExtenderConfiguration) -> CoschedulingArgs:
    """The profile's, where it has the plugin; else the extender's."""
    if names.COSCHEDULING in framework.plugins:
        return framework.profile.coscheduling_args
    return configuration.coscheduling_args


def _may_evict(scenario: Json, path: str) -> bool:
    value = scenario.get("mayEvict", True)
    if not isinstance(value, bool):
        raise ScenarioError(f"{path}.mayEvict: expected true or false")
    return value


def _pods(scenario: Json, pending: corev1.Pod, path: str) -> Iterator[tuple[str, corev1.Pod]]:
    """Each with its place. The pod in question may be among those that wait: it is one pod."""
    for key in ("pods", "nominated"):
        for index, pod in enumerate(many(scenario, key, corev1.Pod, path)):
            yield f"{path}.{key}[{index}]", pod
    yield f"{path}.pending", pending
    seen = {pending.uid: "pending"}
    for index, pod in enumerate(many(scenario, "pendingPods", corev1.Pod, path)):
        where = f"{path}.pendingPods[{index}]"
        if pod.node_name:
            raise ScenarioError(f"{where}.spec.nodeName: these are the pods that wait; those that run go into pods")
        if not pod.uid:
            raise ScenarioError(f"{where}.metadata.uid: required")
        if pod.uid == pending.uid and pod.key == pending.key:
            continue
        if pod.uid in seen:
            raise ScenarioError(f"{where}.metadata.uid: {pod.uid!r} is that of {seen[pod.uid]}")
        seen[pod.uid] = f"pendingPods[{index}]"
        yield where, pod


def _pod_groups(scenario: Json, args: CoschedulingArgs, path: str) -> list[PodGroup]:
    found: dict[
        tuple[bool, str], PodGroup
    ] = {}  # by whether it is a CompositePodGroup, which has names of its own, and key
    for index, entry in enumerate(listed(scenario, "podGroups", path)):
        where = f"{path}.podGroups[{index}]"
        group = converted(entry, _type_of(entry, args, where), where)
        for field, value in (("name", group.metadata.name), ("namespace", group.metadata.namespace)):
            if not value:
                raise ScenarioError(f"{where}.metadata.{field}: required")
        key = isinstance(group, schedulingv1alpha3.CompositePodGroup), group.key
        if key in found:
            raise ScenarioError(f"{where}.metadata.name: {group.key} is there already")
        found[key] = group
    return list(found.values())


def _type_of(entry: Any, args: CoschedulingArgs, where: str) -> type[PodGroup]:
    if not isinstance(entry, dict):
        raise ScenarioError(f"{where}: expected an object")
    kind, version = entry.get("kind", "PodGroup"), entry.get("apiVersion", "")
    of_version = OF_KIND.get(kind) if isinstance(kind, str) else None
    if of_version is None:
        raise ScenarioError(f"{where}.kind: must be PodGroup, not {kind!r}")
    type_ = of_version.get(version) if isinstance(version, str) else None
    if type_ is None:
        raise ScenarioError(f"{where}.apiVersion: must be one of {', '.join(filter(None, of_version))}")
    if (
        issubclass(type_, schedulingv1alpha2.PodGroup | schedulingv1alpha3.CompositePodGroup)
        and not args.in_tree_pod_groups
    ):
        raise ScenarioError(
            f"{where}.apiVersion: {version} counts only with inTreePodGroups in Coscheduling's arguments"
        )
    return type_


def _any_group(
    pods: list[tuple[str, corev1.Pod]], pod_groups: list[PodGroup], args: CoschedulingArgs, path: str
) -> bool:
    """Members are told apart by UID, and found by namespace."""
    labels = GroupLabels.of(args)
    members = [(where, pod) for where, pod in pods if labels.group_of(pod) is not None]
    for where, pod in members:
        for field, value in (("uid", pod.uid), ("namespace", pod.namespace)):
            if not value:
                raise ScenarioError(f"{where}.metadata.{field}: required of a pod that names a group")
    waiting = {pod.uid: where for where, pod in pods if not pod.node_name}
    for where, pod in pods:
        if members and pod.node_name and pod.uid in waiting:
            raise ScenarioError(f"{where}.metadata.uid: {pod.uid!r} is that of a pod that waits")
    return bool(members or pod_groups)
