"""scheduling.k8s.io/v1: PriorityClass.

Kubernetes: k8s.io/api/scheduling/v1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import Int32, Object, ObjectMeta


class PriorityClass(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
