"""A snapshot as plain values, to be compared with another or with itself later."""

from __future__ import annotations

from typing import Any

from extender.backend.cache.snapshot import Snapshot
from extender.framework.node_info import NodeInfo

RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods", "example.com/gpu")


def contents(snapshot: Snapshot) -> dict[str, Any]:
    columns = snapshot.columns()
    return {
        "nodes": [_node(node) for node in snapshot.list()],
        "found": [snapshot.get(node.name) is node for node in snapshot.list()],
        "positions": [snapshot.position(node.name) for node in snapshot.list()],
        "affinity": [node.name for node in snapshot.have_pods_with_affinity()],
        "anti-affinity": [node.name for node in snapshot.have_pods_with_required_anti_affinity()],
        "columns": {
            resource: [
                column(resource).tolist()
                for column in (columns.allocatable, columns.requested, columns.non_zero_requested)
            ]
            for resource in RESOURCES
        },
    }


copied = contents
"""Nothing in the values is shared with the snapshot: what is read now can be compared later."""


def _node(node: NodeInfo) -> dict[str, Any]:
    return {
        "node": node.node,
        "generation": node.generation,
        "pods": [info.pod for info in node.pods],
        "with affinity": sorted(info.pod.uid for info in node.pods_with_affinity),
        "with anti-affinity": sorted(info.pod.uid for info in node.pods_with_required_anti_affinity),
        "requested": {name: node.requested.amount(name) for name in RESOURCES},
        "allocatable": {name: node.allocatable.amount(name) for name in RESOURCES},
        "non-zero": (node.non_zero_milli_cpu, node.non_zero_memory),
        "ports": sorted(node.used_ports._ports),
        "claims": dict(node.pvc_ref_counts),
        "images": sorted(node.image_states),
    }
