"""Writes what was decided to the API, and waits until the controller of persistent volumes has bound the claims.

PreBind calls it on the pod's own thread. Volumes are told their claim, claims the node that a new volume is wanted on;
each write holds only for the version that the decision was made on. Nothing written is taken back: what was bound
in vain is found bound at the next attempt.
kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/binder.go (BindPodVolumes, bindAPIUpdate, checkBindings)
"""

from __future__ import annotations

from typing import Any

from extender.api import codec, corev1, storagev1
from extender.client.errors import ApiError
from extender.client.interface import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from extender.client.store import HasMetadata
from extender.framework.handle import Handle
from extender.plugins.storage_listers import NotFoundError, StorageListers
from extender.plugins.volume_binding.binder import BindingError, VolumeBinder, as_csi
from extender.plugins.volume_binding.matching import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    fully_bound,
    node_affinity_matches,
)
from extender.plugins.volume_binding.pod_volumes import BindingInfo, PodVolumes

FIRST_LOOK_SECONDS, LOOK_SECONDS = 0.05, 1.0  # kube-scheduler looks once a second from the beginning


class VolumeWriter:
    """No state of its own; many pods' bindings run side by side."""

    def __init__(self, handle: Handle, storage: StorageListers, binder: VolumeBinder, timeout_seconds: float) -> None:
        self._handle = handle
        self._storage = storage
        self._binder = binder
        self._timeout_seconds = timeout_seconds

    def bind(self, pod: corev1.Pod, decided: PodVolumes) -> None:
        """Raises BindingError: not written, bound otherwise, timed out, or the pod was cancelled. Go: BindPodVolumes."""
        claims = self._write(decided)
        deadline = self._handle.clock() + self._timeout_seconds
        running = self._handle.get_pod_in_pre_bind(pod.uid)
        pause = FIRST_LOOK_SECONDS
        try:
            while not self._all_bound(pod, decided.static_bindings, claims):
                if running is not None and running.cancelled.is_set():
                    raise BindingError("context canceled")
                if self._handle.clock() >= deadline:
                    raise BindingError("context deadline exceeded")
                self._handle.sleep(pause)
                pause = min(LOOK_SECONDS, 2 * pause)
        except BindingError as failed:
            raise BindingError(f"binding volumes: {failed}") from failed

    def _write(self, decided: PodVolumes) -> list[corev1.PersistentVolumeClaim]:
        """The claims as the API answered them. What was not reached is given back. Go: bindAPIUpdate."""
        bindings, claims = list(decided.static_bindings), list(decided.provisions)
        written: list[corev1.PersistentVolumeClaim] = []
        try:
            while bindings:
                bindings[0].volume = self._write_volume(bindings[0].volume)
                del bindings[0]
            while claims:
                written.append(self._write_claim(claims[0]))
                del claims[0]
        except ApiError as failed:
            raise BindingError(failed.message) from failed
        finally:
            self._binder.revert(PodVolumes(bindings, claims))
        return written

    def _write_volume(self, volume: corev1.PersistentVolume) -> corev1.PersistentVolume:
        meta = volume.metadata
        body: dict[str, Any] = {
            "metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version},
            "spec": {"claimRef": codec.to_builtins(volume.spec.claim_ref)},
        }
        if BOUND_BY_CONTROLLER.on(meta):
            body["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: BOUND_BY_CONTROLLER.text(meta)}
        return self._handle.api.patch(PERSISTENT_VOLUMES, meta.name, body)

    def _write_claim(self, claim: corev1.PersistentVolumeClaim) -> corev1.PersistentVolumeClaim:
        meta = claim.metadata
        annotations = {SELECTED_NODE: SELECTED_NODE.text(meta)}
        body = {"metadata": {"uid": meta.uid, "resourceVersion": meta.resource_version, "annotations": annotations}}
        return self._handle.api.patch(PERSISTENT_VOLUME_CLAIMS, meta.name, body, namespace=meta.namespace)

    def _all_bound(
        self, pod: corev1.Pod, bindings: list[BindingInfo], claims: list[corev1.PersistentVolumeClaim]
    ) -> bool:
        """Looks at what the watch shows, not at what is assumed. Raises BindingError for what will not come right.

        Go: checkBindings.
        """
        node = self._node(pod)
        csi_node = self._storage.csi_node(node.name)
        try:
            self._storage.pod(pod.namespace, pod.name)
        except NotFoundError as gone:
            raise BindingError(f"pod does not exist any more: {gone}") from gone
        return all(self._static_bound(binding, node, csi_node) for binding in bindings) and all(
            self._provisioned(claim, node, csi_node) for claim in claims
        )

    def _node(self, pod: corev1.Pod) -> corev1.Node:
        try:
            return self._storage.node(pod.node_name)
        except NotFoundError as missing:
            raise BindingError(f'failed to get node "{pod.node_name}": {missing}') from missing

    def _static_bound(self, binding: BindingInfo, node: corev1.Node, csi_node: storagev1.CSINode | None) -> bool:
        name, key = binding.volume.metadata.name, binding.claim.metadata.key
        volume, claim = self._binder.volumes.get_api_object(name), self._binder.claims.get_api_object(key)
        if volume is None:
            raise BindingError(f'failed to check binding: persistentvolumes "{name}" not found')
        if claim is None:
            raise BindingError(f'failed to check binding: persistentvolumeclaims "{key}" not found')
        if _newer(binding.volume, volume):
            return False
        _check_node_affinity(volume, node, csi_node)
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            raise BindingError(f'ClaimRef got reset for pv "{name}"')
        return fully_bound(claim)

    def _provisioned(
        self, written: corev1.PersistentVolumeClaim, node: corev1.Node, csi_node: storagev1.CSINode | None
    ) -> bool:
        """A provisioner that fails takes the annotation off again."""
        claim = self._binder.claims.get_api_object(written.metadata.key)
        if claim is None:
            raise BindingError(
                f'failed to check provisioning pvc: persistentvolumeclaims "{written.metadata.key}" not found'
            )
        if _newer(written, claim):
            return False
        name = claim.metadata.name
        if not claim.metadata.annotations:
            raise BindingError(f'selectedNode annotation reset for PVC "{name}"')
        if SELECTED_NODE.text(claim.metadata) != node.name:
            raise BindingError(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            volume = self._binder.volumes.get_api_object(claim.spec.volume_name)
            if volume is None:
                return False  # its watch may be behind
            _check_node_affinity(volume, node, csi_node)
        return fully_bound(claim)


def _newer(written: HasMetadata, seen: HasMetadata) -> bool:
    """Whether the watch has yet to show what we wrote."""
    return int(written.metadata.resource_version or 0) > int(seen.metadata.resource_version or 0)


def _check_node_affinity(
    volume: corev1.PersistentVolume, node: corev1.Node, csi_node: storagev1.CSINode | None
) -> None:
    if not node_affinity_matches(as_csi(volume, csi_node), node):
        raise BindingError(
            f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{node.name}": no matching NodeSelectorTerms'
        )
