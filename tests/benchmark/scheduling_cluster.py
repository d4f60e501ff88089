"""5,000 nodes with 50,000 pods of 500 Deployments, and the pods that are asked about: the cluster of `scheduling`.

A tenth of the pods prefers to be away from its own kind, some must be; nodes have zones, pools, taints and images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from extender.api import corev1
from extender.api.codec import convert
from extender.backend.cache.cache import Cache
from extender.client.store import Store

NODES = 5_000
PODS_PER_NODE = 10
APPS = 500
NAMESPACES = 20
IMAGES_PER_NODE = 8

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Json = dict[str, Any]


def node(number: int) -> corev1.Node:
    return convert(node_json(number), corev1.Node)


def node_json(number: int) -> Json:
    """One in 50 is tainted, one in 100 cordoned, one in 10 has GPUs."""
    allocatable = {"cpu": "32", "memory": "128Gi", "pods": "110", "ephemeral-storage": "500Gi"}
    if number % 10 == 0:
        allocatable["example.com/gpu"] = "8"
    labels = {HOSTNAME: f"node-{number}", ZONE: f"zone-{number % 3}", "pool": f"pool-{number % 7}", "arch": "amd64"}
    taints = [{"key": "dedicated", "value": f"team-{number % 4}", "effect": "NoSchedule"}] if number % 50 == 1 else []
    images = [
        {"names": [f"registry.example/app-{(number * 7 + i) % 40}:v1"], "sizeBytes": 50_000_000 * (i + 1)}
        for i in range(IMAGES_PER_NODE)
    ]
    return {
        "metadata": {"name": f"node-{number}", "labels": labels},
        "spec": {"taints": taints, "unschedulable": number % 100 == 2},
        "status": {"allocatable": allocatable, "images": images},
    }


def namespace_of(app: int) -> str:
    return f"team-{app % NAMESPACES}"


def pod_json(name: str, app: int, **spec: Any) -> Json:
    labels = {"app": f"app-{app}", "pod-template-hash": f"hash-{app}", "tier": f"tier-{app % 3}"}
    owner = {
        "kind": "ReplicaSet",
        "name": f"app-{app}",
        "uid": f"rs-{app}",
        "apiVersion": "apps/v1",
        "controller": True,
    }
    container = {
        "name": "c",
        "image": f"registry.example/app-{app % 40}:v1",
        "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}},
    }
    return {
        "metadata": {
            "name": name,
            "namespace": namespace_of(app),
            "uid": name,
            "labels": labels,
            "ownerReferences": [owner],
        },
        "spec": {"containers": [container], **spec},
    }


def _term(topology_key: str, **labels: str) -> Json:
    return {"topologyKey": topology_key, "labelSelector": {"matchLabels": labels}}


def anti_affinity(app: int, kind: str) -> Json:
    term = _term(HOSTNAME, app=f"app-{app}")
    return {"podAntiAffinity": {kind: [{"weight": 100, "podAffinityTerm": term} if kind == PREFERRED else term]}}


def running(number: int, slot: int) -> corev1.Pod:
    return convert(running_json(number, slot), corev1.Pod)


def running_json(number: int, slot: int) -> Json:
    app = (number * PODS_PER_NODE + slot * 37) % APPS
    spec: Json = {"nodeName": f"node-{number}"}
    if app % 10 == 0:
        spec["affinity"] = anti_affinity(app, PREFERRED)
    elif app % 50 == 7:
        spec["affinity"] = anti_affinity(app, REQUIRED)
    return pod_json(f"pod-{number}-{slot}", app, **spec)


def cache() -> Cache:
    full = Cache()
    for number in range(NODES):
        full.add_node(node(number))
        for slot in range(PODS_PER_NODE):
            full.add_pod(running(number, slot))
    return full


def stores() -> Mapping[type[Any], Store[Any]]:
    """A Service for every second application, a ReplicaSet for each, and the namespaces."""
    services, replica_sets, namespaces = Store[Any](), Store[Any](), Store[Any]()
    for app in range(APPS):
        meta = {"name": f"app-{app}", "namespace": namespace_of(app)}
        labels = {"app": f"app-{app}", "pod-template-hash": f"hash-{app}"}
        if app % 2 == 0:
            services.put(convert({"metadata": meta, "spec": {"selector": {"app": f"app-{app}"}}}, corev1.Service))
        replica_sets.put(convert({"metadata": meta, "spec": {"selector": {"matchLabels": labels}}}, corev1.ReplicaSet))
    for number in range(NAMESPACES):
        named = {"name": f"team-{number}", "labels": {"team": str(number)}}
        namespaces.put(convert({"metadata": named}, corev1.Namespace))
    return {corev1.Service: services, corev1.ReplicaSet: replica_sets, corev1.Namespace: namespaces}


def plain(name: str) -> corev1.Pod:
    """Resources, a node selector and a toleration; a pod without an owner."""
    spec = {
        "nodeSelector": {"arch": "amd64"},
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "team-1", "effect": "NoSchedule"}],
    }
    value = pod_json(name, 3, **spec)
    del value["metadata"]["ownerReferences"]
    value["metadata"]["labels"] = {"job": "batch"}
    return convert(value, corev1.Pod)


def deployment(name: str) -> corev1.Pod:
    """Default spread constraints by a Service and a ReplicaSet, preferred anti-affinity."""
    return convert(pod_json(name, 20, affinity=anti_affinity(20, PREFERRED)), corev1.Pod)


def with_affinity(name: str) -> corev1.Pod:
    """Required affinity to another application's zone, required anti-affinity to its own kind's nodes."""
    affinity = anti_affinity(27, REQUIRED) | {"podAffinity": {REQUIRED: [_term(ZONE, app="app-47")]}}
    return convert(pod_json(name, 27, affinity=affinity), corev1.Pod)
