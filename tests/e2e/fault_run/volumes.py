"""Volumes that wait for their first consumer: what makes them during a fault run, and which nodes a pod is tied to by its own.

Pods bring ephemeral claims, or find their own; a thread plays the controllers that make claims and volumes, now and then gives
one up, and is slow. A volume is reachable from one zone, or from one node, by its class. Used by `run`, `load` and `liveness`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from urllib3.exceptions import HTTPError

from extender.client.connection import Connection
from extender.client.errors import ApiError
from extender.plugins.volume_binding.matching import SELECTED_NODE
from extender.simulation.volume_controller import VolumeController
from tests.e2e.api import ALL_PODS, CSI_NODES, Api, Json, Refused
from tests.e2e.cluster import Cluster
from tests.e2e.fault_run.wishes import ZONE
from tests.e2e.storage import CLASSES, HOSTNAME, VOLUMES

CLAIMS = "/api/v1/namespaces/{namespace}/persistentvolumeclaims"
ALL_CLAIMS = "/api/v1/persistentvolumeclaims"
REACH = {"zonal": ZONE, "nodal": HOSTNAME}  # class -> the label of the nodes that share a volume of it
NAME = "data"


def volume_of(storage_class: str) -> Json:
    """An ephemeral one of a pod."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"name": NAME, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


def volume_of_its_own(pod: str) -> Json:
    """Of a pod that comes again under its name, and finds the claim that `make_claim` made for it."""
    return {"name": NAME, "persistentVolumeClaim": {"claimName": f"{pod}-{NAME}"}}


def make_claim(api: Api, namespace: str, pod: str, storage_class: str) -> None:
    """If there is none yet."""
    spec = volume_of(storage_class)["ephemeral"]["volumeClaimTemplate"]["spec"]
    try:
        api.create(CLAIMS.format(namespace=namespace), {"metadata": {"name": f"{pod}-{NAME}"}, "spec": spec})
    except Refused as refused:
        if refused.code != 409:
            raise


def remove_unused(api: Api) -> None:
    """Claims of pods that have gone, and their volumes, as the garbage collector and the provisioner do. Not while pods are made, which
    may find theirs again."""
    pods = {f"{_key(pod)}-{NAME}" for pod in api.items(ALL_PODS)}
    for claim in api.items(ALL_CLAIMS):
        if _key(claim) not in pods:
            _remove_claim(api, claim)
            if volume := claim["spec"].get("volumeName"):
                _remove(api, f"{VOLUMES}/{volume}")


@dataclass(frozen=True)
class Volumes:
    """What there is of them. claims: namespace/name -> the name of the volume."""

    claims: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, Json] = field(default_factory=dict)

    @classmethod
    def read(cls, api: Api) -> Volumes:
        claims = {_key(claim): claim["spec"].get("volumeName", "") for claim in api.items(ALL_CLAIMS)}
        return cls(claims, {volume["metadata"]["name"]: volume for volume in api.items(VOLUMES)})

    def nodes_for(self, pod: Json, nodes: Sequence[Json]) -> frozenset[str] | None:
        """From which its volume can be reached; None: it brings none, or one that is still to be made."""
        if not any(
            "ephemeral" in volume or "persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes", ())
        ):
            return None
        volume = self.volumes.get(self.claims.get(f"{_key(pod)}-{NAME}", ""))
        if volume is None or "nodeAffinity" not in volume["spec"]:  # made for a node that was gone by then
            return None
        (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        (here,) = term["matchExpressions"]  # one driver, one topology key
        return frozenset(
            node["metadata"]["name"]
            for node in nodes
            if node["metadata"].get("labels", {}).get(here["key"]) in here["values"]
        )


NO_VOLUMES = Volumes()


def _key(obj: Json) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


class Provisioner:
    """Plays the controllers in a thread of its own, from `start` to `stop`, which takes all away that it made."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._dice = random.Random(seed)
        self._connection = Connection.from_kubeconfig(str(cluster.plane.kubeconfig()))
        self._ended = threading.Event()
        self._calm = threading.Event()
        self._thread = threading.Thread(target=self._run, name="provisioner", daemon=True)

    def start(self) -> Provisioner:
        for name in REACH:
            body = {"metadata": {"name": name}, "provisioner": f"{name}.csi.example.com"}
            self._cluster.api.create(CLASSES, {**body, "volumeBindingMode": "WaitForFirstConsumer"})
        self._thread.start()
        return self

    def reach(self, node: str) -> None:
        """The drivers of a new node, as its kubelet tells of them."""
        drivers = [
            {"name": f"{name}.csi.example.com", "nodeID": node, "topologyKeys": [label]}
            for name, label in REACH.items()
        ]
        self._cluster.api.create(CSI_NODES, {"metadata": {"name": node}, "spec": {"drivers": drivers}})

    def calm(self) -> None:
        """No volume is given up any more, and none is slow."""
        self._calm.set()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join(30)
        assert not self._thread.is_alive(), "the provisioner did not end"
        self._connection.close()
        self._cluster.delete_all_pods()
        api = self._cluster.api
        for claim in api.items(ALL_CLAIMS):
            _remove_claim(api, claim)
        for path in (VOLUMES, CSI_NODES, CLASSES):
            for obj in api.items(path):
                _remove(api, f"{path}/{obj['metadata']['name']}")

    def _run(self) -> None:
        controller = VolumeController(self._connection)
        while not self._ended.wait(0.2 if self._calm.is_set() else self._dice.choice((0.1, 0.2, 1.0))):
            try:
                if not self._calm.is_set() and self._dice.random() < 0.1:
                    self._give_up()
                controller.sync()
            except (ApiError, Refused, HTTPError, OSError):
                continue  # the API server stands still

    def _give_up(self) -> None:
        """What an external provisioner does that cannot make a volume there: it is to be tried elsewhere."""
        for claim in self._cluster.api.items(ALL_CLAIMS):
            meta, named = claim["metadata"], claim["spec"].get("volumeName")
            if SELECTED_NODE in meta.get("annotations", {}) and not named:
                path = f"/api/v1/namespaces/{meta['namespace']}/persistentvolumeclaims/{meta['name']}"
                self._cluster.api.patch(path, {"metadata": {"annotations": {SELECTED_NODE: None}}})


def _remove_claim(api: Api, claim: Json) -> None:
    meta = claim["metadata"]
    _remove(api, f"{CLAIMS.format(namespace=meta['namespace'])}/{meta['name']}")


def _remove(api: Api, path: str) -> None:
    """What protects an object in use is taken off by a controller that is not here."""
    try:
        api.patch(path, {"metadata": {"finalizers": None}})
        api.delete(path)
    except Refused as refused:
        if refused.code != 404:
            raise
