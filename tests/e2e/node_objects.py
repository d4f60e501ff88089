"""Nodes and CSINodes as kubelets write them: with all that a status holds, and null where Go's encoder writes it.

Used by cluster for every node of every story. An image without tags and digests has no names: left by a tag that was built anew, or
by `kind load`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from extender.api.quantity import parse_quantity

Json = dict[str, Any]

SINCE = "2026-01-05T12:00:00Z"
PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
NFS = "nfs.csi.example.com"  # a driver that reaches every node, and so has no topology


SHARE = f"kubernetes.io/csi/{NFS}^share"
PLATFORM = {"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux"}
KEPT_FOR_THE_SYSTEM = {"cpu": "500m", "memory": "1Gi"}  # is in a node's capacity, and not in what it gives to pods
NO_REQUEST_NAMES_THEM = {"ephemeral-storage": "95Gi", "hugepages-1Gi": "0", "hugepages-2Mi": "0"}


def node(name: str, allocatable: Mapping[str, str], labels: Mapping[str, str], *, with_driver: bool) -> Json:
    """As it stands once its kubelet has registered it and told its status, and the controllers have seen it."""
    annotations = {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    if with_driver:
        annotations["csi.volume.kubernetes.io/nodeid"] = json.dumps({NFS: name})
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **PLATFORM, **labels},
            "annotations": annotations,
        },
        "spec": {"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.1.0/24"], "providerID": f"kind://docker/kind/{name}"},
        "status": node_status(name, allocatable),
    }


def node_status(name: str, allocatable: Mapping[str, str]) -> Json:
    room = {**NO_REQUEST_NAMES_THEM, **allocatable}
    conditions = [
        {
            "type": kind,
            "status": "False",
            "reason": reason,
            "message": message,
            "lastHeartbeatTime": SINCE,
            "lastTransitionTime": SINCE,
        }
        for kind, (reason, message) in PRESSURES.items()
    ]
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {
        "capacity": {
            resource: _more(amount, KEPT_FOR_THE_SYSTEM.get(resource, "0")) for resource, amount in room.items()
        },
        "allocatable": room,
        "conditions": [*conditions, ready],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": "8c5d1a4e-0000-4000-8000-000000000000",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.0",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.3",
            "machineID": "0" * 32,
            "operatingSystem": "linux",
            "osImage": "Linux",
            "systemUUID": "0" * 32,
        },
        "images": [
            {
                "names": [f"registry.example.com/agent@sha256:{'a' * 64}", "registry.example.com/agent:1"],
                "sizeBytes": 7,
            },
            {"names": [], "sizeBytes": 93_000_000},
            {"sizeBytes": 1_500_000},
        ],
        "volumesInUse": [SHARE],
        "volumesAttached": [{"name": SHARE, "devicePath": ""}],
        "runtimeHandlers": [{"name": "", "features": {"recursiveReadOnlyMounts": True, "userNamespaces": True}}],
        "features": {"supplementalGroupsPolicy": True},
    }


def _more(amount: str, added: str) -> str:
    """In thousandths, as the API server takes it of any resource."""
    return f"{parse_quantity(amount).milli_value + parse_quantity(added).milli_value}m"


def csi_node(node: Json, *, with_driver: bool) -> Json:
    """Of a node that was created. with_driver: one without topology keys; else none at all, which the API server gives as
    `drivers: null`."""
    name = node["metadata"]["name"]
    drivers = [{"name": NFS, "nodeID": name}] if with_driver else []
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd"}
    return {
        "metadata": {"name": name, "annotations": annotations, "ownerReferences": [owner]},
        "spec": {"drivers": drivers},
    }
