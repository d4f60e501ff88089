"""Which evictions would violate a PodDisruptionBudget.

kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation)
"""

from __future__ import annotations

from collections.abc import Sequence

from extender.api import corev1, policyv1
from extender.api.metav1 import LabelSelector
from extender.framework.pod_info import PodInfo


def split_by_violation(
    pods: Sequence[PodInfo], pdbs: Sequence[policyv1.PodDisruptionBudget]
) -> tuple[list[PodInfo], list[PodInfo]]:
    """(pods whose eviction violates a budget, the others), each in the order given: earlier pods use the budget up."""
    allowed = [pdb.status.disruptions_allowed for pdb in pdbs]
    violating: list[PodInfo] = []
    others: list[PodInfo] = []
    for info in pods:
        violated = False
        for index in budgets_of(info.pod, pdbs):
            allowed[index] -= 1
            violated = violated or allowed[index] < 0
        (violating if violated else others).append(info)
    return violating, others


def budgets_of(pod: corev1.Pod, pdbs: Sequence[policyv1.PodDisruptionBudget]) -> tuple[int, ...]:
    """The positions of those that count the pod's eviction."""
    return tuple(index for index, pdb in enumerate(pdbs) if _counts_for(pdb, pod))


def _counts_for(pdb: policyv1.PodDisruptionBudget, pod: corev1.Pod) -> bool:
    """A budget without a selector covers no pod, and one that the API server has counted for this pod already is not used twice."""
    selector = pdb.spec.selector
    if not pod.labels or pdb.metadata.namespace != pod.namespace or selector is None or selector.empty:
        return False
    return _valid(selector) and selector.matches(pod.labels) and pod.name not in pdb.status.disrupted_pods


def _valid(selector: LabelSelector) -> bool:
    """Go makes no selector of one with such an expression, and then the budget covers no pod."""
    for requirement in selector.match_expressions:
        if requirement.operator in ("In", "NotIn"):
            if not requirement.values:
                return False
        elif requirement.operator not in ("Exists", "DoesNotExist") or requirement.values:
            return False
    return True
