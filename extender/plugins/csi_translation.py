"""In-tree volumes as the CSI volumes that they have become: which driver, which handle, which topology.

NodeVolumeLimits counts them under the driver's name; VolumeBinding compares their translated node affinity.
Kubernetes: k8s.io/csi-translation-lib
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec.structs import replace

from extender.api import corev1, metadata_keys, storagev1
from extender.api.corev1.volume import (
    AWSElasticBlockStore,
    AzureDisk,
    CinderVolume,
    GCEPersistentDisk,
    PersistentVolumeSpec,
    PortworxVolume,
)

Source = corev1.Volume | PersistentVolumeSpec
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
MIGRATED_PLUGINS = metadata_keys.Key(
    "storage.alpha.kubernetes.io/migrated-plugins",
    metadata_keys.Source.ANNOTATION,
    ("CSINode",),
    metadata_keys.LIST,
    str,
)
UNSPECIFIED = "UNSPECIFIED"

_AWS_VOLUME_ID = re.compile(r"^vol-[^/]*$")


class TranslationError(ValueError):
    """An in-tree volume that no CSI volume stands for."""


@dataclass(frozen=True, slots=True)
class InTreePlugin:
    """topology_key: what zones are called by the driver; "" where translation leaves the topology alone."""

    name: str
    driver: str
    has_source: Callable[[Source], bool]
    topology_key: str = ""


@dataclass(frozen=True, slots=True)
class CSIVolume:
    """What the attach limits count."""

    driver: str
    handle: str


AWS = InTreePlugin(
    "kubernetes.io/aws-ebs",
    "ebs.csi.aws.com",
    lambda source: source.aws_elastic_block_store is not None,
    "topology.ebs.csi.aws.com/zone",
)
GCE = InTreePlugin(
    "kubernetes.io/gce-pd",
    "pd.csi.storage.gke.io",
    lambda source: source.gce_persistent_disk is not None,
    "topology.gke.io/zone",
)
CINDER = InTreePlugin(
    "kubernetes.io/cinder",
    "cinder.csi.openstack.org",
    lambda source: source.cinder is not None,
    "topology.cinder.csi.openstack.org/zone",
)
AZURE_DISK = InTreePlugin(
    "kubernetes.io/azure-disk", "disk.csi.azure.com", lambda source: source.azure_disk is not None
)
PORTWORX = InTreePlugin(
    "kubernetes.io/portworx-volume", "pxd.portworx.com", lambda source: source.portworx_volume is not None
)
AZURE_FILE = InTreePlugin(
    "kubernetes.io/azure-file", "file.csi.azure.com", lambda source: source.azure_file is not None
)
VSPHERE = InTreePlugin(
    "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", lambda source: source.vsphere_volume is not None
)
MIGRATION_ON = frozenset({AWS.name, GCE.name, CINDER.name, AZURE_DISK.name, PORTWORX.name})
"""The scheduler translates no others, though they are known to be migratable. Go: isCSIMigrationOn."""

IN_TREE_PLUGINS = (GCE, AWS, CINDER, AZURE_DISK, AZURE_FILE, VSPHERE, PORTWORX)
BY_NAME: Mapping[str, InTreePlugin] = {plugin.name: plugin for plugin in IN_TREE_PLUGINS}


def in_tree_plugin(source: Source) -> InTreePlugin | None:
    """The plugin of an in-tree volume; None for any other. Go: IsPVMigratable, IsInlineMigratable."""
    return next((plugin for plugin in IN_TREE_PLUGINS if plugin.has_source(source)), None)


def migrated_on_node(plugin: InTreePlugin, csi_node: storagev1.CSINode | None) -> bool:
    """Whether the kubelet said that it uses the driver in the plugin's place. Go: isPluginMigratedToCSIOnNode."""
    if csi_node is None or plugin.name not in MIGRATION_ON:
        return False
    return plugin.name in MIGRATED_PLUGINS.text(csi_node.metadata).split(",")


def csi_volume(source: Source, labels: Mapping[str, str] | None = None) -> CSIVolume:
    """Of an in-tree volume for which migration is on. labels: those of a PersistentVolume, for its zone.

    Raises TranslationError.
    """
    if source.gce_persistent_disk is not None:
        return CSIVolume(GCE.driver, _gce_handle(source.gce_persistent_disk, labels))
    if source.aws_elastic_block_store is not None:
        return CSIVolume(AWS.driver, _aws_handle(source.aws_elastic_block_store))
    if source.cinder is not None:
        return CSIVolume(CINDER.driver, _cinder_handle(source.cinder))
    if source.azure_disk is not None:
        return CSIVolume(AZURE_DISK.driver, _azure_disk_handle(source.azure_disk, persistent=labels is not None))
    if source.portworx_volume is not None:
        return CSIVolume(PORTWORX.driver, _portworx_handle(source.portworx_volume))
    raise TranslationError("could not find in-tree plugin translation logic")


