"""Which events may help a pod whose volumes were refused. Used by the plugin's events_to_register.

kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/volume_binding.go (isSchedulableAfter...)
"""

from __future__ import annotations

from extender.api import corev1, storagev1
from extender.framework.interface import QueueingHint
from extender.plugins.csi_translation import MIGRATED_PLUGINS
from extender.plugins.hints import QUEUE, QUEUE_SKIP, modified
from extender.plugins.pod_claims import uses_claim
from extender.plugins.volume_binding.provisioning import volume_limit


def after_claim_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """One of the pod's own."""
    _, claim = modified(corev1.PersistentVolumeClaim, old, new)
    return QUEUE if uses_claim(pod, claim) else QUEUE_SKIP


def after_class_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """A new class, or other topologies; nothing else of it can change and matter."""
    before, after = modified(storagev1.StorageClass, old, new)
    return QUEUE if before is None or before.allowed_topologies != after.allowed_topologies else QUEUE_SKIP


def after_csi_node_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """Drivers have taken the place of other in-tree plugins than before."""
    before, after = modified(storagev1.CSINode, old, new)
    if before is None or _migrated(before) != _migrated(after):
        return QUEUE
    return QUEUE_SKIP


def _migrated(csi_node: storagev1.CSINode) -> str:
    return MIGRATED_PLUGINS.text(csi_node.metadata)


def after_csi_driver_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """The driver of one of the pod's inline volumes has ceased to publish its capacity."""
    before, after = modified(storagev1.CSIDriver, old, new)
    ceased = before is not None and bool(before.spec.storage_capacity) and not after.spec.storage_capacity
    drivers = {volume.csi.driver for volume in pod.spec.volumes if volume.csi is not None}
    return QUEUE if ceased and after.metadata.name in drivers else QUEUE_SKIP


def after_capacity_change(pod: corev1.Pod, old: object, new: object) -> QueueingHint:
    """A new one, or one that has grown."""
    before, after = modified(storagev1.CSIStorageCapacity, old, new)
    if before is None:
        return QUEUE
    was, now = volume_limit(before), volume_limit(after)
    return QUEUE if now is not None and (was is None or now.value > was.value) else QUEUE_SKIP
