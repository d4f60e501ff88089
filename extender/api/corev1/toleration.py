"""Taints and tolerations, and the rule by which one tolerates the other.

Kubernetes: k8s.io/api/core/v1/toleration.go
"""

from __future__ import annotations

from extender.api.metav1 import Int64, Object

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"

TAINT_NODE_UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class Taint(Object, frozen=True, gc=False):
    key: str
    value: str = ""
    effect: str = ""


class Toleration(Object, frozen=True, gc=False):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None

    def tolerates(self, taint: Taint) -> bool:
        """Go: Toleration.ToleratesTaint. An empty key with Equal compares values only; Lt and Gt are behind a gate that is off."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
        return False
