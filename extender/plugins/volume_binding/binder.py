"""Finds volumes for a pod's claims on a node, and assumes what was found for the node that is chosen.

    claims_of (PreFilter) -> find (Filter, each node) -> assume (Reserve) -> VolumeWriter.bind (PreBind)
                                                            |
                                                            +-> revert (Unreserve)
kube-scheduler: pkg/scheduler/framework/plugins/volumebinding/binder.go
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from extender.api import corev1, storagev1
from extender.api.storagev1 import WAIT_FOR_FIRST_CONSUMER
from extender.plugins.csi_translation import TranslationError, in_tree_plugin, migrated_on_node, with_csi_topology
from extender.plugins.pod_claims import claim_uses, not_made_for
from extender.plugins.storage_listers import NotFoundError, StorageListers
from extender.plugins.volume_binding.assume_cache import AssumeCache, AssumeError
from extender.plugins.volume_binding.matching import (
    SELECTED_NODE,
    bind_volume_to_claim,
    bound_to_claim,
    claim_size,
    find_matching_volume,
    fully_bound,
    node_affinity_matches,
    with_selected_node,
)
from extender.plugins.volume_binding.pod_volumes import BindingInfo, PodVolumeClaims, PodVolumes
from extender.plugins.volume_binding.provisioning import Provisioning, check_provisioning

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
VOLUME_NOT_EXIST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
NOTHING_PROMISED: Mapping[str, str] = MappingProxyType({})


class BindingError(Exception):
    """The volumes cannot be judged, assumed or bound; the pod is tried again."""


class VolumeBinder:
    """find may run on many threads at once; assume comes from the scheduling cycle only."""

    def __init__(self, storage: StorageListers) -> None:
        self._storage = storage
        self.claims: AssumeCache[corev1.PersistentVolumeClaim] = AssumeCache(storage.claims, "persistentvolumeclaims")
        self.volumes: AssumeCache[corev1.PersistentVolume] = AssumeCache(
            storage.volumes, "persistentvolumes", lambda volume: volume.class_name
        )

    def claims_of(self, pod: corev1.Pod) -> PodVolumeClaims:
        """Raises BindingError. Go: GetPodVolumeClaims."""
        bound, delayed, immediate = [], [], []
        for use in claim_uses(pod):
            claim = self._claim(pod, use.name, made_for_pod=use.ephemeral)
            if fully_bound(claim):
                bound.append(claim)
            elif not claim.spec.volume_name and self._delayed(claim):
                delayed.append(claim)
            else:
                immediate.append(claim)
        classes = {claim.class_name for claim in delayed}
        return PodVolumeClaims(bound, delayed, immediate, self._volumes_of(classes, delayed))

    def _claim(self, pod: corev1.Pod, name: str, *, made_for_pod: bool) -> corev1.PersistentVolumeClaim:
        key = f"{pod.namespace}/{name}"
        claim = self.claims.get(key)
        if claim is None:
            raise BindingError(f'error getting PVC "{key}": persistentvolumeclaims "{key}" not found')
        if made_for_pod and (refusal := not_made_for(pod, claim)):
            raise BindingError(refusal)
        return claim

    def _delayed(self, claim: corev1.PersistentVolumeClaim) -> bool:
        """Waits for its first consumer. Go: IsDelayBindingMode."""
        if not claim.class_name:
            return False
        try:
            return self._storage.storage_class(claim.class_name).volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        except NotFoundError:
            return False

    def _volumes_of(
        self, classes: Collection[str], claims: Sequence[corev1.PersistentVolumeClaim]
    ) -> dict[str, Sequence[corev1.PersistentVolume]]:
        """Those that are free or meant for one of the claims; assumed ones as they will be, so that no two pods are
        given the same."""
        return {
            name: [volume for volume in self.volumes.by_index(name) if _free_for(volume, claims)] for name in classes
        }

    def find(
        self, claims: PodVolumeClaims, node: corev1.Node, promised: Mapping[str, str] = NOTHING_PROMISED
    ) -> tuple[PodVolumes, list[str]]:
        """What the claims would get on the node, and why they cannot have it there. Raises BindingError.

        promised: claim key -> the volume that the claim is to get, and no other claim. Go: FindPodVolumes, without it.
        """
        reasons = self._bound_elsewhere(claims.bound, node)
        if not claims.delayed:
            return PodVolumes(), reasons
        selected = [claim for claim in claims.delayed if SELECTED_NODE.on(claim.metadata)]
        if any(SELECTED_NODE.text(claim.metadata) != node.name for claim in selected):
            return PodVolumes(), _in_order([*reasons, BIND_CONFLICT])
        open_claims = [claim for claim in claims.delayed if not SELECTED_NODE.on(claim.metadata)]
        bindings, unmatched = _match(open_claims, claims, node, promised)
        if any(claim.metadata.key in promised for claim in unmatched):
            return PodVolumes(bindings), _in_order([*reasons, BIND_CONFLICT])  # a new volume is not for it any more
        provisions = [*selected, *unmatched]
        found = check_provisioning(provisions, node, self._storage)
        if found is Provisioning.IMPOSSIBLE:
            return PodVolumes(bindings), _in_order([*reasons, BIND_CONFLICT])
        if found is Provisioning.NO_ROOM:
            return PodVolumes(bindings), _in_order([*reasons, NOT_ENOUGH_SPACE])
        return PodVolumes(bindings, provisions), reasons

    def _bound_elsewhere(self, claims: Sequence[corev1.PersistentVolumeClaim], node: corev1.Node) -> list[str]:
        """The first claim that is, decides. Go: checkBoundClaims."""
        csi_node = self._storage.csi_node(node.name) if claims else None
        for claim in claims:
            volume = self.volumes.get(claim.spec.volume_name)
            if volume is None:
                return [VOLUME_NOT_EXIST]
            if not node_affinity_matches(as_csi(volume, csi_node), node):
                return [NODE_CONFLICT]
        return []

    def assume(self, pod: corev1.Pod, node_name: str, found: PodVolumes) -> PodVolumes | None:
        """What the caches hold from now on; None where all claims are bound already. Raises BindingError, and then
        nothing is held. Go: AssumePodVolumes."""
        if self._all_bound(pod):
            return None
        assumed = PodVolumes()
        try:
            for binding in found.static_bindings:
                volume = bind_volume_to_claim(binding.volume, binding.claim)
                if volume is not binding.volume:
                    self.volumes.assume(volume)
                assumed.static_bindings.append(BindingInfo(binding.claim, volume))
            for claim in found.provisions:
                claim = with_selected_node(claim, node_name)
                self.claims.assume(claim)
                assumed.provisions.append(claim)
        except AssumeError as failed:
            self.revert(assumed)
            raise BindingError(str(failed)) from failed
        return assumed

    def _all_bound(self, pod: corev1.Pod) -> bool:
        try:
            return all(fully_bound(self._claim(pod, use.name, made_for_pod=use.ephemeral)) for use in claim_uses(pod))
        except BindingError:
            return False

    def revert(self, assumed: PodVolumes) -> None:
        """What was written meanwhile stays as it is. Go: RevertAssumedPodVolumes."""
        for binding in assumed.static_bindings:
            self.volumes.restore(binding.volume)
        for claim in assumed.provisions:
            self.claims.restore(claim)


def _free_for(volume: corev1.PersistentVolume, claims: Sequence[corev1.PersistentVolumeClaim]) -> bool:
    return volume.spec.claim_ref is None or any(bound_to_claim(volume, claim) for claim in claims)


def _match(
    open_claims: Sequence[corev1.PersistentVolumeClaim],
    claims: PodVolumeClaims,
    node: corev1.Node,
    promised: Mapping[str, str],
) -> tuple[list[BindingInfo], list[corev1.PersistentVolumeClaim]]:
    """Existing volumes for the claims, the smallest claim first; and the claims that none fits. Go: findMatchingVolumes."""
    bindings: list[BindingInfo] = []
    unmatched: list[corev1.PersistentVolumeClaim] = []
    taken: set[str] = set(promised.values())
    for claim in sorted(open_claims, key=claim_size):
        of_class, own = claims.volumes.get(claim.class_name, ()), promised.get(claim.metadata.key)
        if own is not None:
            volume = find_matching_volume(claim, [each for each in of_class if each.metadata.name == own], node)
        else:
            volume = find_matching_volume(claim, of_class, node, taken)
        if volume is None:
            unmatched.append(claim)
        else:
            taken.add(volume.metadata.name)
            bindings.append(BindingInfo(claim, volume))
    return bindings, unmatched


def as_csi(volume: corev1.PersistentVolume, csi_node: storagev1.CSINode | None) -> corev1.PersistentVolume:
    """An in-tree volume as the driver sees it, where the node has been migrated. Raises BindingError. Go: tryTranslatePVToCSI."""
    plugin = in_tree_plugin(volume.spec)
    if plugin is None or not migrated_on_node(plugin, csi_node):
        return volume
    try:
        return with_csi_topology(volume, plugin)
    except TranslationError as failed:
        raise BindingError(f"could not translate pv: {failed}") from failed


_ORDER = (NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, VOLUME_NOT_EXIST)


def _in_order(reasons: list[str]) -> list[str]:
    return sorted(reasons, key=_ORDER.index)
