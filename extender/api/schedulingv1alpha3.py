"""scheduling.k8s.io/v1alpha3: CompositePodGroup of Kubernetes 1.37, a gang of PodGroups and of further CompositePodGroups.

They name it in spec.parentCompositePodGroupName.
Kubernetes: k8s.io/api/scheduling/v1alpha3/types.go
"""

from __future__ import annotations

from extender.api.metav1 import GroupObject, Int32, Object
from extender.api.schedulingv1alpha2 import GROUP as GROUP
from extender.api.schedulingv1alpha2 import BasicSchedulingPolicy, PodGroupStatus, SchedulingConstraints
from extender.api.schedulingv1beta1 import DisruptionMode

VERSION = "v1alpha3"


class CompositeGangSchedulingPolicy(Object, frozen=True, gc=False):
    min_group_count: Int32 = 0


class CompositePodGroupSchedulingPolicy(Object, frozen=True, gc=False):
    """A union: exactly one is set. basic: the groups are on their own."""

    basic: BasicSchedulingPolicy | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class CompositePodGroupSpec(Object, frozen=True, gc=False):
    parent_composite_pod_group_name: str | None = None
    scheduling_policy: CompositePodGroupSchedulingPolicy = CompositePodGroupSchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroup(GroupObject, frozen=True, gc=False):
    spec: CompositePodGroupSpec = CompositePodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
