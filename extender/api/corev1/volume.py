"""Volumes of a pod, claims and persistent volumes: the fields that scheduling reads."""

from __future__ import annotations

from msgspec import field

from extender.api.corev1.affinity import NodeSelector
from extender.api.metadata_keys import NAME, Key, Source
from extender.api.metav1 import LabelSelector, Object, ObjectMeta
from extender.api.quantity import ResourceList

STORAGE = "storage"  # the resource that claims ask for and volumes have
READ_WRITE_ONCE_POD = "ReadWriteOncePod"
CLAIM_PENDING, CLAIM_BOUND, CLAIM_LOST = "Pending", "Bound", "Lost"
VOLUME_PENDING, VOLUME_AVAILABLE, VOLUME_BOUND, VOLUME_RELEASED = "Pending", "Available", "Bound", "Released"
FILESYSTEM = "Filesystem"  # the volume mode where none is given
BETA_STORAGE_CLASS = Key(
    "volume.beta.kubernetes.io/storage-class",
    Source.ANNOTATION,
    ("PersistentVolumeClaim", "PersistentVolume"),
    NAME,
    str,
)


class PersistentVolumeClaimVolumeSource(Object, frozen=True, gc=False):
    claim_name: str
    read_only: bool = False


class PersistentVolumeClaimResources(Object, frozen=True, gc=False):
    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Object, frozen=True, gc=False):
    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: PersistentVolumeClaimResources = PersistentVolumeClaimResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(Object, frozen=True, gc=False):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(Object, frozen=True, gc=False):
    """A generic ephemeral volume; its claim is named `<pod>-<volume>`."""

    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class GCEPersistentDisk(Object, frozen=True, gc=False):
    pd_name: str = field(name="pdName", default="")
    read_only: bool = False


class AWSElasticBlockStore(Object, frozen=True, gc=False):
    volume_id: str = field(name="volumeID", default="")
    read_only: bool = False


class AzureDisk(Object, frozen=True, gc=False):
    disk_name: str = ""
    disk_uri: str = field(name="diskURI", default="")
    kind: str | None = None


class AzureFile(Object, frozen=True, gc=False):
    secret_name: str = ""
    share_name: str = ""
    secret_namespace: str | None = None


class CinderVolume(Object, frozen=True, gc=False):
    volume_id: str = field(name="volumeID", default="")


class PortworxVolume(Object, frozen=True, gc=False):
    volume_id: str = field(name="volumeID", default="")


class VsphereVolume(Object, frozen=True, gc=False):
    volume_path: str = ""


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
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None


class PersistentVolumeClaimStatus(Object, frozen=True, gc=False):
    phase: str = ""


class PersistentVolumeClaim(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def class_name(self) -> str:
        """The annotation of old wins; "" where none was asked for. Go: GetPersistentVolumeClaimClass."""
        return BETA_STORAGE_CLASS.text(self.metadata, self.spec.storage_class_name or "")


class ClaimReference(Object, frozen=True, gc=False):
    kind: str = ""
    api_version: str = ""
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


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
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderVolume | None = None
    portworx_volume: PortworxVolume | None = None
    vsphere_volume: VsphereVolume | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Object, frozen=True, gc=False):
    phase: str = ""


class PersistentVolume(Object, frozen=True, gc=False):
    metadata: ObjectMeta
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()

    @property
    def class_name(self) -> str:
        """The annotation of old wins. Go: GetPersistentVolumeClass."""
        return BETA_STORAGE_CLASS.text(self.metadata, self.spec.storage_class_name)
