"""What a group still lacks before it may start: members by its match policy, and by role.

Admission asks it of those with a place, GangPermit of those that are held. Everything here reads or notes one Group's
state, under the manager's lock.
Koordinator: pkg/scheduler/plugins/coscheduling/core/gang.go (isGangValidForPermit)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from extender.api import corev1
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.ended_phase import EndedPhase
from extender.plugins.coscheduling.spec.sources.steps import Rest, Step, jobs_of, rest_of, step_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import Start

NO_UIDS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Needs:
    """total: how many members are missing; of them so many of each role that is short. False if nothing is missing."""

    total: int = 0
    roles: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return self.total > 0


NOTHING = Needs()


def comes_in_phases(group: Group) -> bool:
    """Whether its members, those that have ended, or time say so."""
    return bool(group.steps or group.early or group.in_part)


def in_phase(group: Group, spec: GroupSpec) -> GroupSpec:
    """What the members that there are have to wait for: less than the object asks for where the rest has been, or comes later."""
    if spec.invalid or spec.roles.minima or spec.groups or spec.match_policy is MatchPolicy.ONLY_WAITING:
        return spec
    ended = max(0, group.early - group.steps[Step.INITIALIZER])
    missing = spec.min_member - len(group.members)
    rest = rest_of(group.steps, len(group.members), missing, ended, _jobs_after_nodes(group))
    if group.in_part and group.members and missing > rest.been:
        rest = Rest(rest.been, missing - rest.been)
    minimum = max(1, spec.min_member - rest.been - rest.to_come)
    return replace(spec, min_member=minimum, been=rest.been, to_come=rest.to_come)


def _jobs_after_nodes(group: Group) -> int:
    """How many Jobs its JobSet has beside that of the members, where these are a trainer's nodes, and the initializers'."""
    if group.steps[Step.NODE] != len(group.members) or not group.members:
        return 0
    return jobs_of(next(iter(group.members.values())).pod) - 1 - group.early


def unmade(group: Group, spec: GroupSpec) -> int:
    """For how many members that are still to be made room counts now: what is kept for a later phase is no place for this one's."""
    return spec.min_member if spec.roles.minima else max(0, spec.min_member - len(group.members))


def note_early(group: Group, ended: int) -> None:
    """The initializers that there are start, or have started, and so have others, which have ended."""
    group.early = max(group.early, group.steps[Step.INITIALIZER] + ended)
    group.changed()


def note_ended(group: Group, found: Iterable[corev1.Pod]) -> None:
    """found: members that have Succeeded. Initializers among them that are as young as the gang's object have had their phase."""
    ended = [pod for pod in found if step_of(pod) is Step.INITIALIZER and is_as_young(group, pod)]
    if ended:
        note_early(group, len(ended))
        group.ended_phase = EndedPhase.of(ended)


def is_as_young(group: Group, ended: corev1.Pod) -> bool:
    """As the gang's object."""
    pod_group = group.object
    since = pod_group.metadata.creation_timestamp if pod_group is not None else None
    created = ended.metadata.creation_timestamp
    return since is None or created is None or created >= since


def needs(group: Group, spec: GroupSpec, having: AbstractSet[str], to_come: Collection[corev1.Pod] = ()) -> Needs:
    """What is missing if these members have what is asked about: a place, a hold, or only their existence.

    to_come: the likenesses of members that do not exist yet, and are to count.
    """
    if spec.match_policy is MatchPolicy.ONCE_SATISFIED and group.once_whole:
        return NOTHING
    counted = having - settled_members(group, spec) if spec.match_policy is MatchPolicy.ONLY_WAITING else having
    if group.whole_of and has_been_whole(group, spec):
        return minima_missed(group, _of_those_that_exist(group, spec, to_come), counted, to_come)
    ended = group.ended.values() if group.ended and _count_ended(group, spec) else ()
    return minima_missed(group, spec, counted, [*to_come, *ended] if ended else to_come)


def _count_ended(group: Group, spec: GroupSpec) -> bool:
    """With only-waiting those that have ended count while fewer than minMember run, and for no later batch."""
    if spec.match_policy is not MatchPolicy.ONLY_WAITING:
        return True
    return len(group.assigned | group.started) < spec.min_member


def are_enough(spec: GroupSpec, having: int) -> bool:
    """Whether nothing is missing if so many members have what is asked about, whichever they are. Asked with each member's event, before
    sets of all members are made to find it out. False: it depends on which they are, or there are fewer."""
    return not spec.roles.minima and spec.match_policy is not MatchPolicy.ONLY_WAITING and having >= spec.min_member


def has_been_whole(group: Group, spec: GroupSpec) -> bool:
    """Whether as many as it asks for now have run, and some of them still do. It waits for no member that does not exist: that one may
    have ended, or its owner wants fewer by now. With only-waiting a batch is a gang of its own."""
    return 0 < spec.min_member <= group.whole_of and spec.match_policy is not MatchPolicy.ONLY_WAITING


def is_broken(group: Group, spec: GroupSpec) -> bool:
    """Whether the gang has been whole, and fewer than it asks for run, or have ended well."""
    if group.starting or not has_been_whole(group, spec):
        return False
    return bool(minima_missed(group, spec, group.assigned, group.ended.values()))


