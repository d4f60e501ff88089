"""The order in which nodes are tried: zone by zone, one node of each in turn.

The cache keeps it; snapshots list their nodes in its order.
kube-scheduler: pkg/scheduler/backend/cache/node_tree.go, k8s.io/component-helpers/node/topology/helpers.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from extender.api import corev1

_REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")


def zone_key(node: corev1.Node) -> str:
    """Region and zone in one word, empty where the node has neither. The beta labels win. Go: GetZoneKey."""
    region = _first(node.labels, _REGION_LABELS)
    zone = _first(node.labels, _ZONE_LABELS)
    return f"{region}:\x00:{zone}" if region or zone else ""


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    for key in keys:
        if key in labels:
            return labels[key]
    return ""


class NodeTree:
    """Not thread-safe: the cache's lock guards it. `version` grows whenever the order may have changed."""

    def __init__(self) -> None:
        self._zones: dict[str, dict[str, None]] = {}  # zones, and names in each, in order of arrival
        self._zone_of: dict[str, str] = {}
        self.version = 0

    def __len__(self) -> int:
        return len(self._zone_of)

    def __contains__(self, name: object) -> bool:
        return name in self._zone_of

    def add_node(self, node: corev1.Node) -> None:
        """A node that is here already stays where it is, unless it has moved to another zone."""
        zone = zone_key(node)
        known = self._zone_of.get(node.name)
        if known == zone:
            return
        if known is not None:
            self.remove_node(node.name)
        self._zones.setdefault(zone, {})[node.name] = None
        self._zone_of[node.name] = zone
        self.version += 1

    def remove_node(self, name: str) -> bool:
        """False if it was not here. An emptied zone loses its turn."""
        zone = self._zone_of.pop(name, None)
        if zone is None:
            return False
        names = self._zones[zone]
        del names[name]
        if not names:
            del self._zones[zone]
        self.version += 1
        return True

    def list(self) -> Sequence[str]:
        """All names: the first of every zone, the second of every zone, and so on."""
        waiting = [iter(names) for names in self._zones.values()]
        order: list[str] = []
        while waiting:
            left = []
            for names in waiting:
                name = next(names, None)
                if name is not None:
                    order.append(name)
                    left.append(names)
            waiting = left
        return order
