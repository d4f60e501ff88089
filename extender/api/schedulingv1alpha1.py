"""scheduling.x-k8s.io/v1alpha1: PodGroup, the same object as scheduler-plugins' own, plus status.conditions.

scheduler-plugins: apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from typing import ClassVar

from extender.api.metav1 import Condition, GroupObject, Int32, Object, Time
from extender.api.quantity import ResourceList

GROUP = "scheduling.x-k8s.io"
VERSION = "v1alpha1"
POD_GROUP_LABEL = f"{GROUP}/pod-group"
LIGHTWEIGHT_NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
LIGHTWEIGHT_MIN_AVAILABLE_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
GANG_GATE = f"{GROUP}/gang"
GANG_READY = f"{GROUP}/GangReady"


class PodGroupSpec(Object, frozen=True, gc=False):
    min_member: Int32 = 1  # absent is no gang constraint; an explicit 0 is refused
    min_resources: ResourceList = {}
    schedule_timeout_seconds: Int32 | None = None


class PodGroupStatus(Object, frozen=True, gc=False):
    phase: str = ""
    occupied_by: str = ""
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    schedule_start_time: Time | None = None
    conditions: tuple[Condition, ...] = ()


class PodGroup(GroupObject, frozen=True, gc=False):
    scheduled: ClassVar[str] = "Scheduled"

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()