def _of_those_that_exist(group: Group, spec: GroupSpec, to_come: Collection[corev1.Pod]) -> GroupSpec:
    """Where there are minMember of them no role may be short: another member takes no part of one that has gone.

    to_come: count as if they did.
    """
    existing = len(group.members) + len(to_come)
    if existing >= spec.min_member:
        return spec
    if not spec.roles.minima:
        return replace(spec, min_member=existing)
    there = Counter(group.role_counts().among(group.members.keys(), group.members, spec.roles))
    there.update(map(spec.roles.role_of, to_come))
    gone, minima = spec.min_member - existing, []
    for role, minimum in spec.roles.minima:
        fewer = min(gone, max(0, minimum - there[role]))
        gone -= fewer
        minima.append((role, minimum - fewer))
    return replace(spec, min_member=existing, roles=replace(spec.roles, minima=tuple(minima)))


def minima_missed(
    group: Group, spec: GroupSpec, counted: AbstractSet[str], to_come: Collection[corev1.Pod] = ()
) -> Needs:
    """What these members, of whatever start, are short of minMember and of the roles' minima."""
    total = max(0, spec.min_member - len(counted) - len(to_come))
    if not spec.roles.minima:
        return Needs(total) if total else NOTHING
    present = Counter(group.role_counts().among(counted, group.members, spec.roles))
    present.update(map(spec.roles.role_of, to_come))
    roles = tuple((role, minimum - present[role]) for role, minimum in spec.roles.minima if minimum > present[role])
    return Needs(max(total, sum(number for _, number in roles)), roles)


def settled_members(group: Group, spec: GroupSpec) -> AbstractSet[str]:
    """Members that count for nothing any more: with only-waiting those of earlier starts.

    A fraction of a gang is completed first, whatever the policy: running members count until there are minMember of them. So
    is a batch that a restart cut short: of the members that run only those of that start count.
    """
    if spec.match_policy is not MatchPolicy.ONLY_WAITING:
        return NO_UIDS
    settled = group.assigned | group.started
    if len(settled) < spec.min_member:
        return NO_UIDS
    start = group.start
    if start is None or left_behind(group, spec) <= group.started:  # of a start of our own they are on their way
        return settled
    return settled - start.members


def left_behind(group: Group, spec: GroupSpec) -> AbstractSet[str]:
    """Members of a start that was cut short which would complete it; empty where none was."""
    start = group.start
    if start is None or spec.invalid:
        return NO_UIDS
    if len(group.assigned) + len(group.starting) == len(group.members):
        return NO_UIDS  # by counting: this is asked with each member's event
    bound = group.assigned | group.starting
    waiting = (start.members & group.members.keys()) - bound
    counted, asked = _counted(start, spec, bound), _as_of(start, spec)
    if (
        not waiting
        or not counted
        or not minima_missed(group, asked, counted)
        or minima_missed(group, asked, counted | waiting)
    ):
        return NO_UIDS
    return waiting


def is_over(group: Group, spec: GroupSpec, start: Start) -> bool:
    """Whether the start's quorum is on nodes, or it can be finished no more."""
    if not minima_missed(group, _as_of(start, spec), _counted(start, spec, group.assigned)):
        return True
    return start.members.isdisjoint(group.starting) and not left_behind(group, spec)


def _as_of(start: Start, spec: GroupSpec) -> GroupSpec:
    """minMember as it was, or as it is now where that is lower."""
    quorum = start.record.quorum
    return spec if spec.min_member <= quorum else replace(spec, min_member=quorum)


def _counted(start: Start, spec: GroupSpec, bound: AbstractSet[str]) -> AbstractSet[str]:
    """With only-waiting a batch is a gang of its own."""
    return bound & start.members if spec.match_policy is MatchPolicy.ONLY_WAITING else bound


def schedules_alone(group: Group, spec: GroupSpec, uid: str) -> bool:
    """Whether the member waits for no other: its gang has started once, or its own batch has."""
    match spec.match_policy:
        case MatchPolicy.ONCE_SATISFIED:
            return group.once_whole
        case MatchPolicy.ONLY_WAITING:
            return uid in group.started
    return False


def is_running(group: Group, spec: GroupSpec) -> bool:
    """Whether no member of it waits for the others any more. With only-waiting a batch that waits is a gang of its own."""
    assigned = group.assigned
    if spec.match_policy is MatchPolicy.ONLY_WAITING and settled_members(group, spec):
        return group.members.keys() <= assigned | group.started
    return bool(assigned) and not needs(group, spec, assigned)


def note_start(group: Group, uids: AbstractSet[str]) -> None:
    """These start now, with all that were planned together with them."""
    group.started |= uids - group.assigned


def update_once_whole(group: Group, spec: GroupSpec | None) -> None:
    """Members came to nodes, or left them: has the gang been whole by now? With none left it is to start anew."""
    if spec is None or spec.invalid:
        return
    assigned = group.assigned
    group.ran = group.ran or bool(assigned)
    if not assigned and not group.starting:
        group.once_whole = False
        group.whole_of = 0
        if spec.match_policy is not MatchPolicy.WAITING_AND_RUNNING:
            group.started.clear()
    elif group.whole_of < spec.min_member and not spec.to_come and not needs(group, spec, assigned).total:
        note_whole(group, spec, spec.min_member)


def note_whole(group: Group, spec: GroupSpec, members: int) -> None:
    """So many members, or all but those that have ended, are on nodes or have been."""
    group.whole_of = max(group.whole_of, members)
    group.ended = {}
    group.once_whole = group.once_whole or spec.match_policy is not MatchPolicy.WAITING_AND_RUNNING
