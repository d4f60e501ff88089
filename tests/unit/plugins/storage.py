"""Claims, volumes and classes for the volume plugins' tests, and a handle whose listers are what a test puts in.

Builders take JSON spelling where it is more than a word; `handle.put` stands for what the watch shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from extender.api import corev1, storagev1
from extender.api.codec import convert
from extender.backend.cache.snapshot import Snapshot, new_snapshot
from extender.client.store import Store
from extender.plugins.volume_binding.matching import BIND_COMPLETED

Json = dict[str, Any]
LOCAL, FAST, NOW = "local", "fast", "now"


def make_claim(
    name: str, *, bound_to: str = "", storage_class: str | None = None, size: str = "1Gi", **more: Any
) -> corev1.PersistentVolumeClaim:
    """In namespace default. bound_to: bound for good. more: annotations, labels, phase, owner, modes, spec, version, ..."""
    annotations = dict(more.pop("annotations", {}))
    if bound_to:
        annotations[BIND_COMPLETED] = "yes"
    spec: Json = {"volumeName": bound_to, "accessModes": more.pop("modes", ["ReadWriteOnce"])}
    spec["resources"] = {"requests": {"storage": size}}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    meta: Json = {"name": name, "namespace": more.pop("namespace", "default"), "uid": f"uid-{name}"}
    meta |= {"annotations": annotations, "resourceVersion": more.pop("version", "1"), **more.pop("metadata", {})}
    if owner := more.pop("owner", ""):
        meta["ownerReferences"] = [{"kind": "Pod", "name": owner, "uid": owner, "controller": True}]
    status = {"phase": more.pop("phase", "Bound" if bound_to else "Pending")}
    spec |= more.pop("spec", {})
    assert not more, more
    return convert({"metadata": meta, "spec": spec, "status": status}, corev1.PersistentVolumeClaim)


def make_volume(name: str, *, storage_class: str = "", size: str = "1Gi", **more: Any) -> corev1.PersistentVolume:
    """zone: node affinity to it. more: labels, annotations, phase, claim (a claimRef), csi, spec, version, metadata."""
    spec: Json = {"capacity": {"storage": size}, "accessModes": more.pop("modes", ["ReadWriteOnce"])}
    spec["storageClassName"] = storage_class
    if zone := more.pop("zone", ""):
        spec["nodeAffinity"] = affinity("zone", zone)
    if claim := more.pop("claim", None):
        spec["claimRef"] = claim
    if handle := more.pop("csi", ""):
        spec["csi"] = {"driver": handle.partition("/")[0], "volumeHandle": handle.partition("/")[2]}
    meta: Json = {"name": name, "uid": f"uid-{name}", "resourceVersion": more.pop("version", "1")}
    meta |= {"labels": more.pop("labels", {}), "annotations": more.pop("annotations", {}), **more.pop("metadata", {})}
    status = {"phase": more.pop("phase", "Available")}
    spec |= more.pop("spec", {})
    assert not more, more
    return convert({"metadata": meta, "spec": spec, "status": status}, corev1.PersistentVolume)


def affinity(key: str, *values: str) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}
    return {"required": {"nodeSelectorTerms": [term]}}


def make_class(name: str, provisioner: str = "kubernetes.io/no-provisioner", **fields: Any) -> storagev1.StorageClass:
    """Waits for the first consumer where nothing else is said."""
    value = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", **fields}
    return convert({"metadata": {"name": name}, **value}, storagev1.StorageClass)


def allowed(key: str, *values: str) -> list[Json]:
    return [{"matchLabelExpressions": [{"key": key, "values": list(values)}]}]


def make_csi_node(name: str, *, migrated: str = "", **limits: int | None) -> storagev1.CSINode:
    """limits: driver (with _ for .) -> count."""
    drivers = [
        {
            "name": driver.replace("_", "."),
            "nodeID": name,
            "allocatable": {"count": count} if count is not None else None,
        }
        for driver, count in limits.items()
    ]
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated} if migrated else {}
    return convert(
        {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}, storagev1.CSINode
    )


def make_capacity(
    name: str, storage_class: str, zone: str, capacity: str, largest: str = ""
) -> storagev1.CSIStorageCapacity:
    value: Json = {"metadata": {"name": name, "namespace": "default"}, "storageClassName": storage_class}
    value |= {"nodeTopology": {"matchLabels": {"zone": zone}}, "capacity": capacity}
    if largest:
        value["maximumVolumeSize"] = largest
    return convert(value, storagev1.CSIStorageCapacity)


def make_driver(name: str, *, storage_capacity: bool) -> storagev1.CSIDriver:
    return convert({"metadata": {"name": name}, "spec": {"storageCapacity": storage_capacity}}, storagev1.CSIDriver)


def make_attachment(name: str, attacher: str, node: str, volume: str | None) -> storagev1.VolumeAttachment:
    spec = {"attacher": attacher, "nodeName": node, "source": {"persistentVolumeName": volume}}
    return convert({"metadata": {"name": name}, "spec": spec}, storagev1.VolumeAttachment)


class PodInPreBind:
    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def cancel_pod(self, message: str) -> bool:
        self.cancelled.set()
        return True


class StorageHandle:
    """Of framework.handle.Handle what the volume plugins use. sleep moves the clock, and lets the story go on."""

    def __init__(self, objects: Iterable[Any] = (), api: Any = None) -> None:
        self.api = api
        self.now = 0.0
        self.running: PodInPreBind | None = None
        self.while_asleep: Callable[[], None] = lambda: None
        self._stores: dict[type[Any], Store[Any]] = {}
        self._pods: Sequence[corev1.Pod] = ()
        self._nodes: Sequence[corev1.Node] = ()
        for obj in objects:
            self.put(obj)

    def put(self, obj: Any) -> None:
        self._stores.setdefault(type(obj), Store()).put(obj)

    def remove(self, obj: Any) -> None:
        self._stores[type(obj)].remove(obj.metadata.key)

    def lister(self, type_: type[Any]) -> Store[Any]:
        return self._stores.get(type_) or Store()

    def with_cluster(self, pods: Sequence[corev1.Pod], nodes: Sequence[corev1.Node]) -> StorageHandle:
        self._pods, self._nodes = pods, nodes
        return self

    def snapshot(self) -> Snapshot:
        return new_snapshot(self._pods, self._nodes)

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.while_asleep()

    def get_pod_in_pre_bind(self, uid: str) -> PodInPreBind | None:
        return self.running
