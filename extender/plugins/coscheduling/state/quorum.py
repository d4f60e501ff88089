"""What a group still lacks before it may start: members by its match policy, and by role.

Admission asks it of those with a place, GangPermit of those that are held. Everything here reads or notes one Group's
state, under the manager's lock.
Koordinator: pkg/scheduler/plugins/coscheduling/core/gang.go (isGangValidForPermit)
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group

NO_UIDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Needs:
    """total: how many members are missing; of them so many of each role that is short. False if nothing is missing."""

    total: int = 0
    roles: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return self.total > 0


def needs(group: Group, spec: GroupSpec, having: AbstractSet[str]) -> Needs:
    """What is missing if these members have what is asked about: a place, a hold, or only their existence."""
    if spec.match_policy is MatchPolicy.ONCE_SATISFIED and group.once_whole:
        return Needs()
    settled = past(group, spec)
    return minima_missed(group, spec, having - settled if settled else having)


def minima_missed(group: Group, spec: GroupSpec, counted: AbstractSet[str]) -> Needs:
    """What these members, of whatever start, are short of minMember and of the roles' minima."""
    total = max(0, spec.min_member - len(counted))
    if not spec.roles.minima:
        return Needs(total)
    present = group.roles.among(counted, group.members, spec.roles)
    roles = tuple((role, minimum - present[role]) for role, minimum in spec.roles.minima if minimum > present[role])
    return Needs(max(total, sum(number for _, number in roles)), roles)


def past(group: Group, spec: GroupSpec) -> AbstractSet[str]:
    """Members that count for nothing any more: with only-waiting those of earlier starts.

    A fraction of a gang is completed first, whatever the policy: running members count until there are minMember of them. So
    is a batch that a restart cut short: of the members that run those of earlier batches count no more, its own do.
    """
    if spec.match_policy is not MatchPolicy.ONLY_WAITING:
        return NO_UIDS
    settled = group.assigned() | group.started
    if len(settled) < spec.min_member:
        return NO_UIDS
    return settled & group.earlier if _cut_short(group, spec) else settled


def in_part(group: Group, spec: GroupSpec) -> bool:
    """Whether a part of it runs, and that is less than minMember; with only-waiting: of its last batch."""
    return 0 < len(group.assigned()) < spec.min_member or _cut_short(group, spec)


def _cut_short(group: Group, spec: GroupSpec) -> bool:
    """Whether a restart came into the start of a batch, and that is not whole yet."""
    if not group.earlier or spec.match_policy is not MatchPolicy.ONLY_WAITING:
        return False
    batch = (group.assigned() | group.started) - group.earlier
    return bool(batch) and bool(minima_missed(group, spec, batch))


def schedules_alone(group: Group, spec: GroupSpec, uid: str) -> bool:
    """Whether the member waits for no other: its gang has started once, or its own batch has."""
    match spec.match_policy:
        case MatchPolicy.ONCE_SATISFIED:
            return group.once_whole
        case MatchPolicy.ONLY_WAITING:
            return uid in group.started
    return False


def runs(group: Group, spec: GroupSpec) -> bool:
    """Whether no member of it waits for the others any more. With only-waiting a batch that waits is a gang of its own."""
    assigned = group.assigned()
    if spec.match_policy is MatchPolicy.ONLY_WAITING and past(group, spec):
        return group.members.keys() <= assigned | group.started
    return bool(assigned) and not needs(group, spec, assigned)


def note_start(group: Group, uids: AbstractSet[str]) -> None:
    """These start now, with all that were planned together with them."""
    group.started |= uids - group.assigned()


def follow(group: Group, spec: GroupSpec | None) -> None:
    """Members came to nodes, or left them: has the gang been whole by now? With none left it is to start anew."""
    if spec is None or spec.invalid or spec.match_policy is MatchPolicy.WAITING_AND_RUNNING:
        return
    assigned = group.assigned()
    if not _cut_short(group, spec):
        group.earlier.clear()
    if not assigned and not group.starting:
        group.once_whole = False
        group.started.clear()
    elif not group.once_whole and not needs(group, spec, assigned):
        group.once_whole = True
