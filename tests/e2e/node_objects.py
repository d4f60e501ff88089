"""Nodes and CSINodes as kubelets write them: with all that a status holds, and null where Go's encoder writes it.

Used by cluster for the nodes of stories that ask for them. An image without tags and digests has no names: left by a tag that was built
anew, or by `kind load`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

SINCE = "2026-01-05T12:00:00Z"
PRESSURES = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}
NFS = "nfs.csi.example.com"  # a driver that reaches every node, and so has no topology


def node_status(name: str, room: Mapping[str, str]) -> Json:
    """room: capacity and allocatable alike."""
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
        "capacity": dict(room),
        "allocatable": dict(room),
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
        "volumesInUse": ["kubernetes.io/csi/nfs.csi.example.com^share"],
        "volumesAttached": [{"name": "kubernetes.io/csi/nfs.csi.example.com^share", "devicePath": ""}],
        "runtimeHandlers": [{"name": "", "features": {"recursiveReadOnlyMounts": True}}],
    }


def csi_node(name: str, *, with_driver: bool) -> Json:
    """with_driver: one without topology keys; else none at all, which the API server gives as `drivers: null`."""
    drivers = [{"name": NFS, "nodeID": name}] if with_driver else []
    return {"metadata": {"name": name}, "spec": {"drivers": drivers}}
