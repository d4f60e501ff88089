"""The order in which gangs are planned: what decides between two that want the same room, and how planning time is shared.

PlanningRounds takes one gang after the other from a line. The manager's `order` comes first (what has begun, then priority); among
gangs of one priority those of a namespace that has used much planning time lately come after the others, so that gangs which can
never start delay no other tenant's; then age. kube-scheduler: pkg/scheduler/framework/plugins/queuesort orders pods
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush

from extender.crash import guarded
from extender.plugins.coscheduling.spec.named_groups import namespace_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts

SLICE_SECONDS = 0.25  # of planning time, after which it is the turn of namespaces that have used fewer slices
HALF_LIFE_SECONDS = 5.0  # after which half of what a namespace has used is forgotten
# Active for longer than that: before gangs of its slice that are older but were planned since.
PASSED_OVER_SECONDS = 2.0


class PlanningOrder:
    """What is remembered from one turn to the next. The manager's lock guards everything here."""

    def __init__(self, manager: PodGroupManager) -> None:
        self._manager = manager
        self._used: dict[str, float] = {}  # namespace -> seconds of planning
        self._faded = manager.clock()
        self._since: dict[str, float] = {}  # key of an active group -> since when it has been active

    def line(self) -> PlanningLine:
        """The gangs that are active now, and those that become so while it is worked off."""
        self._fade()
        active = self._manager.queue.active
        self._since = {key: since for key, since in self._since.items() if key in active}
        return PlanningLine(self._manager, self._rank)

    def planned(self, group: Group, seconds: float) -> None:
        """The group has been looked at, which took so long."""
        self._since.pop(group.key, None)
        if seconds > 0:
            namespace = namespace_of(group.key)
            self._used[namespace] = self._used.get(namespace, 0.0) + seconds

    def _fade(self) -> None:
        now = self._manager.clock()
        left = 0.5 ** ((now - self._faded) / HALF_LIFE_SECONDS)
        self._faded = now
        self._used = {name: used * left for name, used in self._used.items() if used * left > SLICE_SECONDS / 100}

    def _rank(self, group: Group) -> tuple[object, ...]:
        """Smaller is earlier."""
        now = self._manager.clock()
        since = self._since.setdefault(group.key, now)
        waited = (0, since) if now - since > PASSED_OVER_SECONDS else (1, 0.0)
        slices = int(self._used.get(namespace_of(group.key), 0.0) / SLICE_SECONDS)
        begun, priority, given_up, *age = self._manager.line.order(group)
        return begun, priority, given_up, slices, waited, *age


def take(manager: PodGroupManager, key: str) -> None:
    """The gang with that key is planned now: what happens to it from now on makes it active again. Lock held."""
    manager.queue.active.discard(key)
    if not guarded("order", partial(manager.queue.begin_planning, key)):
        manager.quarantine.set_aside(key)


class PlanningLine:
    """One turn's. The manager's lock guards it."""

    def __init__(self, manager: PodGroupManager, rank: Callable[[Group], tuple[object, ...]]) -> None:
        self._manager = manager
        self._rank = rank
        self._ranked: list[tuple[tuple[object, ...], str]] = []  # a heap
        self._keys: set[str] = set()
        self._unranked: list[str] = []
        self._moves = -1  # of the queue, when it was last looked at for what has become active

    def rank_some(self) -> bool:
        """Ranks gangs that have become active, as many as may be looked at under one hold of the lock. False while there are more:
        answers have their turn between."""
        queue, groups = self._manager.queue, self._manager.groups
        if self._moves != queue.moves and not self._unranked:
            self._moves = queue.moves
            self._unranked = list(queue.active - self._keys)
        if not self._unranked:
            return True
        for key in next(in_parts(self._unranked.pop() for _ in range(len(self._unranked)))):
            group = groups.get(key)
            rank = self._ranked_by(group) if group is not None else None
            if rank is not None:
                heappush(self._ranked, (rank, key))
                self._keys.add(key)
            elif key in queue.active:
                take(self._manager, key)  # it is gone, or set aside, and comes again when that is over
        return not self._unranked

    def next(self) -> Group | None:
        """The first of those that are ranked, which is active no longer: what happens to it from now on makes it so again. None
        where none of them is active."""
        queue, groups = self._manager.queue, self._manager.groups
        while self._ranked:
            _, key = heappop(self._ranked)
            self._keys.discard(key)
            if key in queue.active and key in groups:
                take(self._manager, key)
                return groups[key]
        return None

    def _ranked_by(self, group: Group) -> tuple[object, ...] | None:
        return self._manager.quarantine.for_gang(group.key, "order", partial(self._rank, group), None)
