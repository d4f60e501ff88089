"""How much a pod asks for: containers, sidecars, init containers, pod-level resources, overhead, in-place resize.

Amounts are whole numbers by resource name, cpu in milliCPU, the rest in their base unit. They are summed up in thousandths,
and only the sum is rounded: twice `128m` of memory are one byte.
Kubernetes: k8s.io/component-helpers/resource/helpers.go
"""

from __future__ import annotations

from collections.abc import Mapping

from extender.api import corev1
from extender.api.quantity import MAX_INT64, ResourceList
from extender.framework.resource import CPU, HUGEPAGES_PREFIX, MEMORY

Amounts = dict[str, int]


def _thousandths(resources: ResourceList) -> Amounts:
    """Parsed amounts by name; of what is too much to count in thousandths, by value."""
    return {
        name: q.milli_value if -MAX_INT64 <= q.milli_value < MAX_INT64 else q.value * 1000
        for name, q in resources.items()
    }


def _rounded(total: Amounts) -> Amounts:
    """cpu in milliCPU, the rest in base units, rounded up. Go: Quantity.Value."""
    return {name: amount if name == CPU else -(-amount // 1000) for name, amount in total.items()}


def supported_at_pod_level(name: str) -> bool:
    """The resources that `spec.resources` may set. Go: IsSupportedPodLevelResource."""
    return name in (CPU, MEMORY) or name.startswith(HUGEPAGES_PREFIX)


def pod_level_requests_set(pod: corev1.Pod) -> bool:
    resources = pod.spec.resources
    return resources is not None and any(supported_at_pod_level(name) for name in resources.requests)


def pod_requests(
    pod: corev1.Pod,
    *,
    non_missing: Mapping[str, int] | None = None,
    skip_pod_level: bool = False,
    use_status: bool = False,
) -> Amounts:
    """Go: resourcehelper.PodRequests with PodResourcesOptions.

    non_missing: amounts used per container where the name is absent (an explicit 0 stays 0).
    use_status: what a resize in place has already been given counts, as in NodeInfo's accounting.
    """
    defaults = {name: amount if name == CPU else amount * 1000 for name, amount in (non_missing or {}).items()}
    total = _container_requests(pod, defaults, use_status)
    if not skip_pod_level and pod_level_requests_set(pod):
        total.update(_pod_level_requests(pod, use_status))
    _add(total, _thousandths(pod.spec.overhead))
    return _rounded(total)


def _container_requests(pod: corev1.Pod, non_missing: Mapping[str, int], use_status: bool) -> Amounts:
    total: Amounts = {}
    statuses: dict[str, corev1.ContainerStatus] = {}
    init_statuses: dict[str, corev1.ContainerStatus] = {}
    if use_status:
        statuses = {status.name: status for status in pod.status.container_statuses}
        init_statuses = {status.name: status for status in pod.status.init_container_statuses}
    for container in pod.spec.containers:
        _add(total, _one_container(pod, container, statuses.get(container.name), non_missing))
    if not pod.spec.init_containers:
        return total
    restartable: Amounts = {}
    peak: Amounts = {}
    for container in pod.spec.init_containers:
        status = init_statuses.get(container.name) if container.restartable else None
        requests = _one_container(pod, container, status, non_missing)
        if container.restartable:
            _add(total, requests)
            _add(restartable, requests)
            candidate = restartable
        else:
            candidate = dict(requests)
            _add(candidate, restartable)
        _raise_to(peak, candidate)
    _raise_to(total, peak)
    return total


def _one_container(
    pod: corev1.Pod,
    container: corev1.Container,
    status: corev1.ContainerStatus | None,
    non_missing: Mapping[str, int],
) -> Amounts:
    requests = _thousandths(container.resources.requests)
    if status is not None and status.resources is not None:
        given = _thousandths(status.resources.requests)
        _raise_to(given, _thousandths(status.allocated_resources))
        if not resize_infeasible(pod):
            _raise_to(given, requests)
        requests = given
    for name, amount in non_missing.items():
        requests.setdefault(name, amount)
    return requests


def _pod_level_requests(pod: corev1.Pod, use_status: bool) -> Amounts:
    """Only the resources that the spec names; of these, what a resize has given already counts, and if that is nothing, nothing."""
    resources = pod.spec.resources
    wanted = _thousandths(resources.requests) if resources is not None else {}
    names = [name for name in wanted if supported_at_pod_level(name)]
    if use_status and pod.status.resources is not None:
        given = _thousandths(pod.status.resources.requests)
        _raise_to(given, _thousandths(pod.status.allocated_resources))
        if not resize_infeasible(pod):
            _raise_to(given, wanted)
        wanted = given
    return {name: wanted.get(name, 0) for name in names}


def resize_infeasible(pod: corev1.Pod) -> bool:
    """Whether its node can never give what a resize asks for."""
    return any(c.type == "PodResizePending" and c.reason == "Infeasible" for c in pod.status.conditions)


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        if name not in total or total[name] < amount:
            total[name] = amount
