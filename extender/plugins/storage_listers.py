"""Claims, volumes, classes and what CSI drivers publish, as the watches last showed them, under their own types.

The volume plugins read through it; a scheduler that runs them watches what they name in `watches`
(see watched_resources). kube-scheduler: the listers of k8s.io/client-go/listers
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar, cast

from extender.api import corev1, storagev1
from extender.framework.handle import Handle
from extender.framework.listers import Lister

T = TypeVar("T")


class NotFoundError(LookupError):
    """The object is not there, in the API server's words."""

    def __init__(self, resource: str, name: str) -> None:
        super().__init__(f'{resource} "{name}" not found')

    def __str__(self) -> str:
        return str(self.args[0])


class StorageListers:
    """Asks the handle anew each time: the watches may begin after the plugin was built."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def _lister(self, type_: type[T]) -> Lister[T]:
        return cast("Lister[T]", self._handle.lister(type_))

    def claim(self, namespace: str, name: str) -> corev1.PersistentVolumeClaim:
        """Raises NotFoundError."""
        return _found(self._lister(corev1.PersistentVolumeClaim), "persistentvolumeclaim", f"{namespace}/{name}", name)

    def claims(self) -> Lister[corev1.PersistentVolumeClaim]:
        return self._lister(corev1.PersistentVolumeClaim)

    def volume(self, name: str) -> corev1.PersistentVolume:
        """Raises NotFoundError."""
        return _found(self._lister(corev1.PersistentVolume), "persistentvolume", name, name)

    def volumes(self) -> Lister[corev1.PersistentVolume]:
        return self._lister(corev1.PersistentVolume)

    def storage_class(self, name: str) -> storagev1.StorageClass:
        """Raises NotFoundError."""
        return _found(self._lister(storagev1.StorageClass), "storageclass.storage.k8s.io", name, name)

    def csi_node(self, name: str) -> storagev1.CSINode | None:
        """None is common: a node without CSI drivers has none."""
        return self._lister(storagev1.CSINode).get(name)

    def csi_driver(self, name: str) -> storagev1.CSIDriver | None:
        return self._lister(storagev1.CSIDriver).get(name)

    def storage_capacities(self) -> Iterable[storagev1.CSIStorageCapacity]:
        return self._lister(storagev1.CSIStorageCapacity).list()

    def volume_attachments(self) -> Iterable[storagev1.VolumeAttachment]:
        return self._lister(storagev1.VolumeAttachment).list()

    def node(self, name: str) -> corev1.Node:
        """Raises NotFoundError."""
        return _found(self._lister(corev1.Node), "node", name, name)

    def pod(self, namespace: str, name: str) -> corev1.Pod:
        """Raises NotFoundError."""
        return _found(self._lister(corev1.Pod), "pod", f"{namespace}/{name}", name)


def _found(lister: Lister[T], resource: str, key: str, name: str) -> T:
    found = lister.get(key)
    if found is None:
        raise NotFoundError(resource, name)
    return found
