"""How large a gang still fits, at each topology level: for the gauges that show how broken up the cluster is.

A gang of what size depends on what its members ask for: the reference member asks for the median of what members that wait
ask for; where none waits, of all members that there are; where there are none, for one CPU. Computed at a scrape.
No counterpart upstream.
"""

from __future__ import annotations

import threading
from collections import Counter
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
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, by_turns

CLUSTER, NODE = "cluster", "node"
ONE_CPU: Amounts = {CPU: 1000}
OUT_OF_ORDER = "node.kubernetes.io/"  # taints of nodes that are cordoned, not ready, under pressure


@dataclass(frozen=True)
class Largest:
    """members: by level, the most reference members that one domain of it has room for. reference: what one asks for."""

    members: Mapping[str, int] = field(default_factory=dict)
    reference: Amounts = field(default_factory=dict)


@dataclass(eq=False)
class LargestGang:
    """Asked by scrapes, from whichever thread."""

    manager: PodGroupManager
    overlays: Overlays
    newest_snapshot: Callable[[], NodeInfoLister]
    topology: Topology

    def __post_init__(self) -> None:
        self._domains = DomainCache(self.topology.levels)
        self._lock = threading.Lock()  # guards those below; taken before the manager's
        self._known_for: tuple[NodeInfoLister | None, Amounts] = (None, {})
        self._known = Largest()
        self._asked: dict[str, _AskedByGroup] = {}

    def __call__(self) -> Largest:
        """Computed once for a snapshot with its places, and a reference."""
        snapshot = self.newest_snapshot()
        with self._lock:
            reference = reference_of(self._asked_by_all())
            with self.manager.lock:
                cluster = self.overlays.against(BELOW_ANY_PRIORITY).over(snapshot)
            if self._known_for[0] is not cluster or self._known_for[1] != reference:
                found = largest(cluster, self._domains.of(cluster), reference)
                self._known_for, self._known = (cluster, reference), Largest(found, reference)
            return self._known

    def _asked_by_all(self) -> Asked:
        """The members of a gang are looked through once for each change of them. Takes the manager's lock, some groups at a time."""
        with self.manager.lock:
            keys = list(self.manager.groups)
        known, self._asked = self._asked, {}
        found: Asked = Counter()
        for some in by_turns(keys):
            with self.manager.lock:
                for key in some:
                    if (group := self.manager.groups.get(key)) is None:
                        continue
                    asked = known.get(key)
                    if asked is None or asked.group is not group or asked.changes != group.changes:
                        asked = _AskedByGroup(group, group.changes, self._members(group))
                    self._asked[key] = asked
                    # Counter.update makes sure each time that it is given a mapping
                    for what, count in asked.asked.items():
                        found[what] += count
        return found

    def _members(self, group: Group) -> Asked:
        """Those of a gang that is set aside are left out. Lock held."""
        return self.manager.quarantine.for_gang(group.key, "metrics", partial(_asked_in, group), Counter())


Asked = Counter[tuple[tuple[tuple[str, int], ...], bool]]
"""How many members ask for what, by resource name, and whether they wait for a node."""


@dataclass(frozen=True, slots=True)
class _AskedByGroup:
    """changes: of the group, when its members were looked through."""

    group: Group
    changes: int
    asked: Asked


def _asked_in(group: Group) -> Asked:
    return asked_by([(each.info, _waits(each.pod)) for each in group.members.values()])


def _waits(pod: corev1.Pod) -> bool:
    return not pod.node_name and not pod.terminal


def asked_by(members: Sequence[tuple[PodInfo, bool]]) -> Asked:
    """members: with whether each waits for a node."""
    return Counter((tuple(sorted(asked_of(info.requests).items())), waits) for info, waits in members)


def reference_of(asked: Asked) -> Amounts:
    """The median of what those that wait ask for; of all where none waits; one CPU where there are none."""
    waiting = {amounts: count for (amounts, waits), count in asked.items() if waits}
    counted = [(dict(amounts), count) for amounts, count in waiting.items()] or [
        (dict(amounts), count) for (amounts, _), count in asked.items()
    ]
    names = sorted({name for amounts, _ in counted for name in amounts})
    middle = {name: _median([(amounts.get(name, 0), count) for amounts, count in counted]) for name in names}
    return {name: amount for name, amount in middle.items() if amount} or ONE_CPU


def _median(counted: Sequence[tuple[int, int]]) -> int:
    """counted: amounts, and how often each is there. The upper one of two in the middle."""
    left = sum(count for _, count in counted) // 2
    for amount, count in sorted(counted):
        if left < count:
            return amount
        left -= count
    return 0


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
        return ~(table.unschedulable() | table.taints().nodes_where(is_out_of_order))
    return np.array(
        [
            not node.unschedulable and node.node is not None and not is_out_of_order(node.node.spec.taints)
            for node in snapshot.list()
        ],
        dtype=np.bool_,
    )


def is_out_of_order(taints: Iterable[corev1.Taint]) -> bool:
    """Whether a node with these taints is cordoned, not ready or under pressure.

    Other taints are kept for those that tolerate them, which gangs often do.
    """
    return any(taint.key.startswith(OUT_OF_ORDER) and taint.effect != "PreferNoSchedule" for taint in taints)
