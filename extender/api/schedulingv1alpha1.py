"""scheduling.x-k8s.io/v1alpha1: PodGroup, the same object as scheduler-plugins' own, plus status.conditions.

scheduler-plugins: apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from datetime import datetime

from extender.api.metav1 import Condition, Object, ObjectMeta
from extender.api.quantity import ResourceList

GROUP = "scheduling.x-k8s.io"
VERSION = "v1alpha1"
POD_GROUP_LABEL = f"{GROUP}/pod-group"
LIGHTWEIGHT_NAME_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
LIGHTWEIGHT_MIN_AVAILABLE_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
GANG_GATE = f"{GROUP}/gang"
GANG_READY = f"{GROUP}/GangReady"


class PodGroupSpec(Object, frozen=True, gc=False):
    min_member: int = 1  # absent is no gang constraint; an explicit 0 is refused
    min_resources: ResourceList = {}
    schedule_timeout_seconds: int | None = None


class PodGroupStatus(Object, frozen=True, gc=False):
    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: datetime | None = None
    conditions: tuple[Condition, ...] = ()


class PodGroup(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return self.metadata.key