def _gce_handle(disk: GCEPersistentDisk, labels: Mapping[str, str] | None) -> str:
    """By zone, or by region where the volume spans zones; without labels neither is known."""
    zones = ((labels or {}).get(BETA_ZONE) or (labels or {}).get(ZONE, "")).split("__")
    if len(zones) > 1:
        return f"projects/{UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk.pd_name}"
    return f"projects/{UNSPECIFIED}/zones/{zones[0] or UNSPECIFIED}/disks/{disk.pd_name}"


def _gce_region(zones: list[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            raise TranslationError(f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        raise TranslationError(f"multiple or no regions gotten from zones, got: {sorted(regions)}")
    return regions.pop()


def _aws_handle(disk: AWSElasticBlockStore) -> str:
    """`aws://zone/vol-id`, or the ID alone."""
    if not disk.volume_id.startswith("aws://"):
        return disk.volume_id
    volume_id = urlsplit(disk.volume_id).path.strip("/")
    if not _AWS_VOLUME_ID.match(volume_id):
        raise TranslationError(f"Invalid format for AWS volume ({disk.volume_id})")
    return volume_id


def _cinder_handle(volume: CinderVolume) -> str:
    return volume.volume_id


def _azure_disk_handle(disk: AzureDisk, *, persistent: bool) -> str:
    if persistent and disk.kind is not None and disk.kind.lower() != "managed":
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _portworx_handle(volume: PortworxVolume) -> str:
    return volume.volume_id


def with_csi_topology(volume: corev1.PersistentVolume, plugin: InTreePlugin) -> corev1.PersistentVolume:
    """Its node affinity in the driver's words. Raises TranslationError. Go: TranslateInTreePVToCSI."""
    csi_volume(volume.spec, volume.metadata.labels)
    if not plugin.topology_key:
        return volume
    terms = _terms(volume)
    zone, region = _labels_in_use(volume, terms)
    if _mentions(terms, zone, with_values=True):
        terms = _renamed(terms, zone, plugin.topology_key)
    elif zone in volume.metadata.labels:
        terms = _with_zones(terms, plugin.topology_key, volume.metadata.labels[zone])
    if region == BETA_REGION:
        terms = _renamed(terms, region, REGION)
    if not terms:
        return volume
    affinity = corev1.VolumeNodeAffinity(corev1.NodeSelector(terms))
    return replace(volume, spec=replace(volume.spec, node_affinity=affinity))


Terms = tuple[corev1.NodeSelectorTerm, ...]


def _terms(volume: corev1.PersistentVolume) -> Terms:
    affinity = volume.spec.node_affinity
    return affinity.required.node_selector_terms if affinity is not None and affinity.required is not None else ()


def _mentions(terms: Terms, key: str, *, with_values: bool = False) -> bool:
    return any(r.key == key and (r.values or not with_values) for term in terms for r in term.match_expressions)


def _labels_in_use(volume: corev1.PersistentVolume, terms: Terms) -> tuple[str, str]:
    """(zone, region): the generation that the affinity speaks of, else the labels; the present one where neither does."""
    for zone, region in ((ZONE, REGION), (BETA_ZONE, BETA_REGION)):
        if _mentions(terms, zone):
            return zone, region
    if ZONE not in volume.metadata.labels and BETA_ZONE in volume.metadata.labels:
        return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _renamed(terms: Terms, old: str, new: str) -> Terms:
    return tuple(
        replace(
            term,
            match_expressions=tuple(replace(r, key=new) if r.key == old else r for r in term.match_expressions),
        )
        for term in terms
    )


def _with_zones(terms: Terms, key: str, label: str) -> Terms:
    """One more expression in each term; a label that names no zone adds nothing."""
    zones = sorted({zone.strip() for zone in label.split("__")} - {""})
    if not zones:
        return terms
    wanted = corev1.NodeSelectorRequirement(key, "In", tuple(zones))
    return tuple(
        replace(term, match_expressions=(*term.match_expressions, wanted))
        for term in terms or (corev1.NodeSelectorTerm(),)
    )
