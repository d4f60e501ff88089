"""coordination.k8s.io/v1: Lease, by which the leading kube-scheduler is known.

Kubernetes: k8s.io/api/coordination/v1/types.go
"""

from __future__ import annotations

from datetime import datetime

from extender.api.metav1 import Object, ObjectMeta


class LeaseSpec(Object, frozen=True, gc=False):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    acquire_time: datetime | None = None
    renew_time: datetime | None = None


class Lease(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()
