"""VolumeZone: a bound volume's zone and region labels must be the node's.

Both generations of the labels are read; a volume may name several zones, joined by `__`. A node without any such label
takes every volume. Claims that wait for their first consumer have no volume yet and are VolumeBinding's matter.
kube-scheduler: pkg/scheduler/framework/plugins/volumezone/volume_zone.go
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from extender.api import corev1, storagev1
from extender.api.storagev1 import WAIT_FOR_FIRST_CONSUMER
from extender.client.interface import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES
from extender.framework.cycle_state import CycleState
from extender.framework.events import (
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
)
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    QueueingHint,
)
from extender.framework.node_info import NodeInfo
from extender.framework.status import SKIP, SUCCESS, Status, unresolvable
from extender.plugins import names
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified
from extender.plugins.pod_claims import named_claims
from extender.plugins.storage_listers import NotFoundError, StorageListers

STATE = "PreFilterVolumeZone"
REFUSED = unresolvable("node(s) had no available volume zone")
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
GENERALLY_AVAILABLE = {BETA_ZONE: ZONE, BETA_REGION: REGION}
ZONE_DELIMITER = "__"


@dataclass(frozen=True, slots=True)
class Topology:
    """One label of a volume: the node's value must be among these."""

    key: str
    values: frozenset[str]


class UnboundError(Exception):
    """A claim without a volume, where there should be one."""


class VolumeZone(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    name = names.VOLUME_ZONE
    watches = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES)

    def __init__(self, handle: Handle) -> None:
        self._storage = StorageListers(handle)

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls(handle)

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        try:
            topologies = self._topologies(pod)
        except (NotFoundError, UnboundError) as refusal:
            return None, unresolvable(str(refusal))
        if not topologies:
            return None, SKIP
        state.write(STATE, topologies)
        return None, SUCCESS

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        topologies: tuple[Topology, ...] | None = state.get(STATE, tuple)
        if topologies is None:
            try:
                topologies = self._topologies(pod)
            except (NotFoundError, UnboundError) as refusal:
                return unresolvable(str(refusal))
        labels = node.labels
        if not any(key in labels for key in TOPOLOGY_LABELS):
            return SUCCESS
        for topology in topologies:
            key = topology.key if topology.key in labels else GENERALLY_AVAILABLE.get(topology.key, topology.key)
            if labels.get(key) not in topology.values:
                return REFUSED
        return SUCCESS

    def _topologies(self, pod: corev1.Pod) -> tuple[Topology, ...]:
        """Of the bound volumes. Raises NotFoundError or UnboundError. Go: getPVbyPod."""
        found: list[Topology] = []
        for name in named_claims(pod):
            if not name:
                raise UnboundError("PersistentVolumeClaim had no name")
            claim = self._storage.claim(pod.namespace, name)
            if claim.spec.volume_name:
                found += topologies_of(self._storage.volume(claim.spec.volume_name))
            elif not self._waits_for_consumer(claim):
                raise UnboundError("PersistentVolume had no name")
        return tuple(found)

    def _waits_for_consumer(self, claim: corev1.PersistentVolumeClaim) -> bool:
        """A class without a binding mode cannot be: the API server fills it in."""
        if not claim.class_name:
            raise UnboundError("PersistentVolumeClaim had no pv name and storageClass name")
        return self._storage.storage_class(claim.class_name).volume_binding_mode == WAIT_FOR_FIRST_CONSUMER

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        added_or_changed = ActionType.ADD | ActionType.UPDATE
        return [
            ClusterEventWithHint(ClusterEvent(STORAGE_CLASS, ActionType.ADD), self.after_class_added),
            ClusterEventWithHint(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, added_or_changed), self.after_claim_change),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME, added_or_changed), self.after_volume_change),
        ]

    def after_class_added(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """Only one that lets claims wait for their first consumer helps."""
        _, added = modified(storagev1.StorageClass, None, new)
        return QUEUE if added.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else QUEUE_SKIP

    def after_claim_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        _, claim = modified(corev1.PersistentVolumeClaim, old, new)
        mine = claim.metadata.namespace == pod.namespace and claim.metadata.name in named_claims(pod)
        return QUEUE if mine else QUEUE_SKIP

    def after_volume_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A new volume, or one with other zones than before."""
        before, after = modified(corev1.PersistentVolume, old, new)
        if before is None or topologies_of(before) != topologies_of(after):
            return QUEUE
        return QUEUE_SKIP


def topologies_of(volume: corev1.PersistentVolume) -> list[Topology]:
    """A label that cannot be read is as if it were not there. Go: getPVTopologies."""
    found = []
    for key in TOPOLOGY_LABELS:
        if key in volume.metadata.labels:
            values = [zone.strip() for zone in volume.metadata.labels[key].split(ZONE_DELIMITER)]
            if all(values):
                found.append(Topology(key, frozenset(values)))
    return found
