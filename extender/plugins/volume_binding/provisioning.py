"""Where a new volume can be made for a claim: the class' provisioner, its topologies, the capacity that is published.

kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/binder.go (checkVolumeProvisions, hasEnoughCapacity)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from extender.api import corev1, storagev1
from extender.api.corev1.volume import STORAGE
from extender.api.quantity import Quantity
from extender.api.storagev1 import NO_PROVISIONER, CSIStorageCapacity, StorageClass, TopologyTerm
from extender.plugins.storage_listers import NotFoundError, StorageListers


class Provisioning(Enum):
    POSSIBLE = "possible"
    IMPOSSIBLE = "impossible"  # no provisioner, or not on this node
    NO_ROOM = "not enough free storage"


class ProvisioningError(Exception):
    """The claim's class is missing: nothing can be said."""


def check_provisioning(
    claims: Sequence[corev1.PersistentVolumeClaim], node: corev1.Node, storage: StorageListers
) -> Provisioning:
    """Of all claims together; the first that cannot be provisioned decides. Raises ProvisioningError."""
    for claim in claims:
        storage_class = _class_of(claim, storage)
        provisioner = storage_class.provisioner
        if provisioner in ("", NO_PROVISIONER):
            return Provisioning.IMPOSSIBLE
        if not topologies_allow(storage_class.allowed_topologies, node.labels):
            return Provisioning.IMPOSSIBLE
        if not _enough_capacity(claim, storage_class, node, storage):
            return Provisioning.NO_ROOM
    return Provisioning.POSSIBLE


def _class_of(claim: corev1.PersistentVolumeClaim, storage: StorageListers) -> StorageClass:
    if not claim.class_name:
        raise ProvisioningError(f'no class for claim "{claim.metadata.key}"')
    try:
        return storage.storage_class(claim.class_name)
    except NotFoundError as missing:
        raise ProvisioningError(f'failed to find storage class "{claim.class_name}"') from missing


def topologies_allow(terms: Iterable[TopologyTerm], labels: Mapping[str, str]) -> bool:
    """Any term; no terms allow everything, an empty term nothing. Go: MatchTopologySelectorTerms."""
    terms = tuple(terms)
    return not terms or any(_term_allows(term, labels) for term in terms)


def _term_allows(term: TopologyTerm, labels: Mapping[str, str]) -> bool:
    requirements = term.match_label_expressions
    return bool(requirements) and all(labels.get(r.key) in r.values for r in requirements)


def _enough_capacity(
    claim: corev1.PersistentVolumeClaim, storage_class: StorageClass, node: corev1.Node, storage: StorageListers
) -> bool:
    size = size_to_publish(claim, storage_class, storage)
    return size is None or any(
        capacity.storage_class_name == storage_class.metadata.name
        and holds(capacity, size)
        and _reaches(capacity, node)
        for capacity in storage.storage_capacities()
    )


def size_to_publish(
    claim: corev1.PersistentVolumeClaim, storage_class: StorageClass, storage: StorageListers
) -> Quantity | None:
    """How much has to be published; None for drivers that do not publish their capacity, and claims that ask for none."""
    return claim.spec.resources.requests.get(STORAGE) if publishes_capacity(storage_class, storage) else None


def publishes_capacity(storage_class: StorageClass, storage: StorageListers) -> bool:
    """Whether the class's driver does."""
    driver = storage.csi_driver(storage_class.provisioner)
    return driver is not None and bool(driver.spec.storage_capacity)


def volume_limit(capacity: CSIStorageCapacity) -> Quantity | None:
    """The largest volume, as exactly as the driver says it."""
    return capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity


def holds(capacity: CSIStorageCapacity, size: Quantity) -> bool:
    limit = volume_limit(capacity)
    return limit is not None and limit.value >= size.value


def _reaches(capacity: storagev1.CSIStorageCapacity, node: corev1.Node) -> bool:
    return capacity.node_topology is not None and capacity.node_topology.matches(node.labels)
