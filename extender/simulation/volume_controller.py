"""The controllers that bind, provision and make claims, as far as scheduling waits for them.

The simulation gives it a turn whenever nothing else moves; it works on any API, one pass a call, in an order of its own.
Kubernetes: pkg/controller/volume/persistentvolume (syncClaim, syncVolume), pkg/controller/volume/ephemeral,
and an external provisioner for every class that names one
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeVar

from extender.api import codec, corev1, storagev1
from extender.api.corev1.volume import (
    CLAIM_BOUND,
    CLAIM_LOST,
    STORAGE,
    VOLUME_AVAILABLE,
    VOLUME_BOUND,
    VOLUME_PENDING,
    VOLUME_RELEASED,
)
from extender.api.storagev1 import NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER
from extender.client.errors import AlreadyExistsError, ConflictError, InvalidError, NotFoundError
from extender.client.interface import (
    API,
    CSI_NODES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STORAGE_CLASSES,
    ResourceType,
    list_all,
)
from extender.plugins.csi_translation import BY_NAME
from extender.plugins.pod_claims import claim_use
from extender.plugins.volume_binding.matching import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    bound_to_claim,
    claim_reference,
    find_matching_volume,
    fully_bound,
)

T = TypeVar("T")
V = TypeVar("V", corev1.PersistentVolume, corev1.PersistentVolumeClaim)
Json = dict[str, Any]

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_PAGE = 500


class VolumeController:
    """Not thread-safe. Fulfils driver.Controller."""

    def __init__(self, api: API) -> None:
        self._api = api
        self._idle_at = ""  # the API's version at which there was nothing to do

    def sync(self) -> bool:
        """One pass over everything. False if there was nothing to do."""
        version = self._api.list_page(PERSISTENT_VOLUME_CLAIMS, limit=1).resource_version
        if version and version == self._idle_at:
            return False
        if _Pass(self._api).run():
            return True
        self._idle_at = version
        return False


class _Pass:
    """What is there now, and what is done about it."""

    def __init__(self, api: API) -> None:
        self._api = api
        self._volumes = {volume.metadata.name: volume for volume in self._list(PERSISTENT_VOLUMES)}
        self._claims = {claim.metadata.key: claim for claim in self._list(PERSISTENT_VOLUME_CLAIMS)}
        self._classes = {each.metadata.name: each for each in self._list(STORAGE_CLASSES)}
        self._wrote = False

    def run(self) -> bool:
        for pod in self._list(PODS):
            self._make_claims(pod)
        for volume in list(self._volumes.values()):
            self._settle_volume(volume)
        for claim in list(self._claims.values()):
            if claim.metadata.deletion_timestamp is None:
                self._settle_claim(claim)
        return self._wrote

    def _list(self, resource: ResourceType[T]) -> Sequence[T]:
        return list(list_all(self._api, resource, limit=_PAGE))

    # Claims of ephemeral volumes

    def _make_claims(self, pod: corev1.Pod) -> None:
        for volume in pod.spec.volumes:
            template = volume.ephemeral.volume_claim_template if volume.ephemeral is not None else None
            use = claim_use(pod, volume)
            if template is None or use is None or f"{pod.namespace}/{use.name}" in self._claims or pod.deleting:
                continue
            owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
            body = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {
                    "name": use.name,
                    "labels": template.metadata.labels,
                    "annotations": template.metadata.annotations,
                    "ownerReferences": [owner],
                },
                "spec": codec.to_builtins(template.spec),
            }
            self._create(PERSISTENT_VOLUME_CLAIMS, body, pod.namespace)

    # Volumes

    def _settle_volume(self, volume: corev1.PersistentVolume) -> None:
        """Free, or taken by a claim that is gone. Go: syncVolume."""
        reference, phase = volume.spec.claim_ref, volume.status.phase
        if reference is None or not reference.uid:
            if phase in ("", VOLUME_PENDING):
                self._phase(PERSISTENT_VOLUMES, volume, VOLUME_AVAILABLE)
            return
        claim = self._claims.get(f"{reference.namespace}/{reference.name}")
        if (claim is None or claim.metadata.uid != reference.uid) and phase not in (VOLUME_RELEASED, "Failed"):
            self._phase(PERSISTENT_VOLUMES, volume, VOLUME_RELEASED)

    # Claims

    def _settle_claim(self, claim: corev1.PersistentVolumeClaim) -> None:
        """Go: syncClaim."""
        if claim.spec.volume_name:
            self._settle_named(claim)
            return
        storage_class = self._classes.get(claim.class_name)
        delayed = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        candidates = [v for v in self._volumes.values() if not delayed or bound_to_claim(v, claim)]
        volume = find_matching_volume(claim, candidates, None)
        if volume is not None:
            self._bind(volume, claim)
        elif storage_class is not None and (not delayed or SELECTED_NODE.on(claim.metadata)):
            self._provision(claim, storage_class)

    def _settle_named(self, claim: corev1.PersistentVolumeClaim) -> None:
        """The claim names its volume: bound already, or by its user's wish."""
        volume = self._volumes.get(claim.spec.volume_name)
        if volume is None:
            if fully_bound(claim) and claim.status.phase != CLAIM_LOST:
                self._phase(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_LOST)
        elif volume.spec.claim_ref is None or bound_to_claim(volume, claim):
            self._bind(volume, claim)

    def _bind(self, volume: corev1.PersistentVolume, claim: corev1.PersistentVolumeClaim) -> None:
        """Each of the two names the other, then both say that they are bound. Go: bind."""
        by_controller = {BOUND_BY_CONTROLLER: "yes"}
        if volume.spec.claim_ref is None or not volume.spec.claim_ref.uid:
            reference = codec.to_builtins(claim_reference(claim))
            body: Json = {"metadata": {"annotations": by_controller}, "spec": {"claimRef": reference}}
            volume = self._patch(PERSISTENT_VOLUMES, volume, body)
        self._phase(PERSISTENT_VOLUMES, volume, VOLUME_BOUND)
        if not fully_bound(claim):
            annotations = {BIND_COMPLETED: "yes", **({} if claim.spec.volume_name else by_controller)}
            body = {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.metadata.name}}
            claim = self._patch(PERSISTENT_VOLUME_CLAIMS, claim, body)
        self._phase(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_BOUND)

    def _provision(self, claim: corev1.PersistentVolumeClaim, storage_class: storagev1.StorageClass) -> None:
        """A new volume of the size that is asked for, where the selected node can reach it."""
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return
        plugin = BY_NAME.get(storage_class.provisioner)
        driver = plugin.driver if plugin is not None else storage_class.provisioner
        name = f"pvc-{claim.metadata.uid}"
        size = claim.spec.resources.requests.get(STORAGE)
        spec: Json = {
            "capacity": {STORAGE: size.text if size is not None else "0"},
            "accessModes": list(claim.spec.access_modes),
            "storageClassName": claim.class_name,
            "volumeMode": claim.spec.volume_mode or "Filesystem",
            "claimRef": codec.to_builtins(claim_reference(claim)),
            "csi": {"driver": driver, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": "Delete",
        }
        if claim.spec.volume_attributes_class_name:
            spec["volumeAttributesClassName"] = claim.spec.volume_attributes_class_name
        terms = self._reachable_from(SELECTED_NODE.text(claim.metadata), driver, storage_class)
        if terms:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        body = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: driver}},
            "spec": spec,
        }
        self._create(PERSISTENT_VOLUMES, body)

    def _reachable_from(self, node_name: str, driver: str, storage_class: storagev1.StorageClass) -> list[Json]:
        """Node selector terms: the node's values of the driver's topology keys; without a node the class' topologies."""
        if not node_name:
            return [
                {"matchExpressions": [_in(each.key, each.values) for each in term.match_label_expressions]}
                for term in storage_class.allowed_topologies
            ]
        try:
            labels = self._api.get(NODES, node_name).labels
            drivers = self._api.get(CSI_NODES, node_name).spec.drivers
        except NotFoundError:
            return []
        keys = [key for each in drivers if each.name == driver for key in each.topology_keys]
        expressions = [_in(key, [labels[key]]) for key in keys if key in labels]
        return [{"matchExpressions": expressions}] if expressions else []

    # Writing: what has changed meanwhile is left for the next pass

    def _phase(self, resource: ResourceType[V], obj: V, phase: str) -> None:
        if obj.status.phase != phase:
            self._patch(resource, obj, {"status": {"phase": phase}}, "status")

    def _patch(self, resource: ResourceType[V], obj: V, body: Json, subresource: str = "") -> V:
        """As the API has it then; as it was where another writer was first."""
        meta = obj.metadata
        held = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {**body, "metadata": {**body.get("metadata", {}), **held}}
        try:
            new = self._api.patch(resource, meta.name, body, namespace=meta.namespace, subresource=subresource)
        except (ConflictError, NotFoundError):
            self._wrote = True
            return obj
        self._wrote = self._wrote or new.metadata.resource_version != meta.resource_version
        if isinstance(new, corev1.PersistentVolume):
            self._volumes[meta.name] = new
        return new

    def _create(self, resource: ResourceType[Any], body: Json, namespace: str = "") -> None:
        """One that the API refuses is not made: the pod that needs it waits, and no other."""
        with suppress(InvalidError):
            with suppress(AlreadyExistsError):
                self._api.create(resource, body, namespace)
            self._wrote = True


def _in(key: str, values: Sequence[str]) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}
