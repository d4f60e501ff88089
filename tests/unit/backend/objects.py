"""Pods and nodes with just what the backend looks at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from extender.api import corev1
from extender.api.codec import convert

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
CORDONED = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
TERM = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "a"}}}


class FakeClock:
    """Time that passes when a test says so."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def step(self, seconds: float) -> None:
        self.now += seconds


def a_node(
    name: str,
    *,
    zone: str = "",
    region: str = "",
    cpu: str = "4",
    images: Mapping[str, int] | None = None,
    allocatable: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    cordoned: bool = False,
) -> corev1.Node:
    """cordoned: with the taint that goes with it."""
    all_labels = dict(labels or {})
    if zone:
        all_labels[ZONE] = zone
    if region:
        all_labels[REGION] = region
    return convert(
        {
            "metadata": {"name": name, "labels": all_labels},
            "spec": {"unschedulable": True, "taints": [CORDONED]} if cordoned else {},
            "status": {
                "allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "110", **(allocatable or {})},
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
            },
        },
        corev1.Node,
    )


def a_pod(
    name: str,
    node: str = "",
    *,
    uid: str = "",
    cpu: str = "100m",
    requests: Mapping[str, str] | None = None,
    priority: int | None = None,
    labels: Mapping[str, str] | None = None,
    gates: Sequence[str] = (),
    nominated: str = "",
    port: int = 0,
    affinity: str = "",
    claim: str = "",
    deleting: bool = False,
    phase: str = "Pending",
    annotations: Mapping[str, str] | None = None,
) -> corev1.Pod:
    """affinity: podAffinity or podAntiAffinity, required."""
    container: dict[str, Any] = {"name": "c", "resources": {"requests": {"cpu": cpu, **(requests or {})}}}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    spec: dict[str, Any] = {
        "containers": [container],
        "nodeName": node,
        "priority": priority,
        "schedulingGates": [{"name": gate} for gate in gates],
    }
    if affinity:
        spec["affinity"] = {affinity: {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}}
    if claim:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"uid-{name}",
        "labels": dict(labels or {}),
        "annotations": dict(annotations or {}),
    }
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"nominatedNodeName": nominated, "phase": phase}
    return convert({"metadata": metadata, "spec": spec, "status": status}, corev1.Pod)
