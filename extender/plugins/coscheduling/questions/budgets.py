"""PodDisruptionBudgets that would keep pods on a node that is drained, as they are at this moment.

The answer to a drain tells them: `kubectl drain` evicts by the API, which refuses where a budget is used up, and tries again until
the pod's controller has made another. By its unhealthyPodEvictionPolicy a budget may let pods go that are not Ready; that is not counted.
No counterpart in kube-scheduler; Kubernetes: pkg/registry/core/pod/storage/eviction.go
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from extender.api import corev1, policyv1
from extender.framework.preemption.disruption_budgets import budgets_of
from extender.plugins.coscheduling.report.outlook import UsedUpBudget

STAY = ("DaemonSet", "Node")
"""Controllers of pods that `kubectl drain` leaves there. A static pod's is its node."""


def used_up(pods: Iterable[corev1.Pod], budgets: Iterable[policyv1.PodDisruptionBudget]) -> Iterator[UsedUpBudget]:
    """Budgets that allow fewer evictions than they count pods among these, by name. pods: all on the node; those that `kubectl drain`
    leaves there are none. Costs the budgets of the pods' own namespaces for each pod."""
    evicted = [pod for pod in pods if _is_evicted(pod)]
    namespaces = {pod.namespace for pod in evicted}
    near: list[policyv1.PodDisruptionBudget] = [each for each in budgets if each.metadata.namespace in namespaces]
    for budget, counted in _counted(evicted, near):
        if len(counted) > (allowed := max(0, budget.status.disruptions_allowed)):
            name = f"{budget.metadata.namespace}/{budget.metadata.name}"
            yield UsedUpBudget(name, allowed, tuple(sorted(counted)))


def _counted(
    pods: Iterable[corev1.Pod], budgets: Sequence[policyv1.PodDisruptionBudget]
) -> list[tuple[policyv1.PodDisruptionBudget, list[str]]]:
    """Each with the keys of the pods that it counts; in the order of their names."""
    counted = defaultdict(list)
    for pod in pods:
        for index in budgets_of(pod, budgets):
            counted[index].append(pod.key)
    found = [(budgets[index], keys) for index, keys in counted.items()]
    return sorted(found, key=lambda each: (each[0].metadata.namespace, each[0].metadata.name))


def _is_evicted(pod: corev1.Pod) -> bool:
    """A pod that waits for a node of its own goes without a word of its budget. Go: canIgnorePDB"""
    if pod.status.phase in ("Succeeded", "Failed", "Pending") or pod.metadata.deletion_timestamp is not None:
        return False
    owner = pod.metadata.controller
    return owner is None or owner.kind not in STAY
