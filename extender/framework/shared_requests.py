"""What pods ask for, summed up once for all pods that have the same parts: the pods of a Deployment share them as objects.

PodInfo asks, and holds the answer; client/shared_parts is what makes equal parts one object. Of 150,000 pods some hundred kinds are summed
up, and each goes with the last pod of its kind. kube-scheduler has no counterpart: it sums up each pod.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakValueDictionary

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


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Requested:
    """accounted: what counts on its node; not to be changed. non_zero: milliCPU and bytes, 100m and 200Mi where nothing is asked for.

    parts: what came to that, kept beside it: while this is there, so are their ids."""

    accounted: Resource
    non_zero: tuple[int, int]
    parts: tuple[object, ...]


# By the identity of all that is read of a pod, as long as a pod of the kind holds it.
_known: WeakValueDictionary[tuple[object, ...], Requested] = WeakValueDictionary()


def requested_by(pod: corev1.Pod) -> Requested:
    """To be held as long as the pod is: others of its kind find it then. From any thread: two that sum up the same kind at once come to
    the same."""
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
    found = _known.get(key)
    if found is None:
        found = Requested(Resource.from_amounts(pod_requests(pod, use_status=True)), _non_zero(pod), parts)
        _known[key] = found
    return found


def _non_zero(pod: corev1.Pod) -> tuple[int, int]:
    missing = NON_ZERO_DEFAULTS
    if pod_level_requests_set(pod):
        asked = pod_requests(pod, use_status=True)
        missing = {name: amount for name, amount in NON_ZERO_DEFAULTS.items() if name not in asked}
    amounts = pod_requests(pod, use_status=True, non_missing=missing)
    return amounts.get(CPU, 0), amounts.get(MEMORY, 0)
