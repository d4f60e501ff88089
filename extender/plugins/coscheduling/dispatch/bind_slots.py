"""Which gangs may send members to bind: only as many at a time as find a call there until they start.

Each held member keeps one of `maxHeldBinds` calls until its whole gang is held. Where more gangs came at once than there are calls
for, each would hold a part, and all would wait for each other until their time is up. So a gang set is sent, and its members pass
filter, only while what it needs fits beside what all others need that have been let in and have not started; first come, first
served, and none passes a large one by taking what it waits for. Members beyond what it needs, which are held as well until the
last role or group is there, come while there are calls that no gang waits for. Dispatcher and Admission ask. No counterpart upstream.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs

ON_ITS_WAY_SECONDS = 10.0  # from filter to bind


class BindSlots:
    """The manager's lock guards everything here, and is held by all callers."""

    def __init__(self, manager: PodGroupManager, limit: float = math.inf, lease_seconds: float = 60.0) -> None:
        """limit: the most bind calls that are held at a time. lease_seconds: how long places are kept for those that are sent."""
        self._manager = manager
        self._limit = limit
        self._lease_seconds = lease_seconds
        # keys of groups that were let in; those that have started go when they are counted
        self._let_in: set[str] = set()
        self._waiting: dict[str, None] = {}  # one key of each gang set that was refused, in order
        # UID -> key of its group: was refused, and the gang set needs others than this one
        self._extra: dict[str, str] = {}
        # UID of such a one that was let in -> until when it may be on its way to bind
        self._passed: dict[str, float] = {}

    def lets_in(self, group: Group) -> bool:
        """Whether the gang set's members may come to bind; one that may not is asked about again by `next_gang_sets`."""
        if self._limit == math.inf:
            return True
        gang_set = gang_set_of(self._manager, group)
        keys = {each.key for each in gang_set}
        if keys <= self._let_in:
            return True
        needed = self._calls_of(gang_set)
        name = min(keys)
        if needed and (name in self._waiting or self._awaited_beside(self._taken() + needed) > self._limit):
            self._waiting.setdefault(name)
            return False
        self._let_in |= keys
        return True

    def lets_in_member(self, group: Group, uid: str) -> bool:
        """Whether this one may come: its gang set may, and needs it, or there is one more call. `next_extras` says later
        which of the others may."""
        if self._limit == math.inf:
            return True
        if not self.lets_in(group):
            return False
        alone = not _held_beyond(self._manager, gang_set_of(self._manager, group))
        if alone or self._all_fit() or not self._is_extra(group, uid):
            return True
        if self._waiting or self._taken() >= self._limit:
            self._extra[uid] = group.key
            return False
        self._extra.pop(uid, None)
        self._passed[uid] = self._manager.clock() + ON_ITS_WAY_SECONDS
        return True

    def is_kept_back(self, uid: str) -> bool:
        """As one that its gang set does not need."""
        return uid in self._extra

    def next_extras(self) -> Iterator[tuple[Group, str]]:
        """Members that were kept back and may come now: their gang set has started, or there are calls."""
        if not self._extra:
            return  # asked with each member that is held: what all gangs take is counted only where a member waits for it
        left = 0 if self._waiting else self._limit - self._taken()
        for uid, key in list(self._extra.items()):
            group = self._manager.groups.get(key)
            if group is None or uid not in group.members or uid in group.assigned:
                del self._extra[uid]
            elif left > 0 or not self._is_extra(group, uid):
                left -= 1
                del self._extra[uid]
                yield group, uid

    def forget_past(self) -> None:
        """About once a second: gangs that have started or gone, and members that have come by now, or never will."""
        self._taken()
        now = self._manager.clock()
        self._passed = {uid: until for uid, until in self._passed.items() if until > now}

    def _all_fit(self) -> bool:
        """Whether all members that may come find a call, needed or not: by counting alone, since each filter call asks."""
        groups = (self._manager.groups.get(key) for key in self._let_in)
        return not self._waiting and sum(len(group.members) for group in groups if group is not None) <= self._limit

    def _is_extra(self, group: Group, uid: str) -> bool:
        """Whether it would be held beside as many as its gang set needs."""
        gang_set, spec = gang_set_of(self._manager, group), self._manager.specs.valid(group)
        if spec is None or not _held_beyond(self._manager, gang_set):
            return False
        if not any(_missing(self._manager, each) for each in gang_set):
            return False
        coming = self._coming(group)
        return uid not in coming and _reserved(group, spec, coming | {uid}) > _reserved(group, spec, coming)

    def _coming(self, group: Group) -> AbstractSet[str]:
        """Members that are held, or on their way to be: each has a call, or takes one."""
        now = self._manager.clock()
        passed = {uid for uid in group.members if self._passed.get(uid, now) > now} if self._passed else set[str]()
        return (group.in_permit | (group.admitted & group.members.keys()) | passed) - group.assigned - group.started

    def _calls_of(self, gang_set: Sequence[Group]) -> int:
        return sum(self._calls(group, gang_set) for group in gang_set)

    def _calls(self, group: Group, gang_set: Sequence[Group]) -> int:
        """How many of its members have to be held until the gang set starts: of a plan; without one those that are held still."""
        spec = self._manager.specs.valid(group)
        if not group.planned or spec is None:
            return 0 if group.planned else len(group.in_permit)
        if _held_beyond(self._manager, gang_set) and any(_missing(self._manager, each) for each in gang_set):
            return _reserved(group, spec, self._coming(group))
        return _missing(self._manager, group)

    def waits(self, group: Group) -> bool:
        return (
            group.key not in self._let_in
            and min(each.key for each in gang_set_of(self._manager, group)) in self._waiting
        )

    def next_gang_sets(self) -> Iterator[Sequence[Group]]:
        """Gang sets that were refused and may come now, in order. Their places are kept for as long as those of a new plan.

        The line is walked only as far as there are calls: how many gangs wait behind that costs nothing.
        """
        if not self._waiting:
            return
        taken = self._taken()
        for name in list(self._waiting):
            if taken >= self._limit:
                return
            gang_set = self._gang_set(name)
            needed, keys = self._calls_of(gang_set), {each.key for each in gang_set}
            if needed and not keys <= self._let_in:
                taken += needed  # by it, or kept for it from those behind
                if taken > self._limit:
                    continue
            del self._waiting[name]
            if needed:
                self._let_in |= keys
                self._renew(gang_set)
                yield gang_set

    def _taken(self) -> int:
        """By those that were let in. Whatever has started, or has lost its plan, is let in no more."""
        taken = 0
        for key in list(self._let_in):
            group = self._manager.groups.get(key)
            calls = self._calls(group, gang_set_of(self._manager, group)) if group is not None else 0
            taken += calls
            if not calls:
                self._let_in.discard(key)
        return taken

    def _awaited_beside(self, calls: int) -> int:
        """So many calls and those that the gang sets need that wait already; beyond the limit they are not counted to the end."""
        for name in self._waiting:
            if calls > self._limit:
                break
            if name not in self._let_in:
                calls += self._calls_of(self._gang_set(name))
        return calls

    def _gang_set(self, name: str) -> Sequence[Group]:
        group = self._manager.groups.get(name)
        return gang_set_of(self._manager, group) if group is not None else ()

    def _renew(self, gang_set: Sequence[Group]) -> None:
        slots, expires = self._manager.slots, self._manager.clock() + self._lease_seconds
        for place in [place for group in gang_set for place in slots.of_group(group.key)]:
            slots.reserve(replace(place, expires=max(place.expires, expires)))


def too_large(manager: PodGroupManager, gang_set: Sequence[Group], limit: float) -> bool:
    """Whether the gang set would need more calls at a time than there are, however long it waits. Lock held."""
    specs = [manager.specs.of(group) for group in gang_set]
    if sum(spec.min_member for spec in specs if spec is not None) <= limit:
        return False
    return sum(_missing(manager, group) for group in gang_set) > limit


def _held_beyond(manager: PodGroupManager, gang_set: Sequence[Group]) -> bool:
    """Whether more may be held than minMember: of one group without roles the member that completes it starts all."""
    specs = [manager.specs.of(group) for group in gang_set]
    return len(gang_set) > 1 or any(spec.roles.minima for spec in specs if spec is not None)


def _reserved(group: Group, spec: GroupSpec, coming: AbstractSet[str]) -> int:
    """The calls of those that are coming, and of those that are needed beside them."""
    return len(coming) + needs(group, spec, group.assigned | group.started | coming).total


def _missing(manager: PodGroupManager, group: Group) -> int:
    spec = manager.specs.valid(group)
    return needs(group, spec, group.assigned | group.started).total if spec is not None else 0
