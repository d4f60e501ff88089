"""policy/v1: PodDisruptionBudget.

Kubernetes: k8s.io/api/policy/v1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import Int32, LabelSelector, Object, ObjectMeta, Time


class PodDisruptionBudgetSpec(Object, frozen=True, gc=False):
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Object, frozen=True, gc=False):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, Time | None] = {}


class PodDisruptionBudget(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
