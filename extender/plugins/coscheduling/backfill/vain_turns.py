"""Turns in vain: nodes were kept free for a gang, and it did not start. They make the pauses before further turns longer.

BackfillReservations keeps it, asks it which gang may have a turn now, and tells it how each turn ended. Four rules:

- After each turn in vain a gang waits four times as long as after the one before, from the fifth on for a day.
- After the third turn in vain in a row, whichever gangs had them, all gangs wait, twice as long after each further one. Those of a
  namespace that has had none wait no longer than after the third.
- In its next turn a gang has other nodes kept free for it, as long as there are others that would do.
- What a gang has had is forgotten when it starts, when it asks for less, and when the cluster has got larger.

No counterpart upstream.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling.planner.room import Amounts, asked_of
from extender.plugins.coscheduling.spec.named_groups import namespace_of
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.retry import Retry

GROWTH = 4.0
A_DAY = 86400.0
FREE_TURNS = 2  # in vain, in a row, after which the pause for all gangs is not prolonged
LENGTHS = Retry(2.0, 8.0)
"""The pause for all gangs beyond them, in lengths of the turn before it."""


@dataclass(frozen=True, slots=True)
class AskedRoom:
    """What a gang, or groups that start together, ask for. largest: of each resource the most that one member asks for.

    needed: the sum of minMember.
    """

    needed: int = 0
    required_levels: tuple[str, ...] = ()
    largest: Amounts = field(default_factory=dict)

    @classmethod
    def of(cls, specs: Iterable[GroupSpec], members: Iterable[PodInfo]) -> AskedRoom:
        """specs: of the groups, in the order of their keys. members: those that have no place yet."""
        known, largest = list(specs), dict[str, int]()
        for info in members:
            for name, amount in asked_of(info.requests).items():
                largest[name] = max(amount, largest.get(name, 0))
        return cls(sum(spec.min_member for spec in known), tuple(spec.topology.required for spec in known), largest)

    def is_less_than(self, before: AskedRoom) -> bool:
        """Whether it may find room that it did not find before, in the same cluster."""
        names = self.largest.keys() | before.largest.keys()
        pairs = [(self.largest.get(name, 0), before.largest.get(name, 0)) for name in names]
        smaller = any(now < then for now, then in pairs) and all(now <= then for now, then in pairs)
        return smaller or self.needed < before.needed or self.required_levels != before.required_levels


@dataclass(frozen=True, slots=True)
class Turn:
    """One that was in vain. lasted: seconds. wish: the gang's. room: what the cluster has. nodes: those that were kept free."""

    lasted: float
    wish: AskedRoom
    room: Amounts
    nodes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Vain:
    """until: seconds of the clock, before which it gets no further turn. room: the most that the cluster has had.

    tried: the nodes that were kept free for it in vain.
    """

    until: float
    wish: AskedRoom
    room: Amounts
    tried: frozenset[str]


class VainTurns:
    """By the keys of groups. Not locked: the manager's lock guards it. now: seconds of the clock.

    after_seconds: how long a gang waits for its first turn, and after its first turn in vain. pause_seconds: between any two.
    """

    def __init__(self, after_seconds: float, pause_seconds: float) -> None:
        self._after_seconds = after_seconds
        self._pause_seconds = pause_seconds
        self._gangs: dict[str, _Vain] = {}
        self._of_namespace: dict[str, int] = {}
        self._in_a_row = 0
        self._ended = -math.inf
        self._lasted = 0.0

    def may_begin(self, key: str, now: float) -> bool:
        """Whether the gang may have a turn now."""
        vain = self._gangs.get(key)
        if vain is not None and now < vain.until:
            return False
        return now - self._ended >= self._pause(clean=not self.of_namespace(key))

    def of_namespace(self, key: str) -> int:
        """How many turns gangs of the group's namespace have had in vain."""
        return self._of_namespace.get(namespace_of(key), 0)

    def tried(self, key: str) -> frozenset[str]:
        """The nodes that were kept free for the gang in vain, since all that would do were tried once."""
        vain = self._gangs.get(key)
        return vain.tried if vain is not None else frozenset()

    def ended(self, key: str, turns: int, now: float, turn: Turn) -> None:
        """The gang's turn was in vain. turns: how many it has had. One that was over at once has kept nothing idle, and does not count."""
        if turn.lasted < self._pause_seconds:
            return
        if now - self._ended >= A_DAY:
            self._begin_anew()
        before = self._gangs.get(key)
        until = now + Retry(self._after_seconds, max(A_DAY, self._after_seconds), GROWTH).seconds(turns)
        known = before.room if before is not None else {}
        most = {name: max(amount, known.get(name, 0)) for name, amount in turn.room.items()}
        tried = self.tried(key)
        tried = turn.nodes | tried if turn.nodes.isdisjoint(tried) else turn.nodes
        self._gangs[key] = _Vain(until, turn.wish, most, tried)
        self._of_namespace[namespace_of(key)] = self.of_namespace(key) + 1
        self._in_a_row += 1
        self._ended, self._lasted = now, turn.lasted

    def started(self, key: str) -> None:
        """The gang's turn was not in vain."""
        self._gangs.pop(key, None)
        self._of_namespace.pop(namespace_of(key), None)
        self._in_a_row = 0

    def forget(self, key: str) -> None:
        """The group is gone, or has started without a turn: its namespace's turns are not forgotten with it."""
        self._gangs.pop(key, None)

    def is_over(self, key: str, wish: AskedRoom, room: Amounts) -> bool:
        """Whether the gang's turns in vain say nothing any more, and are forgotten: it asks for less, or the cluster has more of all
        that it asks for. Then those of its namespace are forgotten, too."""
        vain = self._gangs.get(key)
        if vain is None:
            return False
        grown = bool(wish.largest) and all(room.get(name, 0) > vain.room.get(name, 0) for name in wish.largest)
        if grown:
            self._of_namespace.pop(namespace_of(key), None)
        over = grown or wish.is_less_than(vain.wish)
        if over:
            del self._gangs[key]
        return over

    def _pause(self, *, clean: bool) -> float:
        """Seconds after the last turn in vain. clean: for a namespace that has had none."""
        if self._in_a_row <= FREE_TURNS:
            return self._pause_seconds
        lengths = LENGTHS.seconds(1 if clean else self._in_a_row - FREE_TURNS)
        return max(self._pause_seconds, self._lasted * lengths)

    def _begin_anew(self) -> None:
        self._of_namespace.clear()
        self._in_a_row = 0


def room_of(snapshot: NodeInfoLister) -> Amounts:
    """What all nodes that are not cordoned have of each resource, whatever runs on them."""
    room = Resource()
    for node in snapshot.list():
        if node.node is not None and not node.unschedulable:
            room.add(node.allocatable)
    return asked_of(room)
