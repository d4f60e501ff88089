"""How large a gang still fits, at each topology level: for the gauges that show how broken up the cluster is.

A gang of what size depends on what its members ask for: the reference member asks for the median of what members that wait
ask for; where none waits, of all members that there are; where there are none, for one CPU. Computed at a scrape.
No counterpart upstream.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from extender.api import corev1
from extender.framework.columnar import table_of
from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.framework.resource import CPU
from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.planner.domains import DomainCache, Domains
from extender.plugins.coscheduling.planner.room import Amounts, BoolColumn, IntColumn, Room, asked_of
from extender.plugins.coscheduling.scheduling.overlay import BELOW_ANY_PRIORITY, Overlays
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

CLUSTER, NODE = "cluster", "node"
ONE_CPU: Amounts = {CPU: 1000}
OUT_OF_ORDER = "node.kubernetes.io/"  # taints of nodes that are cordoned, not ready, under pressure


@dataclass(frozen=True)
class Largest:
    """members: by level, the most reference members that one domain of it has room for. reference: what one asks for."""

    members: Mapping[str, int] = field(default_factory=dict)
    reference: Amounts = field(default_factory=dict)


class LargestGang:
    """Asked by scrapes, from whichever thread; the manager's lock is held while the groups are looked through."""

    def __init__(
        self,
        manager: PodGroupManager,
        overlays: Overlays,
        newest_snapshot: Callable[[], NodeInfoLister],
        topology: Topology,
    ) -> None:
        self._manager = manager
        self._overlays = overlays
        self._newest_snapshot = newest_snapshot
        self._domains = DomainCache(topology.levels)
        self._lock = threading.Lock()  # guards those below; taken before the manager's
        self._known_for: tuple[NodeInfoLister | None, Amounts] = (None, {})
        self._known = Largest()
        self._members_version = -1  # at which the reference was looked for
        self._reference: Amounts = {}

    def __call__(self) -> Largest:
        """Computed once for a snapshot with its places, and a reference."""
        snapshot = self._newest_snapshot()
        with self._lock:
            with self._manager.lock:
                cluster = self._overlays.against(BELOW_ANY_PRIORITY).over(snapshot)
                version, members = self._manager.members_version, []
                if version != self._members_version:
                    members = [each for group in list(self._manager.groups.values()) for each in self._members(group)]
            if version != self._members_version:
                self._members_version, self._reference = version, reference_of(members)
            if self._known_for[0] is not cluster or self._known_for[1] != self._reference:
                found = largest(cluster, self._domains.of(cluster), self._reference)
                self._known_for, self._known = (cluster, self._reference), Largest(found, self._reference)
            return self._known

    def _members(self, group: Group) -> list[tuple[PodInfo, bool]]:
        """With whether each waits; those of a gang that is set aside are left out. Lock held."""
        return self._manager.quarantine.for_gang(group.key, "metrics", partial(_members_of, group), [])


def _members_of(group: Group) -> list[tuple[PodInfo, bool]]:
    return [(each.info, _waits(each.pod)) for each in group.members.values()]


def _waits(pod: corev1.Pod) -> bool:
    return not pod.node_name and not pod.terminal


def reference_of(members: Sequence[tuple[PodInfo, bool]]) -> Amounts:
    """members: with whether each waits for a node."""
    counted = [info for info, waits in members if waits] or [info for info, _ in members]
    asked = [asked_of(info.requests) for info in counted]
    names = sorted({name for amounts in asked for name in amounts})
    middle = {name: sorted(amounts.get(name, 0) for amounts in asked)[len(asked) // 2] for name in names}
    return {name: amount for name, amount in middle.items() if amount} or ONE_CPU


def largest(cluster: NodeInfoLister, domains: Domains, reference: Amounts) -> Mapping[str, int]:
    """cluster: with what is promised in it."""
    room = Room.of(cluster, reference)
    capacity: IntColumn = np.where(_in_order(cluster), room.capacity(reference), 0)
    result = {CLUSTER: int(capacity.sum()), NODE: int(capacity.max(initial=0))}
    for index, level in enumerate(domains.levels):
        result[level.name] = int(domains.sums(index, capacity).max(initial=0))
    return result


def _in_order(snapshot: NodeInfoLister) -> BoolColumn:
    table = table_of(snapshot)
    if table is not None:
        return ~(table.unschedulable() | table.taints().nodes_where(_out_of_order))
    return np.array(
        [
            not node.unschedulable and node.node is not None and not _out_of_order(node.node.spec.taints)
            for node in snapshot.list()
        ],
        dtype=np.bool_,
    )


def _out_of_order(taints: Iterable[corev1.Taint]) -> bool:
    """Other taints are kept for those that tolerate them, which gangs often do."""
    return any(taint.key.startswith(OUT_OF_ORDER) and taint.effect != "PreferNoSchedule" for taint in taints)
