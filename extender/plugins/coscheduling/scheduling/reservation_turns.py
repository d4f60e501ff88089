"""Which gang has the next turn to have nodes kept free for it: how long each has waited, and how many turns it has had in vain.

BackfillReservations asks and tells; VainTurns makes the pauses longer. No counterpart upstream.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Iterator
from enum import Enum, auto
from functools import partial

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.backfill.vain_turns import AskedRoom, Turn, VainTurns, room_of
from extender.plugins.coscheduling.dependencies import BackfillRules
from extender.plugins.coscheduling.planner.room import Amounts
from extender.plugins.coscheduling.scheduling.phases import Phase, phase_of
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

log = logging.getLogger(__name__)

SHORT_OF_ROOM = frozenset(
    (
        UnschedulableReason.INSUFFICIENT_RESOURCES,
        UnschedulableReason.MIN_RESOURCES,
        UnschedulableReason.TOPOLOGY_UNSATISFIABLE,
    )
)
"""What room that comes free can change; a node selector that nothing matches is no reason to keep nodes free."""
PAUSE_SECONDS = 15.0
"""Between two reservations: a pod that was refused for one is woken by its end, and tried before the next begins, after kube-scheduler's
longest back-off at the latest. Else a few gangs that never fit would keep the nodes idle for good, in turn."""
AGAIN_SECONDS = 30.0  # until a gang for which no nodes were found is looked at again, at least
STARTS = frozenset((Phase.COMMITTING, Phase.BOUND))


class End(Enum):
    """How a turn has ended, for the turns that come after it."""

    STARTED = auto()
    IN_VAIN = auto()
    CUT_SHORT = auto()  # we lead no more, or victims go first


class ReservationTurns:
    """The manager's lock guards everything here."""

    def __init__(self, manager: PodGroupManager, rules: BackfillRules) -> None:
        self._manager = manager
        self._rules = rules
        self._waits_since: dict[str, float] = {}  # groups that lack room -> since when, or since their last turn
        self._turns: dict[str, int] = {}  # how many reservations groups have had since they last started
        self._vain = VainTurns(self._rules.after_seconds, PAUSE_SECONDS)
        self._room: Amounts = {}  # of the cluster, when it was last looked at
        self._room_known_at = -math.inf
        self._looked_at: Iterator[str] = iter(())  # of those that have had turns, one each tick
        self._not_before: dict[str, float] = {}
        manager.registry.on_dropped.append(self.forget)

    def denied(self, group: Group, stop: Diagnosis) -> None:
        """Groups that start together have their turns as one."""
        if self._rules.on and stop.reason in SHORT_OF_ROOM:
            key = min(each.key for each in gang_set_of(self._manager, group))
            self._waits_since.setdefault(key, self._manager.clock())

    def planned(self, gang_set: Iterable[Group]) -> None:
        """The turns that it has had are not forgotten before it starts."""
        for group in gang_set:
            for notes in (self._waits_since, self._not_before):
                notes.pop(group.key, None)

    def forget(self, key: str) -> None:
        """The group is gone, or has started."""
        for notes in (self._waits_since, self._not_before, self._turns):
            notes.pop(key, None)
        self._vain.forget(key)

    def know_room(self, snapshot: NodeInfoLister) -> None:
        room = room_of(snapshot)
        with self._manager.lock:
            self._room, self._room_known_at = room, self._manager.clock()

    def look_at_one(self, current: Collection[str]) -> None:
        """One of those that have had turns, each time another: they are forgotten where they say nothing any more. Lock held.

        current: the groups that have their turn now."""
        key = next(self._looked_at, "")
        if not key:
            self._looked_at = iter(list(self._turns))
            return
        group = self._manager.groups.get(key)
        if group is not None and key in self._turns and key not in current:
            self._manager.quarantine.for_gang(key, "shadow", partial(self._look_at, group), None)

    def _look_at(self, group: Group) -> None:
        phase = phase_of(self._manager, group)
        if phase in STARTS:
            self.forget(group.key)
        elif phase is Phase.DENIED and self._vain.is_over(group.key, self.wish_of(group), self._room):
            log.info("backfill reservation may come again group=%s", group.key)
            self._turns.pop(group.key, None)

    def wish_of(self, group: Group) -> AskedRoom:
        gang_set = sorted(gang_set_of(self._manager, group), key=lambda each: each.key)
        specs = [spec for spec in map(self._manager.specs.of, gang_set) if spec is not None]
        return AskedRoom.of(specs, (info for each in gang_set for info in each.pending()))

    def next(self) -> Group | None:
        """The gang that has its turn now: of the namespace that had the fewest in vain, the one that had the fewest, then the first
        in line. Lock held."""
        manager, now = self._manager, self._manager.clock()
        due = [
            manager.groups[key]
            for key, since in self._waits_since.items()
            if now - since >= self._rules.after_seconds
            and self._not_before.get(key, now) <= now
            and self._vain.may_begin(key, now)
        ]
        waiting = [
            group
            for group in due
            if manager.quarantine.for_gang(group.key, "shadow", partial(phase_of, manager, group), None) is Phase.DENIED
        ]
        return min(manager.line.in_order(waiting), key=self._turns_before, default=None)

    def _turns_before(self, group: Group) -> tuple[int, int]:
        return self._vain.of_namespace(group.key), self._turns.get(group.key, 0)

    def room_is_old(self) -> bool:
        """Whether the cluster's room has to be looked at again. Lock held."""
        return bool(self._turns) and self._manager.clock() - self._room_known_at >= PAUSE_SECONDS

    def tried(self, key: str) -> frozenset[str]:
        """The nodes of turns that it has had in vain."""
        return self._vain.tried(key)

    def begun(self, key: str) -> None:
        self._turns[key] = self._turns.get(key, 0) + 1

    def found_no_nodes(self, key: str) -> None:
        """It is looked at again after a while."""
        self._not_before[key] = self._manager.clock() + max(AGAIN_SECONDS, self._rules.after_seconds)

    def ended(self, key: str, since: float, wish: AskedRoom, nodes: frozenset[str], how: End) -> None:
        """Its turn is over: its time begins anew."""
        now = self._manager.clock()
        if key in self._waits_since:
            self._waits_since[key] = now
        if how is End.STARTED:
            self._vain.started(key)
            self._turns.pop(key, None)
        elif how is End.IN_VAIN:
            self._vain.ended(key, self._turns.get(key, 1), now, Turn(now - since, wish, self._room, nodes))
        if key not in self._manager.groups:
            self.forget(key)
