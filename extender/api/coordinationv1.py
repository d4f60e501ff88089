"""coordination.k8s.io/v1: Lease, by which the leading kube-scheduler, or extender, is known.

Kubernetes: k8s.io/api/coordination/v1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import Int32, Object, ObjectMeta, Time


class LeaseSpec(Object, frozen=True, gc=False):
    holder_identity: str = ""
    lease_duration_seconds: Int32 = 0
    acquire_time: Time | None = None
    renew_time: Time | None = None
    lease_transitions: Int32 = 0


class Lease(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: LeaseSpec = LeaseSpec()
