"""The claims that a pod's volumes use: those they name, and those made for its ephemeral volumes.

The volume plugins read them. Kubernetes: k8s.io/component-helpers/storage/ephemeral
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from extender.api import corev1


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """One volume's claim. An ephemeral volume's must have been made for the pod."""

    name: str
    ephemeral: bool = False


def claim_use(pod: corev1.Pod, volume: corev1.Volume) -> ClaimUse | None:
    """None for a volume without a claim."""
    if volume.persistent_volume_claim is not None:
        return ClaimUse(volume.persistent_volume_claim.claim_name)
    if volume.ephemeral is not None:
        return ClaimUse(f"{pod.name}-{volume.name}", ephemeral=True)
    return None


def claim_uses(pod: corev1.Pod) -> Iterator[ClaimUse]:
    """Of all volumes, in their order."""
    for volume in pod.spec.volumes:
        use = claim_use(pod, volume)
        if use is not None:
            yield use


def named_claims(pod: corev1.Pod) -> tuple[str, ...]:
    """Those that the pod names itself: what VolumeRestrictions and VolumeZone look at."""
    return tuple(
        v.persistent_volume_claim.claim_name for v in pod.spec.volumes if v.persistent_volume_claim is not None
    )


def uses_claim(pod: corev1.Pod, claim: corev1.PersistentVolumeClaim) -> bool:
    """By name; whether it was made for the pod is not asked."""
    return claim.metadata.namespace == pod.namespace and any(use.name == claim.metadata.name for use in claim_uses(pod))


def not_made_for(pod: corev1.Pod, claim: corev1.PersistentVolumeClaim) -> str:
    """Why the claim is not that of an ephemeral volume of the pod; "" where it is. Go: VolumeIsForPod."""
    meta = claim.metadata
    owned = any(owner.controller and owner.uid == pod.uid for owner in meta.owner_references)
    if meta.namespace == pod.namespace and owned:
        return ""
    return f"PVC {meta.namespace}/{meta.name} was not created for pod {pod.key} (pod is not owner)"
