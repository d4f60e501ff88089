"""Which gangs may send members to bind: only as many at a time as find a call there until they start.

Each held member keeps one of `maxHeldBinds` calls until its whole gang is held. Where more gangs came at once than there are calls
for, each would hold a part, and all would wait for each other until their time is up. So a unit is sent, and its members pass
filter, only while what it needs fits beside what all others need that have been let in and have not started; first come, first
served, and nobody passes a large one by taking what it waits for. Arrivals and Admission ask. No counterpart upstream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberState
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs
from extender.plugins.coscheduling.state.units import unit_of


class BindSlots:
    """The manager's lock guards everything here, and is held by all callers."""

    def __init__(self, manager: PodGroupManager, limit: float = math.inf, lease_seconds: float = 60.0) -> None:
        """limit: the most bind calls that are held at a time. lease_seconds: how long places are kept for those that are sent."""
        self._manager = manager
        self._limit = limit
        self._lease_seconds = lease_seconds
        # keys of groups that were let in; those that have started go when they are counted
        self._let_in: set[str] = set()
        self._waiting: dict[str, None] = {}  # one key of each unit that was refused, in order

    def lets_in(self, group: Group) -> bool:
        """Whether the unit's members may come to bind; one that may not is asked about again by `next_units`."""
        if self._limit == math.inf:
            return True
        unit = unit_of(self._manager, group)
        keys = {each.key for each in unit}
        if keys <= self._let_in:
            return True
        needed = _calls_of(self._manager, unit)
        name = min(keys)
        if needed and self._taken() + self._awaited_before(name) + needed > self._limit:
            self._waiting.setdefault(name)
            return False
        self._let_in |= keys
        return True

    def waits(self, group: Group) -> bool:
        return (
            group.key not in self._let_in and min(each.key for each in unit_of(self._manager, group)) in self._waiting
        )

    def next_units(self) -> Iterator[Sequence[Group]]:
        """Units that were refused and may come now, in order. Their places are kept for as long as those of a new plan.

        One of which a member has been let in meanwhile is among them: those that were refused before are to come too.
        """
        for name in list(self._waiting):
            group = self._manager.groups.get(name)
            unit = unit_of(self._manager, group) if group is not None else ()
            if not _calls_of(self._manager, unit):
                del self._waiting[name]  # gone, or planned no longer
            elif group is not None and self.lets_in(group):
                del self._waiting[name]
                self._renew(unit)
                yield unit

    def _taken(self) -> int:
        """By those that were let in. Whatever has started, or has lost its plan, is let in no more."""
        taken = 0
        for key in list(self._let_in):
            group = self._manager.groups.get(key)
            calls = _calls_of(self._manager, (group,)) if group is not None else 0
            taken += calls
            if not calls:
                self._let_in.discard(key)
        return taken

    def _awaited_before(self, name: str) -> int:
        """What the units need that have waited for longer."""
        awaited = 0
        for earlier in self._waiting:
            if earlier == name:
                break
            if earlier not in self._let_in and (group := self._manager.groups.get(earlier)) is not None:
                awaited += _calls_of(self._manager, unit_of(self._manager, group))
        return awaited

    def _renew(self, unit: Sequence[Group]) -> None:
        ledger, expires = self._manager.ledger, self._manager.clock() + self._lease_seconds
        for place in [place for group in unit for place in ledger.of_group(group.key)]:
            ledger.reserve(replace(place, expires=max(place.expires, expires)))


def too_large(manager: PodGroupManager, unit: Sequence[Group], limit: float) -> bool:
    """Whether the unit would need more calls at a time than there are, however long it waits. Lock held."""
    specs = [manager.spec(group) for group in unit]
    if sum(spec.min_member for spec in specs if spec is not None) <= limit:
        return False
    return sum(_missing(manager, group) for group in unit) > limit


def _calls_of(manager: PodGroupManager, unit: Sequence[Group]) -> int:
    """How many have to be held until it starts: of a plan; without one those that are held still."""
    return sum(_missing(manager, group) if group.planned else len(_held(group)) for group in unit)


def _missing(manager: PodGroupManager, group: Group) -> int:
    spec = manager.spec(group)
    return needs(group, spec, group.assigned() | group.started).total if spec is not None and not spec.invalid else 0


def _held(group: Group) -> AbstractSet[str]:
    """Those whose start has not begun."""
    return group.in_state(MemberState.WAITING)
