"""ResourceQuota, as far as it says what it would refuse.

Kubernetes: k8s.io/api/core/v1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import Object, ObjectMeta
from extender.api.quantity import ResourceList


class ScopedResourceSelectorRequirement(Object, frozen=True, gc=False):
    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class ScopeSelector(Object, frozen=True, gc=False):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] = ()


class ResourceQuotaSpec(Object, frozen=True, gc=False):
    scopes: tuple[str, ...] = ()
    scope_selector: ScopeSelector = ScopeSelector()


class ResourceQuotaStatus(Object, frozen=True, gc=False):
    """hard: what the API server enforces; of a quota that nothing has looked at yet it is empty."""

    hard: ResourceList = {}
    used: ResourceList = {}


class ResourceQuota(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()
