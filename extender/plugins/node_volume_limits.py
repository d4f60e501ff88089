"""NodeVolumeLimits: no more volumes of a CSI driver on a node than the driver says it can attach.

Counted are the volumes of the pods there, each once, in-tree ones under the driver that has taken their place, and what
VolumeAttachments still hold. A claim without a volume counts by its class' provisioner.
kube-scheduler: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (VolumeLimitScaling is off)
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Self

from extender.api import corev1, storagev1
from extender.client.interface import (
    CSI_NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    VOLUME_ATTACHMENTS,
)
from extender.framework.cycle_state import CycleState
from extender.framework.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
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
from extender.framework.status import SKIP, SUCCESS, Status, error, unresolvable, unschedulable
from extender.plugins import names
from extender.plugins.csi_translation import (
    BY_NAME,
    MIGRATION_ON,
    CSIVolume,
    InTreePlugin,
    TranslationError,
    csi_volume,
    in_tree_plugin,
)
from extender.plugins.hints import QUEUE, QUEUE_SKIP, deleted, modified, placed
from extender.plugins.pod_claims import ClaimUse, claim_use, not_made_for, uses_claim
from extender.plugins.storage_listers import NotFoundError, StorageListers

STATE = "PreFilterNodeVolumeLimits"
EXCEEDED = unschedulable("node(s) exceed max volume count")

Attachments = Mapping[str, Sequence[storagev1.VolumeAttachment]]


class ClaimError(Exception):
    """A claim that cannot be what the pod means."""


class NodeVolumeLimits(PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    name = names.NODE_VOLUME_LIMITS
    watches = (PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, VOLUME_ATTACHMENTS)

    def __init__(self, handle: Handle) -> None:
        self._storage = StorageListers(handle)
        self._prefix = secrets.token_hex(16)  # no volume's handle begins so

    @classmethod
    def create(cls, args: None, handle: Handle) -> Self:
        return cls(handle)

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        if not any(attachable(volume) for volume in pod.spec.volumes):
            return None, SKIP
        state.write(STATE, self._attachments())
        return None, SUCCESS

    def _attachments(self) -> Attachments:
        """By node: gathered once a cycle."""
        by_node: dict[str, list[storagev1.VolumeAttachment]] = {}
        for attachment in self._storage.volume_attachments():
            by_node.setdefault(attachment.spec.node_name, []).append(attachment)
        return by_node

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        csi_node = self._storage.csi_node(node.name)
        try:
            wanted = self._volumes(pod, csi_node, new=True)
            limits = _limits(csi_node)
            if not wanted or not limits:
                return SUCCESS
            attached = {volume for info in node.pods for volume in self._volumes(info.pod, csi_node, new=False)}
        except NotFoundError as missing:
            return unresolvable(str(missing))
        except (ClaimError, TranslationError) as failed:
            return error(str(failed))
        attachments: Attachments | None = state.get(STATE, dict)
        if attachments is None:
            attachments = self._attachments()
        in_use = attached | self._held(attachments.get(node.name, ()))
        used = Counter(volume.driver for volume in in_use)
        added = Counter(volume.driver for volume in wanted - attached)
        exceeded = any(driver in limits and used[driver] + count > limits[driver] for driver, count in added.items())
        return EXCEEDED if exceeded else SUCCESS

    def _volumes(self, pod: corev1.Pod, csi_node: storagev1.CSINode | None, *, new: bool) -> set[CSIVolume]:
        """Those that the driver has to attach. What cannot be looked up counts only against a new pod.

        Raises NotFoundError, ClaimError, TranslationError. Go: filterAttachableVolumes.
        """
        found: set[CSIVolume] = set()
        for volume in pod.spec.volumes:
            use = claim_use(pod, volume)
            if use is None:
                if _migrated(in_tree_plugin(volume), csi_node):
                    found.add(_inline(volume))
                continue
            claim = self._claim(pod, use, new=new)
            one = self._volume_of(claim, csi_node) if claim is not None else None
            if one is not None:
                found.add(one)
        return found

    def _claim(self, pod: corev1.Pod, use: ClaimUse, *, new: bool) -> corev1.PersistentVolumeClaim | None:
        if not use.name:
            raise ClaimError("PersistentVolumeClaim had no name")
        try:
            claim = self._storage.claim(pod.namespace, use.name)
        except NotFoundError as missing:
            if new:
                raise _LookUpError(pod.namespace, use.name, missing) from missing
            return None
        if use.ephemeral and (refusal := not_made_for(pod, claim)):
            raise ClaimError(refusal)
        return claim

    def _volume_of(self, claim: corev1.PersistentVolumeClaim, csi_node: storagev1.CSINode | None) -> CSIVolume | None:
        """None for what no driver attaches. Go: getCSIDriverInfo."""
        volume = self._storage.volumes().get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is None:
            return self._volume_to_be(claim, csi_node)
        source = volume.spec.csi
        found: CSIVolume | None = None
        if source is not None:
            found = CSIVolume(source.driver, source.volume_handle)
        elif _migrated(in_tree_plugin(volume.spec), csi_node):
            with suppress(TranslationError):
                found = csi_volume(volume.spec, volume.metadata.labels)
        return found if found is not None and found.driver and found.handle else None

    def _volume_to_be(
        self, claim: corev1.PersistentVolumeClaim, csi_node: storagev1.CSINode | None
    ) -> CSIVolume | None:
        """By the class; one without a class is bound before it is scheduled. Go: getCSIDriverInfoFromSC."""
        if not claim.class_name:
            return None
        try:
            provisioner = self._storage.storage_class(claim.class_name).provisioner
        except NotFoundError:
            return None
        handle = f"{self._prefix}-{claim.metadata.key}"
        plugin = BY_NAME.get(provisioner)
        if plugin is None:
            return CSIVolume(provisioner, handle) if provisioner else None
        return CSIVolume(plugin.driver, handle) if _migrated(plugin, csi_node) else None

    def _held(self, attachments: Iterable[storagev1.VolumeAttachment]) -> set[CSIVolume]:
        """What is attached, whether a pod still uses it or not. Go: getNodeVolumeAttachmentInfo."""
        held: set[CSIVolume] = set()
        for attachment in attachments:
            name = attachment.spec.source.persistent_volume_name
            volume = self._storage.volumes().get(name) if attachment.spec.attacher and name else None
            if volume is not None and volume.spec.csi is not None:
                held.add(CSIVolume(attachment.spec.attacher, volume.spec.csi.volume_handle))
        return held

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return [
            ClusterEventWithHint(ClusterEvent(CSI_NODE, ActionType.ADD)),
            ClusterEventWithHint(ClusterEvent(CSI_NODE, ActionType.UPDATE), self.after_csi_node_change),
            ClusterEventWithHint(ClusterEvent(POD, ActionType.DELETE), self.after_pod_deleted),
            ClusterEventWithHint(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), self.after_claim_added),
            ClusterEventWithHint(ClusterEvent(VOLUME_ATTACHMENT, ActionType.DELETE), self.after_detached),
        ]

    def after_csi_node_change(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """A driver can attach more than before."""
        before, after = modified(storagev1.CSINode, old, new)
        limits = _limits(before)
        more = any(limit > limits.get(driver, 0) for driver, limit in _limits(after).items())
        return QUEUE if more else QUEUE_SKIP

    def after_pod_deleted(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        gone = deleted(corev1.Pod, old)
        return QUEUE if placed(gone) and any(attachable(v) for v in gone.spec.volumes) else QUEUE_SKIP

    def after_claim_added(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        _, claim = modified(corev1.PersistentVolumeClaim, old, new)
        return QUEUE if uses_claim(pod, claim) else QUEUE_SKIP

    def after_detached(self, pod: corev1.Pod, old: object, new: object) -> QueueingHint:
        """The pod uses a claim, or an in-tree volume of the attacher's driver."""
        attacher = deleted(storagev1.VolumeAttachment, old).spec.attacher
        for volume in pod.spec.volumes:
            plugin = in_tree_plugin(volume)
            if volume.persistent_volume_claim is not None or (plugin is not None and plugin.driver == attacher):
                return QUEUE
        return QUEUE_SKIP


class _LookUpError(NotFoundError):
    def __init__(self, namespace: str, name: str, missing: NotFoundError) -> None:
        LookupError.__init__(self, f"looking up PVC {namespace}/{name}: {missing}")


def attachable(volume: corev1.Volume) -> bool:
    """Whether a driver may have to attach it, and attaches only so many to a node."""
    by_claim = volume.persistent_volume_claim is not None or volume.ephemeral is not None
    return by_claim or in_tree_plugin(volume) is not None


def _migrated(plugin: InTreePlugin | None, csi_node: storagev1.CSINode | None) -> bool:
    """A driver has taken the plugin's place, and the node knows drivers at all. Go: isCSIMigrationOn."""
    return plugin is not None and csi_node is not None and plugin.name in MIGRATION_ON


def _inline(volume: corev1.Volume) -> CSIVolume:
    try:
        return csi_volume(volume)
    except TranslationError as failed:
        raise TranslationError(f"converting volume({volume.name}) from inline to csi: {failed}") from failed


def _limits(csi_node: storagev1.CSINode | None) -> dict[str, int]:
    """Driver -> the most volumes; a driver that says nothing has no limit. Go: getVolumeLimits."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
