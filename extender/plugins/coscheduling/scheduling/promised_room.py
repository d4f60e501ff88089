"""The newest snapshot with promised places in it, kept up with what changes: a plan costs what its gang needs, not what all have.

PlanRequests asks. There is one for each priority that gangs are planned at, since places hold against equal and lower priority.
kube-scheduler: pkg/scheduler/backend/cache (AssumePod, UpdateSnapshot) changes its one snapshot likewise
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.hypothetical import Replaceable, with_pods
from extender.plugins.coscheduling.state.slots import Slot, Slots

MOST_PRIORITIES = 8  # beyond it the one that was asked for longest ago is made anew when it is asked for again

Place = tuple[str, PodInfo]
"""A node's name, and the pod that is to come there."""


class PromisedRooms:
    """By priority. The manager's lock guards everything here."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._rooms: OrderedDict[int, PromisedRoom] = OrderedDict()

    def against(self, priority: int) -> PromisedRoom:
        """With the places that hold against a gang of this priority."""
        room = self._rooms.get(priority)
        if room is None:
            room = self._rooms[priority] = PromisedRoom(self._slots, priority)
            if len(self._rooms) > MOST_PRIORITIES:
                _, oldest = self._rooms.popitem(last=False)
                self._slots.unfollow(oldest.changed)
        self._rooms.move_to_end(priority)
        return room


class PromisedRoom:
    """One priority's. changed: the nodes whose places may be others than those that are known here; the slots note them."""

    def __init__(self, slots: Slots, priority: int) -> None:
        self._slots = slots
        self._priority = priority
        self.changed = slots.follow()
        self._on: dict[str, Sequence[Slot]] = {}  # node -> the places there that hold
        self._places: dict[str, Place] = {}  # by UID
        self._behind: set[str] = set()  # nodes that are not as they should be in the snapshot
        self._base: NodeInfoLister | None = None
        self._laid: Replaceable | None = None

    def places(self) -> Mapping[str, Place]:
        """By UID. Not to be changed, nor kept."""
        for name in self.changed:
            for place in self._on.pop(name, ()):
                self._places.pop(place.uid, None)
        for name in self.changed:
            holding = [place for place in self._slots.on_node(name) if place.holds_against(self._priority)]
            if holding:
                self._on[name] = holding
                self._places.update((place.uid, (name, place.pod_info)) for place in holding)
        self._behind |= self.changed
        self.changed.clear()
        return self._places

    def over(self, base: NodeInfoLister) -> NodeInfoLister:
        """The snapshot with these places in it."""
        places = self.places()
        if not isinstance(base, Replaceable):
            return with_pods(base, places.values())
        laid, moved = self._laid, self._moved(base)
        if laid is None or moved is None:
            fresh = base.replaced(dict(self._nodes(base, self._on)))
        else:
            fresh = laid.replaced(dict(self._nodes(base, self._behind.union(moved))))
        self._laid = fresh if isinstance(fresh, Replaceable) else None
        self._base = base
        self._behind.clear()
        return fresh

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

    def _nodes(self, base: NodeInfoLister, names: Iterable[str]) -> Iterable[tuple[str, NodeInfo]]:
        """As they should be; a pod that is there already counts once, a node that is gone does not count."""
        for name in names:
            try:
                node = base.get(name)
            except KeyError:
                continue
            here = {info.pod.uid for info in node.pods} if name in self._on else frozenset[str]()
            coming = [place.pod_info for place in self._on.get(name, ()) if place.uid not in here]
            if coming:
                node = node.clone()
                for info in coming:
                    node.add_pod(info)
            yield name, node
