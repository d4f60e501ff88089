"""Random storage for fresh scenarios: classes, volumes, claims, drivers with limits and capacities. Used by random_clusters.

The corpus has none of it. Pods come to use claims that are bound, may be bound, wait for their pod, or are not there.
"""

from __future__ import annotations

import random
from typing import Any

from tests.parity.random_pods import HOSTNAME, NAMESPACES, ZONE

Json = dict[str, Any]

GI = ("1Gi", "5Gi", "20Gi")
MODES = (["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadWriteMany"], ["ReadWriteOncePod"], ["ReadOnlyMany"])
DRIVERS = ("disk.example.com", "nfs.example.com", "ebs.csi.aws.com")
CLASSES = ("now", "later", "static", "zonal")
BOUND = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}


class Volumes:
    """Adds storage to one scenario."""

    def __init__(self, rng: random.Random, scenario: Json) -> None:
        self._rng = rng
        self._scenario = scenario
        self._nodes = [node["metadata"]["name"] for node in scenario["nodes"]]
        self._claims: list[Json] = []
        self._volumes: list[Json] = []

    def add(self) -> None:
        """Objects first, then pods come to use them."""
        scenario, rng = self._scenario, self._rng
        scenario["storageClasses"] = self._classes()
        for index in range(rng.randint(1, 6)):
            self._volume(f"free{index}")
        for namespace in NAMESPACES:
            for index in range(rng.randint(1, 4)):
                self._claim(f"claim{index}", namespace)
        scenario["persistentVolumes"], scenario["persistentVolumeClaims"] = self._volumes, self._claims
        scenario["csiNodes"] = [self._csi_node(name) for name in self._nodes if self._chance(0.8)]
        scenario["csiDrivers"] = [
            {"metadata": {"name": name}, "spec": {"storageCapacity": self._chance(0.6)}} for name in DRIVERS[:2]
        ]
        scenario["csiStorageCapacities"] = [self._capacity(f"cap{i}") for i in range(rng.randint(0, 5))]
        for pod in scenario["pods"]:
            if self._chance(0.3):
                self._use(pod)
        self._use(scenario["pending"])

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _classes(self) -> list[Json]:
        provisioners = {
            "static": "kubernetes.io/no-provisioner",
            "later": DRIVERS[0],
            "zonal": DRIVERS[0],
            "now": DRIVERS[1],
        }
        classes: list[Json] = [
            {
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": "Immediate" if name == "now" else "WaitForFirstConsumer",
            }
            for name, provisioner in provisioners.items()
        ]
        zones = self._rng.sample(("z1", "z2", "z3"), self._rng.randint(1, 2))
        next(c for c in classes if c["metadata"]["name"] == "zonal")["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": ZONE, "values": zones}]}
        ]
        return classes

    def _volume(self, name: str, class_name: str | None = None, modes: list[str] | None = None) -> Json:
        rng = self._rng
        volume: Json = {
            "metadata": {"name": name, "labels": {}},
            "spec": {
                "capacity": {"storage": rng.choice(GI)},
                "accessModes": modes or [*rng.choice(MODES)],
                "storageClassName": class_name or rng.choice(CLASSES),
                **self._source(name),
            },
            "status": {"phase": "Available"},
        }
        if self._chance(0.4):
            zones = rng.choice(("z1", "z2", "z1__z2", "z3"))
            key = ZONE if self._chance(0.8) else "failure-domain.beta.kubernetes.io/zone"
            volume["metadata"]["labels"][key] = zones
        if self._chance(0.4):
            key, values = rng.choice(((ZONE, ["z1", "z2"]), (HOSTNAME, rng.sample(self._nodes, 2)), (ZONE, ["z3"])))
            expression = {"key": key, "operator": "In", "values": values}
            volume["spec"]["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        if self._chance(0.1):
            volume["spec"]["volumeMode"] = "Block"
        if self._chance(0.1):
            volume["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        self._volumes.append(volume)
        return volume

    def _source(self, name: str) -> Json:
        sources: tuple[Json, ...] = (
            {"csi": {"driver": self._rng.choice(DRIVERS), "volumeHandle": f"handle-{name}"}},
            {"csi": {"driver": DRIVERS[0], "volumeHandle": f"handle-{self._rng.randrange(3)}"}},
            {"awsElasticBlockStore": {"volumeID": f"vol-{name}"}},
        )
        return self._rng.choice(sources)

    def _claim(self, name: str, namespace: str) -> None:
        rng, class_name, modes = self._rng, self._rng.choice(CLASSES), [*self._rng.choice(MODES)]
        claim: Json = {
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}", "annotations": {}},
            "spec": {
                "accessModes": modes,
                "resources": {"requests": {"storage": rng.choice(GI)}},
                "storageClassName": class_name,
            },
            "status": {"phase": "Pending"},
        }
        what = rng.random()
        if what < 0.55:
            self._bind(claim, self._volume(f"pv-{namespace}-{name}", class_name, modes))
        elif what < 0.6:
            claim["spec"]["volumeName"] = "nowhere"
            claim["metadata"]["annotations"] |= BOUND
        elif what < 0.65:
            claim["status"]["phase"] = "Lost"
        elif what < 0.7:
            claim["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        elif what < 0.75:
            claim["spec"]["selector"] = {"matchLabels": {ZONE: "z1"}}
        elif what < 0.8:
            claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = rng.choice(self._nodes)
        elif what < 0.83:
            claim["spec"]["storageClassName"] = "unknown"
        self._claims.append(claim)

    def _bind(self, claim: Json, volume: Json) -> None:
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        claim["status"]["phase"] = volume["status"]["phase"] = "Bound"
        metadata = claim["metadata"]
        reference = {"kind": "PersistentVolumeClaim", "namespace": metadata["namespace"], "name": metadata["name"]}
        volume["spec"]["claimRef"] = {**reference, "uid": metadata["uid"]}
        if self._chance(0.9):
            metadata["annotations"] |= BOUND

    def _csi_node(self, name: str) -> Json:
        drivers = []
        for driver in self._rng.sample(DRIVERS, self._rng.randint(1, 3)):
            entry: Json = {"name": driver, "nodeID": name, "topologyKeys": [ZONE]}
            if self._chance(0.7):
                entry["allocatable"] = {"count": self._rng.choice((0, 1, 2, 3))}
            drivers.append(entry)
        metadata: Json = {"name": name}
        if self._chance(0.5):
            metadata["annotations"] = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
        return {"metadata": metadata, "spec": {"drivers": drivers}}

    def _capacity(self, name: str) -> Json:
        rng = self._rng
        capacity: Json = {
            "metadata": {"name": name, "namespace": "default"},
            "storageClassName": rng.choice(CLASSES),
            "capacity": rng.choice((*GI, "100Gi")),
        }
        if self._chance(0.8):
            capacity["nodeTopology"] = rng.choice(({"matchLabels": {ZONE: rng.choice(("z1", "z2", "z3"))}}, {}))
        if self._chance(0.3):
            capacity["maximumVolumeSize"] = rng.choice(GI)
        return capacity

    def _use(self, pod: Json) -> None:
        rng, spec, volumes = self._rng, pod["spec"], []
        for index in range(rng.randint(1, 3)):
            what = rng.random()
            volume: Json = {"name": f"v{index}"}
            if what < 0.7:
                here = [
                    c["metadata"]["name"]
                    for c in self._claims
                    if c["metadata"]["namespace"] == pod["metadata"]["namespace"]
                ]
                claim = "absent" if self._chance(0.05) else rng.choice(here)
                volume["persistentVolumeClaim"] = {"claimName": claim, "readOnly": self._chance(0.2)}
            elif what < 0.75:
                volume["ephemeral"] = {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}
            elif what < 0.8:
                volume["emptyDir"] = {}
            elif what < 0.85:
                volume["csi"] = {"driver": DRIVERS[0]}
            else:
                volume |= self._inline()
            volumes.append(volume)
        spec["volumes"] = volumes

    def _inline(self) -> Json:
        rng, read_only = self._rng, self._chance(0.3)
        sources: tuple[Json, ...] = (
            {"gcePersistentDisk": {"pdName": rng.choice("ab"), "readOnly": read_only}},
            {"awsElasticBlockStore": {"volumeID": rng.choice("ab"), "readOnly": read_only}},
            {"iscsi": {"targetPortal": "10.0.0.1", "iqn": rng.choice("ab"), "lun": 0, "readOnly": read_only}},
            {
                "rbd": {
                    "monitors": rng.sample("abc", 2),
                    "pool": "rbd",
                    "image": rng.choice("ab"),
                    "readOnly": read_only,
                }
            },
        )
        return rng.choice(sources)
