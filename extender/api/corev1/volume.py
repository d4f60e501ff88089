"""Volumes of a pod, claims and persistent volumes: the fields that scheduling reads."""

from __future__ import annotations

from msgspec import field

from extender.api.corev1.affinity import NodeSelector
from extender.api.metav1 import LabelSelector, Object, ObjectMeta
from extender.api.quantity import ResourceList


class PersistentVolumeClaimVolumeSource(Object, frozen=True, gc=False):
    claim_name: str
    read_only: bool = False


class EphemeralVolumeSource(Object, frozen=True, gc=False):
    """A generic ephemeral volume; its claim is named `<pod>-<volume>`."""


class GCEPersistentDisk(Object, frozen=True, gc=False):
    pd_name: str = field(name="pdName", default="")
    read_only: bool = False


class AWSElasticBlockStore(Object, frozen=True, gc=False):
    volume_id: str = field(name="volumeID", default="")
    read_only: bool = False


class ISCSIVolume(Object, frozen=True, gc=False):
    iqn: str = ""
    read_only: bool = False


class RBDVolume(Object, frozen=True, gc=False):
    monitors: tuple[str, ...] = ()
    pool: str = "rbd"
    image: str = ""
    read_only: bool = False


class ImageVolumeSource(Object, frozen=True, gc=False):
    reference: str = ""


class CSIVolumeSource(Object, frozen=True, gc=False):
    driver: str = ""
    volume_handle: str = ""
    read_only: bool | None = None


class Volume(Object, frozen=True, gc=False):
    name: str = ""
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    iscsi: ISCSIVolume | None = None
    rbd: RBDVolume | None = None
    image: ImageVolumeSource | None = None
    csi: CSIVolumeSource | None = None


class PersistentVolumeClaimResources(Object, frozen=True, gc=False):
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Object, frozen=True, gc=False):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: PersistentVolumeClaimResources = PersistentVolumeClaimResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None


class PersistentVolumeClaimStatus(Object, frozen=True, gc=False):
    phase: str = ""


class PersistentVolumeClaim(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class ClaimReference(Object, frozen=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class VolumeNodeAffinity(Object, frozen=True, gc=False):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Object, frozen=True, gc=False):
    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CSIVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None


class PersistentVolumeStatus(Object, frozen=True, gc=False):
    phase: str = ""


class PersistentVolume(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()
