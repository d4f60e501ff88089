"""scheduling.volcano.sh/v1beta1: Volcano's PodGroup.

Read where it is served, and never written. Pods name it in the annotation scheduling.k8s.io/group-name.
Volcano: volcano.sh/apis/pkg/apis/scheduling/v1beta1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import GroupObject, Int32, Object
from extender.api.quantity import ResourceList

GROUP = "scheduling.volcano.sh"
VERSION = "v1beta1"
GROUP_NAME_ANNOTATION = "scheduling.k8s.io/group-name"
GROUP_MIN_MEMBER_ANNOTATION = f"{GROUP}/group-min-member"
TASK_SPEC = "volcano.sh/task-spec"


class NetworkTopology(Object, frozen=True, gc=False):
    """mode: hard or soft. highest_tier_allowed: 1 is the narrowest tier; highest_tier_name says it by name instead."""

    mode: str = "hard"
    highest_tier_allowed: Int32 | None = None
    highest_tier_name: str = ""


class SubGroupPolicy(Object, frozen=True, gc=False):
    """A part of the group with a minimum or a topology of its own."""

    name: str = ""


class PodGroupSpec(Object, frozen=True, gc=False):
    """min_task_member: by the task's name."""

    min_member: Int32 = 0
    min_task_member: dict[str, Int32] = {}
    queue: str = ""
    priority_class_name: str = ""
    min_resources: ResourceList = {}
    network_topology: NetworkTopology | None = None
    sub_group_policy: tuple[SubGroupPolicy, ...] = ()


class PodGroupStatus(Object, frozen=True, gc=False):
    phase: str = ""


class PodGroup(GroupObject, frozen=True, gc=False):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
