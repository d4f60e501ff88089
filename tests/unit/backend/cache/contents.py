"""A snapshot as plain values, to be compared with another or with itself later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from extender.backend.cache.snapshot import Snapshot
from extender.backend.columns.table import Table
from extender.framework.columnar import PodClass
from extender.framework.node_info import NodeInfo
from tests.unit.backend.objects import ZONE

LABELS = ("a", "b")
PORTS = (1, 2)
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
        "table": _of_the_table(table) if (table := snapshot.table()) is not None else None,
    }


copied = contents
"""Nothing in the values is shared with the snapshot: what is read now can be compared later."""


def _of_the_table(table: Table) -> dict[str, Any]:
    zones, taints, affinity = table.label(ZONE), table.taints(), table.affinity()
    terms = affinity.of_namespace("default")
    per_node = {kind.key: affinity.per_node({number: 1}).tolist() for number, kind in terms}
    return {
        "zones": [zones.values[code] if code >= 0 else None for code in zones.codes.tolist()],
        "taints": [taints.sets[code] for code in taints.codes.tolist()],
        "unschedulable": table.unschedulable().tolist(),
        "pods": {label: table.pods().matching(label, _labelled(label)).tolist() for label in LABELS},
        "affinity": {key: counts for key, counts in per_node.items() if any(counts)},
        "ports": {port: table.ports_in_use(_is(port)).tolist() for port in PORTS},
    }


def _labelled(value: str) -> Callable[[PodClass], bool]:
    return lambda kind: kind.pod.metadata.labels.get("app") == value


def _is(port: int) -> Callable[[tuple[str, str, int]], bool]:
    return lambda used: used[2] == port


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
