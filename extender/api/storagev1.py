"""storage.k8s.io/v1: classes, drivers and capacities that volume scheduling reads.

Kubernetes: k8s.io/api/storage/v1/types.go
"""

from __future__ import annotations

from extender.api.metav1 import Int32, LabelSelector, Object, ObjectMeta
from extender.api.quantity import Quantity

WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
IMMEDIATE = "Immediate"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


class TopologyLabelRequirement(Object, frozen=True, gc=False):
    key: str
    values: tuple[str, ...] = ()


class TopologyTerm(Object, frozen=True, gc=False):
    match_label_expressions: tuple[TopologyLabelRequirement, ...] = ()


class StorageClass(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    provisioner: str = ""
    volume_binding_mode: str = IMMEDIATE
    allowed_topologies: tuple[TopologyTerm, ...] = ()


class VolumeNodeResources(Object, frozen=True, gc=False):
    count: Int32 | None = None


class CSINodeDriver(Object, frozen=True, gc=False):
    name: str
    topology_keys: tuple[str, ...] = ()
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Object, frozen=True, gc=False):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Object, frozen=True, gc=False):
    storage_capacity: bool | None = None


class CSIDriver(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Object, frozen=True, gc=False):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Object, frozen=True, gc=False):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
