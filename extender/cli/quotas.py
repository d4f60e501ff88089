"""What ResourceQuotas would refuse of pods that are not there yet: `whatif` says it, as the caller may see the quotas of its namespace.

The API server refuses such a pod when it is created, so that no scheduler ever sees it. Computed as its admission does, for all pods
of the question together; what other admission plugins change or refuse is not known here.
Kubernetes: k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go (CheckRequest), pkg/quota/v1/evaluator/core/pods.go
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from extender.api import corev1
from extender.api.codec import convert
from extender.api.quantity import ResourceList
from extender.framework.pod_requests import pod_requests
from extender.framework.resource import CPU, EPHEMERAL_STORAGE, HUGEPAGES_PREFIX, MEMORY
from extender.plugins.coscheduling.report.gang_status import amount_text
from extender.plugins.coscheduling.report.outlook import QuotaRefusal

if TYPE_CHECKING:
    from extender.client.connection import Connection

Raw = Mapping[str, Any]
Usage = dict[str, int]
"""By the names that quotas use; CPU in milli, the rest in base units."""

COMPUTE = (CPU, MEMORY, EPHEMERAL_STORAGE)
REQUESTS, LIMITS = "requests.", "limits."
NEEDED = frozenset((CPU, MEMORY, "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"))
"""Where a quota has one of them, each container has to name it."""


def refusals(cluster: Connection, question: Raw) -> tuple[QuotaRefusal, ...]:
    """Of each namespace that is asked about. Where the caller may not see the quotas, that is said."""
    from extender.client.errors import ApiError
    from extender.client.interface import RESOURCE_QUOTAS, list_all

    found: list[QuotaRefusal] = []
    pods, groups = by_namespace(question["pods"]), by_namespace(question["podGroups"])
    for namespace in sorted(pods.keys() | groups.keys()):
        try:
            quotas = list(list_all(cluster, RESOURCE_QUOTAS, namespace=namespace))
        except ApiError as error:
            found.append(QuotaRefusal(namespace, "", "", f"not known: {error}"))
            continue
        found += refused(quotas, pods.get(namespace, ()), groups.get(namespace, ()))
    return tuple(found)


def by_namespace(objects: Iterable[Raw]) -> dict[str, list[Raw]]:
    found: dict[str, list[Raw]] = {}
    for each in objects:
        found.setdefault(each["metadata"].get("namespace") or "default", []).append(each)
    return found


def refused(
    quotas: Iterable[corev1.ResourceQuota], pods: Iterable[Raw], pod_groups: Iterable[Raw]
) -> Iterator[QuotaRefusal]:
    """All of one namespace. In the order of the quotas' names, of each by resource."""
    asked = [(raw.get("spec") or {}, convert(raw, corev1.Pod)) for raw in pods]
    usages = [(spec, pod, usage_of(pod)) for spec, pod in asked]
    groups = _count_of(pod_groups)
    for quota in sorted(quotas, key=lambda each: each.metadata.name):
        total = dict(groups) if not _scopes(quota) else {}
        unnamed: set[str] = set()
        for spec, pod, usage in usages:
            if not all(_in_scope(scope, spec, pod) for scope in _scopes(quota)):
                continue
            unnamed |= _unnamed(pod, NEEDED & quota.status.hard.keys())
            for name, amount in usage.items():
                total[name] = total.get(name, 0) + amount
        key = f"{quota.metadata.namespace}/{quota.metadata.name}"
        for name in sorted(unnamed):
            yield QuotaRefusal(
                quota.metadata.namespace, key, name, "each container has to name it, unless a LimitRange does"
            )
        for name, hard in sorted(quota.status.hard.items()):
            if name not in total or name in unnamed:
                continue
            most, used = _amount(name, {name: hard}), _amount(name, quota.status.used)
            if total[name] and used + total[name] > most:
                yield QuotaRefusal(quota.metadata.namespace, key, name, _over(name, total[name], used, most))


def usage_of(pod: corev1.Pod) -> Usage:
    """Go: PodUsageFunc"""
    usage: Usage = {"pods": 1, "count/pods": 1}
    for name, amount in pod_requests(pod).items():
        if name in COMPUTE or name.startswith(HUGEPAGES_PREFIX):
            usage[name] = amount
        usage[f"{REQUESTS}{name}"] = amount
    limited = pod_requests(_by_limits(pod))
    usage.update({f"{LIMITS}{name}": amount for name, amount in limited.items() if name in COMPUTE})
    return usage


