"""Which volume fits a claim, and what a volume looks like once it is meant for one.

The binder uses it, and the simulation's controller of persistent volumes.
Kubernetes: k8s.io/component-helpers/storage/volume (pv_helpers.go, helpers.go)
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from extender.api import corev1
from extender.api.corev1.volume import FILESYSTEM, STORAGE, VOLUME_AVAILABLE
from extender.api.metadata_keys import NAME, WORD, Key, Source
from extender.api.metav1 import ObjectMeta
from extender.api.quantity import ResourceList
from extender.framework.node_selector import selector_matches

_CLAIM = ("PersistentVolumeClaim",)
BIND_COMPLETED = Key("pv.kubernetes.io/bind-completed", Source.ANNOTATION, _CLAIM, WORD, str)
BOUND_BY_CONTROLLER = Key("pv.kubernetes.io/bound-by-controller", Source.ANNOTATION, ("PersistentVolume",), WORD, str)
SELECTED_NODE = Key("volume.kubernetes.io/selected-node", Source.ANNOTATION, _CLAIM, NAME, str)

Size = tuple[int, int]


def storage_size(resources: ResourceList) -> Size:
    """Comparable, and exact where the milli value alone would saturate; nothing asked for is zero."""
    quantity = resources.get(STORAGE)
    return (quantity.value, quantity.milli_value) if quantity is not None else (0, 0)


def claim_size(claim: corev1.PersistentVolumeClaim) -> Size:
    return storage_size(claim.spec.resources.requests)


def fully_bound(claim: corev1.PersistentVolumeClaim) -> bool:
    """The controller has finished with it. Go: isPVCFullyBound."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED.on(claim.metadata)


def node_affinity_matches(volume: corev1.PersistentVolume, node: corev1.Node) -> bool:
    """By the node's labels alone; its name counts for nothing. Go: CheckNodeAffinity."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    nameless = corev1.Node(ObjectMeta(labels=node.labels))
    return selector_matches(affinity.required.node_selector_terms, nameless)


def bound_to_claim(volume: corev1.PersistentVolume, claim: corev1.PersistentVolumeClaim) -> bool:
    """Whether the volume is meant for the claim, by name and, where it says one, by UID. Go: IsVolumeBoundToClaim."""
    reference, meta = volume.spec.claim_ref, claim.metadata
    if reference is None or (reference.namespace, reference.name) != (meta.namespace, meta.name):
        return False
    return not reference.uid or reference.uid == meta.uid


def find_matching_volume(
    claim: corev1.PersistentVolumeClaim,
    volumes: Iterable[corev1.PersistentVolume],
    node: corev1.Node | None,
    excluded: Collection[str] = (),
) -> corev1.PersistentVolume | None:
    """The one that is meant for the claim, else the smallest that fits; None where none does.

    Without a node, for claims that are bound at once, node affinity is not asked about. Go: FindMatchingVolume.
    """
    smallest: corev1.PersistentVolume | None = None
    for volume in volumes:
        if volume.metadata.name in excluded:
            continue
        if volume.spec.claim_ref is None:
            if smallest is not None and storage_size(volume.spec.capacity) >= storage_size(smallest.spec.capacity):
                continue
        elif bound_to_claim(volume, claim) and _usable(volume, claim):
            return volume if node is None or node_affinity_matches(volume, node) else None
        if _usable(volume, claim) and _matches(volume, claim) and (node is None or node_affinity_matches(volume, node)):
            smallest = volume
    return smallest


def fits(volume: corev1.PersistentVolume, claim: corev1.PersistentVolumeClaim) -> bool:
    """Whether a claim that no volume is meant for could have this one, wherever it can be reached from."""
    return _usable(volume, claim) and _matches(volume, claim)


def _usable(volume: corev1.PersistentVolume, claim: corev1.PersistentVolumeClaim) -> bool:
    """Also asked of a volume that is meant for the claim."""
    if volume.spec.claim_ref is not None and not bound_to_claim(volume, claim):
        return False
    return (
        storage_size(volume.spec.capacity) >= claim_size(claim)
        and (volume.spec.volume_mode or FILESYSTEM) == (claim.spec.volume_mode or FILESYSTEM)
        and (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")
        and volume.metadata.deletion_timestamp is None
    )


def _matches(volume: corev1.PersistentVolume, claim: corev1.PersistentVolumeClaim) -> bool:
    selector = claim.spec.selector
    return (
        volume.status.phase == VOLUME_AVAILABLE
        and (selector is None or selector.matches(volume.metadata.labels))
        and volume.class_name == claim.class_name
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def claim_reference(claim: corev1.PersistentVolumeClaim) -> corev1.ClaimReference:
    meta = claim.metadata
    return corev1.ClaimReference(
        "PersistentVolumeClaim", "v1", meta.name, meta.namespace, meta.uid, meta.resource_version
    )


def bind_volume_to_claim(
    volume: corev1.PersistentVolume, claim: corev1.PersistentVolumeClaim
) -> corev1.PersistentVolume:
    """The volume meant for the claim; the very same where it is so already. Go: GetBindVolumeToClaim."""
    reference, annotations = volume.spec.claim_ref, volume.metadata.annotations
    if reference is None or not reference.uid or not bound_to_claim(volume, claim):
        reference = claim_reference(claim)
    if not bound_to_claim(volume, claim) and not BOUND_BY_CONTROLLER.on(volume.metadata):
        annotations = {**annotations, BOUND_BY_CONTROLLER: "yes"}
    if reference is volume.spec.claim_ref and annotations is volume.metadata.annotations:
        return volume
    return replace(
        volume,
        metadata=replace(volume.metadata, annotations=annotations),
        spec=replace(volume.spec, claim_ref=reference),
    )


def with_selected_node(claim: corev1.PersistentVolumeClaim, node_name: str) -> corev1.PersistentVolumeClaim:
    """The claim as it asks for a new volume on the node."""
    annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
    return replace(claim, metadata=replace(claim.metadata, annotations=annotations))
