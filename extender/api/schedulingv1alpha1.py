"""scheduling.x-k8s.io/v1alpha1: PodGroup, the same object as scheduler-plugins' own, plus status.conditions.

scheduler-plugins: apis/scheduling/v1alpha1/types.go
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import field

from extender.api.metav1 import Condition, GroupObject, Int32, Object, ObjectMeta, Time
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
    """scheduled: members that have a node. Those of ours alone, which scheduler-plugins does not have, come after conditions.

    bound: `3/8`, those that have a node or have succeeded, of minMember. position: in line among the gangs that wait, from 1. missing:
    resource -> the amount of which there is too little. would_fit: the least change with which it would fit. nodes: those that it
    occupies, runs of numbers as ranges. reason: of the condition that tells most of it, for a column.
    """

    phase: str = ""
    occupied_by: str = ""
    scheduled: Int32 = 0
    running: Int32 = 0
    succeeded: Int32 = 0
    failed: Int32 = 0
    schedule_start_time: Time | None = None
    conditions: tuple[Condition, ...] = ()
    bound: str = ""
    position: Int32 = 0
    missing: dict[str, str] = {}
    would_fit: str = ""
    nodes: str = ""
    reason: str = ""


class OwnedStatus(Object, frozen=True, gc=False):
    """Which fields of the status a manager owns; of all of them the one that tells a controller of PodGroups."""

    phase: dict[str, str] | None = field(default=None, name="f:phase")


class OwnedFields(Object, frozen=True, gc=False):
    status: OwnedStatus | None = field(default=None, name="f:status")


class ManagedFieldsEntry(Object, frozen=True, gc=False):
    manager: str = ""
    subresource: str = ""
    fields_v1: OwnedFields | None = field(default=None, name="fieldsV1")

    @property
    def owns_phase(self) -> bool:
        owned = self.fields_v1
        return owned is not None and owned.status is not None and owned.status.phase is not None


class PodGroupMeta(ObjectMeta, frozen=True, gc=False):
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


class PodGroup(GroupObject, frozen=True, gc=False):
    scheduled: ClassVar[str] = "Scheduled"

    metadata: PodGroupMeta
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def phase_managers(self) -> frozenset[str]:
        """Field managers that have written the phase last. An object that no API server has stored has none."""
        return frozenset(entry.manager for entry in self.metadata.managed_fields if entry.owns_phase)