def _by_limits(pod: corev1.Pod) -> corev1.Pod:
    """As if it requested its limits. Go: resourcehelper.PodLimits"""
    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec,
            containers=tuple(map(_limited, spec.containers)),
            init_containers=tuple(map(_limited, spec.init_containers)),
            resources=None if spec.resources is None else replace(spec.resources, requests=spec.resources.limits),
            overhead={},
        ),
    )


def _limited(container: corev1.Container) -> corev1.Container:
    return replace(container, resources=replace(container.resources, requests=container.resources.limits))


def _count_of(pod_groups: Iterable[Raw]) -> Usage:
    """Custom resources count by their plural and API group."""
    total: Usage = {}
    for each in pod_groups:
        name = f"count/podgroups.{str(each.get('apiVersion')).rpartition('/')[0]}"
        total[name] = total.get(name, 0) + 1
    return total


def _scopes(quota: corev1.ResourceQuota) -> tuple[corev1.ScopedResourceSelectorRequirement, ...]:
    named = (corev1.ScopedResourceSelectorRequirement(each, "Exists") for each in quota.spec.scopes)
    return (*named, *quota.spec.scope_selector.match_expressions)


def _in_scope(scope: corev1.ScopedResourceSelectorRequirement, spec: Raw, pod: corev1.Pod) -> bool:
    """Go: podMatchesScopeFunc. A scope that is not known covers nothing."""
    match scope.scope_name:
        case "Terminating":
            return spec.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return spec.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _best_effort(pod)
        case "NotBestEffort":
            return not _best_effort(pod)
        case "PriorityClass":
            return _selects(scope, pod.spec.priority_class_name)
        case "CrossNamespacePodAffinity":
            return any(each.namespaces or each.namespace_selector is not None for each in _terms(pod))
    return False


def _selects(scope: corev1.ScopedResourceSelectorRequirement, value: str) -> bool:
    match scope.operator:
        case "In":
            return value in scope.values
        case "NotIn":
            return value not in scope.values
        case "Exists":
            return bool(value)
    return scope.operator == "DoesNotExist" and not value


def _best_effort(pod: corev1.Pod) -> bool:
    """Go: qos.GetPodQOS"""
    resources = [each.resources for each in (*pod.spec.containers, *pod.spec.init_containers)]
    if pod.spec.resources is not None:
        resources.append(pod.spec.resources)
    named = {name for each in resources for amounts in (each.requests, each.limits) for name in amounts}
    return not named & {CPU, MEMORY}


def _terms(pod: corev1.Pod) -> Iterator[corev1.PodAffinityTerm]:
    affinity = pod.spec.affinity
    for each in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if each is not None:
            yield from each.required_during_scheduling_ignored_during_execution
            yield from (
                weighted.pod_affinity_term for weighted in each.preferred_during_scheduling_ignored_during_execution
            )


def _unnamed(pod: corev1.Pod, needed: Iterable[str]) -> set[str]:
    """Of these resources those that a container leaves out. Go: enforcePodContainerConstraints"""
    found = set()
    for name in needed:
        limits, resource = name.startswith(LIMITS), name.removeprefix(REQUESTS).removeprefix(LIMITS)
        for each in (*pod.spec.containers, *pod.spec.init_containers):
            named = each.resources.limits if limits else {**each.resources.limits, **each.resources.requests}
            if resource not in named:
                found.add(name)
    return found


def _amount(name: str, amounts: ResourceList) -> int:
    """0 for one that is not there."""
    quantity = amounts.get(name)
    if quantity is None:
        return 0
    return quantity.milli_value if _plain(name) == CPU else quantity.value


def _over(name: str, wanted: int, used: int, hard: int) -> str:
    shown = [amount_text(_plain(name), each) for each in (wanted, max(0, hard - used), hard)]
    return f"{shown[0]} wanted, {shown[1]} of {shown[2]} left"


def _plain(name: str) -> str:
    return name.removeprefix(REQUESTS).removeprefix(LIMITS)
