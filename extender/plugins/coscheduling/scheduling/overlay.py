"""The newest snapshot with the slots as pods in it, updated by deltas: plans, the guard, victim searches and pages all read it.

The cost of an update depends on how many nodes had a change of pods or slots since the last one, not on how many gangs have slots.
A slot holds against equal and lower priority only, so there is an overlay for each priority that sees different slots.
kube-scheduler: pkg/scheduler/backend/cache (AssumePod, UpdateSnapshot) changes its one snapshot likewise
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from extender.framework.hypothetical import with_nodes
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.plugins.coscheduling.state.slots import Slot, Slots

MOST_OVERLAYS = 8  # beyond it the one that was asked for longest ago is made anew when it is asked for again
BELOW_ANY_PRIORITY = -(2**31) - 1  # against it every place holds


class Overlays:
    """By the lowest priority of the places that they have. The manager's lock guards everything here."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._overlays: OrderedDict[int, Overlay] = OrderedDict()
        self._most = MOST_OVERLAYS

    @contextmanager
    def none_kept(self) -> Iterator[None]:
        """What is asked within leaves the overlays that there were, and no other: it need not be asked again. The lock is held all the
        time."""
        before, most = self._overlays.copy(), self._most
        self._most = len(before) + MOST_OVERLAYS
        try:
            yield
        finally:
            for lowest, overlay in self._overlays.items():
                if lowest not in before:
                    self._slots.unfollow(overlay.changed)
            self._overlays, self._most = before, most

    def __iter__(self) -> Iterator[Overlay]:
        return iter(self._overlays.values())

    def against(self, priority: int) -> Overlay:
        """With the places that hold against a pod or a gang of this priority."""
        lowest = self._slots.lowest_against(priority)
        overlay = self._overlays.get(lowest)
        if overlay is None:
            overlay = self._overlays[lowest] = Overlay(self._slots, lowest)
            if len(self._overlays) > self._most:
                _, oldest = self._overlays.popitem(last=False)
                self._slots.unfollow(oldest.changed)
        self._overlays.move_to_end(lowest)
        return overlay


class Overlay:
    """The snapshot with the slots of one priority and above, and the firm slots.

    changed: nodes with changes of slots that are not in the overlay yet; Slots adds to it.
    """

    def __init__(self, slots: Slots, priority: int) -> None:
        self._slots = slots
        self.priority = priority
        self.changed = slots.follow(priority)
        self._on: dict[str, Sequence[Slot]] = {}  # node -> the places there that hold
        self._clones: dict[str, tuple[NodeInfo, NodeInfo]] = {}  # without these places, and with them
        self._by_node: Mapping[str, Sequence[Slot]] | None = None  # a copy of `_on`, until that changes
        self._behind: set[str] = set()  # nodes that are not as they should be in `_laid`
        self._base: NodeInfoLister | None = None
        self._laid: NodeInfoLister | None = None

    def places(self) -> Iterator[Slot]:
        """All of them, node by node."""
        self._catch_up()
        return (place for places in self._on.values() for place in places)

    def on_node(self, name: str) -> Sequence[Slot]:
        self._catch_up()
        return self._on.get(name, ())

    def by_node(self) -> Mapping[str, Sequence[Slot]]:
        """As they are now, by the nodes that have any: for a question that goes on without the lock."""
        self._catch_up()
        if self._by_node is None:
            self._by_node = dict(self._on)
        return self._by_node

    def over(self, base: NodeInfoLister) -> NodeInfoLister:
        """The snapshot with these places in it; the same object for as long as neither has changed."""
        self._catch_up()
        if not self._on:
            self._base = self._laid = None
            return base
        moved = self._moved(base)
        if self._laid is None or moved is None:
            self._laid = with_nodes(base, dict(self._nodes(base, self._on)))
        else:
            self._laid = with_nodes(self._laid, dict(self._nodes(base, self._behind.union(moved))))
        self._base = base
        self._behind.clear()
        return self._laid

    def _catch_up(self) -> None:
        if self.changed:
            self._by_node = None
        for name in self.changed:
            self._clones.pop(name, None)
            holding = [place for place in self._slots.on_node(name) if place.holds_against(self.priority)]
            if holding:
                self._on[name] = holding
                self._behind.add(name)
            elif self._on.pop(name, None) is not None:
                self._behind.add(name)
        self.changed.clear()

    def _moved(self, base: NodeInfoLister) -> Sequence[str] | None:
        """The nodes that are others than in the last snapshot; None where it has not the same nodes in the same order."""
        if self._base is None:
            return None
        if base is self._base:
            return ()
        before, after = self._base.list(), base.list()
        if len(before) != len(after):
            return None
        pairs = [(old, new) for old, new in zip(before, after, strict=True) if old is not new]
        return [new.name for _, new in pairs] if all(old.name == new.name for old, new in pairs) else None

    def _nodes(self, base: NodeInfoLister, names: Iterable[str]) -> Iterator[tuple[str, NodeInfo]]:
        """As they should be; a node that is gone does not count."""
        for name in names:
            try:
                node = base.get(name)
            except KeyError:
                continue
            if name not in self._on:
                yield name, node
                continue
            known = self._clones.get(name)
            if known is None or known[0] is not node:
                known = self._clones[name] = node, self._with_places(node)
            yield name, known[1]

    def _with_places(self, node: NodeInfo) -> NodeInfo:
        """A pod that is there already counts once."""
        here = {info.pod.uid for info in node.pods}
        coming = [place.pod_info for place in self._on[node.name] if place.uid not in here]
        if coming:
            node = node.clone()
            for info in coming:
                node.add_pod(info)
        return node
