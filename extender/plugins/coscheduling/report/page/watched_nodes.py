"""The nodes as the page draws them: each by its domains, with what is bound, held and promised of what it has.

ClusterFeed asks while a page is open; each update costs the nodes that have changed since the last one. Bound: pods on the
node, assumed ones included. Held: members that wait in Permit until their gang is whole. Promised: slots of plans.
No counterpart upstream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from msgspec import Struct

from extender.config.types import TopologyLevel
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.resource import CPU, MEMORY, Resource
from extender.plugins.coscheduling.report.largest_gang import is_out_of_order
from extender.plugins.coscheduling.report.page.stopwatch import Stopwatch
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, by_turns

MOST_SCALARS = 6  # extended resources that are shown: those that most nodes have
CORDONED, OUT_OF_ORDER, KEPT_FREE = 1, 2, 4
MIB = 20  # bits

Held = Mapping[str, Mapping[str, str]]
"""By group: UID -> node."""


class NodeRow(Struct, frozen=True, array_like=True, gc=False):
    """An array on the wire. domains: one for each level, empty where the node has none. marks: CORDONED, OUT_OF_ORDER, KEPT_FREE, added
    up. The amounts are of the resources in their order: cpu in milli, memory in MiB, others as they are."""

    name: str
    domains: tuple[str, ...]
    marks: int
    pods: int
    allocatable: tuple[int, ...]
    bound: tuple[int, ...]
    held: tuple[int, ...]
    promised: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NodeChanges:
    """anew: the resources are others than before, and the rows are all there are. gone: names."""

    anew: bool
    rows: Sequence[NodeRow]
    gone: Sequence[str]


class WatchedNodes:
    """Belongs to one thread. kept_free: the nodes that are kept free for a gang in line. Ends with `stop`."""

    def __init__(
        self,
        manager: PodGroupManager,
        newest_snapshot: Callable[[], NodeInfoLister],
        levels: Sequence[TopologyLevel],
        kept_free: Callable[[], AbstractSet[str]],
        watch: Stopwatch,
    ) -> None:
        self._manager = manager
        self._newest_snapshot = newest_snapshot
        self._levels = levels
        self._kept_free = kept_free
        self._watch = watch
        self._listed: Sequence[NodeInfo] = ()
        self._seen: dict[str, NodeInfo] = {}
        self._kept: AbstractSet[str] = frozenset()
        self.resources: Sequence[str] = ()
        self.rows: dict[str, NodeRow] = {}
        with manager.lock:
            self._promised = manager.slots.follow()

    def stop(self) -> None:
        with self._manager.lock:
            self._manager.slots.unfollow(self._promised)

    def update(self, held: Held, nodes: AbstractSet[str]) -> NodeChanges:
        """What differs from the last update; the first one is anew. nodes: those on which other members are held than before."""
        with self._watch.running():
            snapshot = self._newest_snapshot()
            moved, gone = self._moved(snapshot)
            with self._manager.lock:
                promised = set(self._promised)
                self._promised.clear()
                kept = self._kept_free()
            dirty = moved | nodes | promised | (kept ^ self._kept)
            self._kept = kept
            for name in gone:
                self.rows.pop(name, None)
            anew = self._resources_differ(dirty)
        uids = _by_node(held)
        found = list(self._rows(self._seen if anew else dirty & self._seen.keys(), uids))
        changed = [row for row in found if anew or self.rows.get(row.name) != row]
        self.rows.update((row.name, row) for row in changed)
        return NodeChanges(anew, changed, gone)

    def _moved(self, snapshot: NodeInfoLister) -> tuple[set[str], list[str]]:
        """The names of nodes that are not as in the last snapshot, and of those that are gone."""
        before, after = self._listed, snapshot.list()
        if after is before:
            return set(), []
        self._listed = after
        if len(before) == len(after):
            differ = [(old, new) for old, new in zip(before, after) if old is not new]
            if all(old.name == new.name for old, new in differ):
                self._seen.update((new.name, new) for _, new in differ)
                return {new.name for _, new in differ}, []
        seen, self._seen = self._seen, {node.name: node for node in after}
        moved = {name for name, node in self._seen.items() if seen.get(name) is not node}
        return moved, sorted(seen.keys() - self._seen.keys())

    def _resources_differ(self, dirty: Iterable[str]) -> bool:
        """Whether a node has a resource that is not shown, where there is room to show it, or nothing is shown yet."""
        if self.resources and (
            len(self.resources) >= 2 + MOST_SCALARS
            or not self._unknown(self._seen[name] for name in dirty if name in self._seen)
        ):
            return False
        found = Counter(name for node in self._seen.values() for name in node.allocatable.scalar)
        scalars = [name for name, _ in found.most_common(MOST_SCALARS)]
        self.resources = (CPU, MEMORY, *sorted(scalars))
        return True

    def _unknown(self, nodes: Iterable[NodeInfo]) -> bool:
        return any(name not in self.resources for node in nodes for name in node.allocatable.scalar)

    def _rows(self, names: Collection[str], held: Mapping[str, AbstractSet[str]]) -> Iterator[NodeRow]:
        for some in by_turns(names):
            with self._watch.running(), self._manager.lock:
                rows = [self._row(self._seen[name], held.get(name, frozenset())) for name in some]
            yield from rows

    def _row(self, node: NodeInfo, held: AbstractSet[str]) -> NodeRow:
        """Manager's lock held, for the places."""
        held_room, promised = Resource(), Resource()
        if held:
            for info in node.pods:
                if info.pod.uid in held:
                    held_room.add(info.requests)
        if slots := self._manager.slots.on_node(node.name):
            here = {info.pod.uid for info in node.pods}
            for slot in slots:
                if slot.uid not in here:
                    promised.add(slot.pod_info.requests)
        bound = node.requested.clone()
        bound.subtract(held_room)
        labels = node.labels
        return NodeRow(
            node.name,
            tuple(labels.get(level.key, "") for level in self._levels),
            self._marks(node),
            len(node.pods),
            self._amounts(node.allocatable),
            self._amounts(bound),
            self._amounts(held_room),
            self._amounts(promised),
        )

    def _marks(self, node: NodeInfo) -> int:
        sick = node.node is not None and is_out_of_order(node.node.spec.taints)
        kept = node.name in self._kept
        return CORDONED * node.unschedulable + OUT_OF_ORDER * sick + KEPT_FREE * kept

    def _amounts(self, resource: Resource) -> tuple[int, ...]:
        return tuple(
            resource.amount(name) >> MIB if name == MEMORY else resource.amount(name) for name in self.resources
        )


def _by_node(held: Held) -> Mapping[str, AbstractSet[str]]:
    found: dict[str, set[str]] = {}
    for members in held.values():
        for uid, node in members.items():
            found.setdefault(node, set()).add(uid)
    return found
