"""What pods ask for, summed up once for all pods that have the same parts: the pods of a Deployment share them as objects.

PodInfo asks; client/shared_parts is what makes equal parts one object. Of 150,000 pods some hundred kinds are summed up, and kept.
kube-scheduler has no counterpart: it sums up each pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from extender.api import corev1
from extender.framework.pod_requests import Amounts, pod_level_requests_set, pod_requests, resize_infeasible
from extender.framework.resource import (
    CPU,
    DEFAULT_MEMORY_REQUEST,
    DEFAULT_MILLI_CPU_REQUEST,
    MEMORY,
    Resource,
)

NON_ZERO_DEFAULTS: Amounts = {CPU: DEFAULT_MILLI_CPU_REQUEST, MEMORY: DEFAULT_MEMORY_REQUEST}
MOST_KNOWN = 4_096  # kinds of pods; beyond it is begun anew
MOST_PARTS = 64  # containers, ports and resources of a kind that is kept: one pod may have thousands


@dataclass(frozen=True, slots=True)
class Requested:
    """accounted: what counts on its node; not to be changed. non_zero: milliCPU and bytes, 100m and 200Mi where nothing is asked for."""

    accounted: Resource
    non_zero: tuple[int, int]


# By the identity of all that is read of a pod. The parts are kept beside what came of them: while an entry is here, so are its ids.
_known: dict[tuple[object, ...], tuple[tuple[object, ...], Requested]] = {}


def requested_by(pod: corev1.Pod) -> Requested:
    """From any thread: two that sum up the same kind at once come to the same."""
    spec, status = pod.spec, pod.status
    parts = (
        spec.containers,
        spec.init_containers,
        spec.overhead,
        spec.resources,
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
    )
    key = (*map(id, parts), resize_infeasible(pod))
    known = _known.get(key)
    if known is not None:
        return known[1]
    found = Requested(Resource.from_amounts(pod_requests(pod, use_status=True)), _non_zero(pod))
    containers = (*spec.containers, *spec.init_containers)
    if len(containers) + sum(len(each.ports) for each in containers) + len(found.accounted.scalar) > MOST_PARTS:
        return found
    if len(_known) >= MOST_KNOWN:
        _known.clear()
    _known[key] = parts, found
    return found


def _non_zero(pod: corev1.Pod) -> tuple[int, int]:
    missing = NON_ZERO_DEFAULTS
    if pod_level_requests_set(pod):
        asked = pod_requests(pod, use_status=True)
        missing = {name: amount for name, amount in NON_ZERO_DEFAULTS.items() if name not in asked}
    amounts = pod_requests(pod, use_status=True, non_missing=missing)
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)
