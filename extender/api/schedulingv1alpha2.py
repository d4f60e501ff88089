"""scheduling.k8s.io/v1alpha2: kube-scheduler's own PodGroup as Kubernetes 1.36 has it; v1beta1 replaces it in 1.37.

Read where it is configured and served; pods name it in spec.schedulingGroup.podGroupName. Fields that scheduling does not
look at, such as references to a Workload, are left out.
Kubernetes: k8s.io/api/scheduling/v1alpha2/types.go
"""

from __future__ import annotations

from typing import ClassVar

from extender.api.metav1 import Condition, GroupObject, Int32, Object

GROUP = "scheduling.k8s.io"
VERSION = "v1alpha2"


class BasicSchedulingPolicy(Object, frozen=True, gc=False):
    """Empty: that it is there says it all."""


class GangSchedulingPolicy(Object, frozen=True, gc=False):
    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Object, frozen=True, gc=False):
    """A union: exactly one is set. basic: the pods are on their own."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Object, frozen=True, gc=False):
    """key: a node label; all pods go to nodes with one value of it."""

    key: str = ""


class SchedulingConstraints(Object, frozen=True, gc=False):
    """Go: PodGroupSchedulingConstraints, and CompositePodGroupSchedulingConstraints, which is like it."""

    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(Object, frozen=True, gc=False):
    name: str = ""


class PodGroupSpec(Object, frozen=True, gc=False):
    """disruption_mode: Pod or PodGroup. The API server's Priority admission sets priority by priority_class_name."""

    parent_composite_pod_group_name: ClassVar[str | None] = None
    preemption_policy: ClassVar[str | None] = None

    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupStatus(Object, frozen=True, gc=False):
    conditions: tuple[Condition, ...] = ()


class PodGroup(GroupObject, frozen=True, gc=False):
    scheduled: ClassVar[str] = "PodGroupScheduled"

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
