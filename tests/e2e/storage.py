"""Volumes, claims and classes of a test on the real API server, and what the controllers write that are not there.

Used by the stories about volumes. A test plays the controller itself, or lets VolumeController do so.
"""

from __future__ import annotations

from typing import Any

from extender.client.connection import Connection
from extender.plugins.volume_binding.matching import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE
from extender.simulation.volume_controller import VolumeController
from tests.e2e.api import Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.processes import eventually

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
DRIVER = "csi.example.com"
HOSTNAME = "kubernetes.io/hostname"


class Storage:
    """Volumes, claims and classes of a test, gone after it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.api = cluster.api
        self.connection = Connection.from_kubeconfig(str(cluster.plane.kubeconfig()))
        self.controller = VolumeController(self.connection)

    def stop(self) -> None:
        self.connection.close()
        self.cluster.delete_all_pods()
        for path in (CLAIMS, VOLUMES):
            for obj in self.api.items(path):
                self._remove(f"{path}/{obj['metadata']['name']}")
        self.api.delete(CLASSES)

    def _remove(self, path: str) -> None:
        """What protects an object in use is taken off by a controller that is not here."""
        self.api.patch(path, {"metadata": {"finalizers": None}})
        try:
            self.api.delete(path)
        except Refused as refused:
            if refused.code != 404:
                raise

    def storage_class(self, name: str, provisioner: str = "kubernetes.io/no-provisioner", **fields: Any) -> None:
        body = {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        self.api.create(CLASSES, {**body, **fields})

    def volume(self, name: str, node: str, storage_class: str = "local") -> None:
        """A disk of one node, available."""
        here = {"key": HOSTNAME, "operator": "In", "values": [node]}
        spec = {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "local": {"path": f"/disks/{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        self.api.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
        self.api.patch(f"{VOLUMES}/{name}/status", {"status": {"phase": "Available"}})

    def claim(self, name: str, storage_class: str = "local") -> None:
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "5Gi"}},
        }
        self.api.create(CLAIMS, {"metadata": {"name": name}, "spec": spec})

    def get(self, path: str, name: str) -> Json:
        return self.api.get(f"{path}/{name}")

    def await_claim_of(self, volume: str) -> Json:
        """The claimRef that the scheduler writes."""
        found: list[Json] = []

        def written() -> bool:
            found[:] = [self.get(VOLUMES, volume)["spec"].get("claimRef")]
            return bool(found[0])

        eventually(written, within=10, what=f"{volume} is meant for a claim")
        return found[0]

    def await_selected_node(self, claim: str) -> str:
        def selected() -> str:
            return str(self.get(CLAIMS, claim)["metadata"].get("annotations", {}).get(SELECTED_NODE, ""))

        eventually(selected, within=10, what=f"{claim} is wanted on a node")
        return selected()

    def bind(self, volume: str, claim: str) -> None:
        """What the controller of persistent volumes writes once a volume is meant for a claim."""
        annotations = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
        self.api.patch(f"{VOLUMES}/{volume}/status", {"status": {"phase": "Bound"}})
        self.api.patch(f"{CLAIMS}/{claim}", {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume}})
        self.api.patch(f"{CLAIMS}/{claim}/status", {"status": {"phase": "Bound"}})

    def provision(self, claim: str) -> None:
        """What an external provisioner and the controller do for a claim that is wanted on a node."""
        found = self.get(CLAIMS, claim)
        name = f"pvc-{claim}"
        here = {"key": HOSTNAME, "operator": "In", "values": [found["metadata"]["annotations"][SELECTED_NODE]]}
        spec = {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": found["spec"]["storageClassName"],
            "csi": {"driver": DRIVER, "volumeHandle": name},
            "claimRef": {"namespace": "default", "name": claim, "uid": found["metadata"]["uid"]},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        self.api.create(VOLUMES, {"metadata": {"name": name}, "spec": spec})
        self.bind(name, claim)

    def node_of(self, pod: str) -> str:
        found = self.cluster.recorder.pod(pod) or {"spec": {}}
        return str(found["spec"].get("nodeName", ""))
