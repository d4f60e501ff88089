"""Nodes for pods that are scheduled one by one: pods of no gang, and extra members of gangs that have their quorum.

Coscheduling's PreScore asks which of the offered nodes suits such a pod best; its PreFilter, which of them a member may go to
if its gang has to stay in one domain. packing_score has the arithmetic; the planner places whole gangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from extender.api import corev1
from extender.framework.columnar import NodeTable, Rows, table_of
from extender.framework.hypothetical import without_pods
from extender.framework.listers import NodeInfoLister
from extender.framework.named_nodes import NamedNodes
from extender.framework.node_info import NodeInfo
from extender.framework.node_rows import NodeRows
from extender.framework.pod_info import PodInfo
from extender.framework.resource import CPU, MEMORY
from extender.plugins.coscheduling.extension_points.packing_score import Usage, Wishes, scores
from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.planner.domains import DomainCache
from extender.plugins.coscheduling.planner.room import IntColumn
from extender.plugins.coscheduling.scheduling.overlay import BELOW_ANY_PRIORITY, Overlays
from extender.plugins.coscheduling.scheduling.topology import (
    Position,
    confinements,
    places_of,
    position_in,
)
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


@dataclass(frozen=True)
class PackingScores:
    """In 0..100 for the nodes that were offered, 0 for the others. by_row: one entry a node of the snapshot with that table."""

    position: Position
    by_row: IntColumn
    table: NodeTable | None

    def of(self, name: str) -> int:
        at = self.position(name)
        return int(self.by_row[at]) if at is not None else 0

    def of_rows(self, table: NodeTable, rows: Rows) -> IntColumn | None:
        """None for rows of another snapshot than PreScore's, which may be those of other nodes."""
        return self.by_row[rows] if table is self.table else None


class SinglePods:
    """Runs in scheduling cycles, one at a time; takes the manager's lock to look at a group and at the slots."""

    def __init__(self, manager: PodGroupManager, overlays: Overlays, topology: Topology) -> None:
        self._manager = manager
        self._overlays = overlays
        self._topology = topology
        self._domains = DomainCache(topology.levels)

    def scores(self, pod: corev1.Pod, nodes: Sequence[NodeInfo], snapshot: NodeInfoLister) -> PackingScores:
        position = position_in(snapshot)
        rows = _rows_of(nodes, snapshot, position)
        with self._manager.lock:
            group = self._manager.group_of(pod)
            siblings = _counted(places_of(self._manager, group), position) if group is not None else None
            cluster = self._overlays.against(BELOW_ANY_PRIORITY).over(snapshot)
            own = self._manager.slots.get(pod.uid)
        if own is not None:
            cluster = without_pods(cluster, {own.node_name: {pod.uid}})
        resources = {CPU, MEMORY, *PodInfo(pod).requests.scalar}
        wishes = Wishes(self._topology.packing, siblings)
        usage = Usage.of(cluster, resources)
        by_row = np.zeros(len(snapshot.list()), dtype=np.int64)
        by_row[rows] = scores(self._domains.of(snapshot), usage, wishes, rows)
        return PackingScores(position, by_row, table_of(snapshot))

    def confined_to(
        self, pod: corev1.Pod, nodes: Sequence[NodeInfo], snapshot: NodeInfoLister
    ) -> tuple[str, frozenset[str] | None]:
        """(the level of which a placed gang may not leave its domain, those of the nodes that are in it); None: all."""
        with self._manager.lock:
            group = self._manager.group_of(pod)
            confined = list(confinements(self._manager, self._topology, group, pod.uid)) if group is not None else []
        if not confined:
            return "", None
        rows, position = _rows_of(nodes, snapshot, position_in(snapshot)), position_in(snapshot)
        name = ""
        for each in confined:
            domains = self._domains.of(snapshot, each.topology.levels)
            own = each.domains(domains, position)
            inside = np.isin(domains.ids[each.level][rows], sorted(own))
            if not own and each.size:
                continue  # all slices are full
            if each.size and not inside.any():
                continue  # the slices that are not full are in another of the wider domains
            name = name if inside.all() and name else domains.levels[each.level].name
            rows = rows[inside]
        known = snapshot.list()
        return name, frozenset(known[at].name for at in rows.tolist())


def outside_domain(level: str) -> str:
    return f"node(s) are outside of the {level} that the gang is in"


def _counted(places: Iterable[str], position: Position) -> Counter[int]:
    return Counter(at for name in places if (at := position(name)) is not None)


def _rows_of(nodes: Sequence[NodeInfo], snapshot: NodeInfoLister, position: Position) -> Rows:
    """Where the nodes are in the snapshot, without those that it does not know."""
    if isinstance(nodes, NamedNodes):
        nodes = nodes.found()
    if isinstance(nodes, NodeRows) and nodes.table is table_of(snapshot):
        return nodes.rows
    return np.array([at for node in nodes if (at := position(node.name)) is not None], dtype=np.intp)
