"""A gang's priority and age. Both are read off the quorum, so that it is planned, preempts and is preempted at one priority.

Pure. The line of gangs asks for it; a Group remembers it.
scheduler-plugins: pkg/coscheduling/core/core.go (GetCreationTimestamp), which has the PodGroup's age and one pod's priority
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.member import Member


@dataclass(frozen=True, slots=True)
class Standing:
    """priority: what its object says, else the highest that a whole quorum has. since: when the quorum first existed; None while
    there is none."""

    priority: int
    since: datetime | None


def standing_of(members: Mapping[str, Member], priorities: Counter[int], spec: GroupSpec | None) -> Standing:
    """priorities: how many of the members (by UID) have each."""
    minima = list(_minima(members, spec)) if spec is not None and not spec.invalid else []
    own = spec.priority if spec is not None else None
    if not minima or any(len(found) < number for number, found in minima):
        return Standing(min(priorities, default=0) if own is None else own, None)
    priority = _priority(minima, priorities) if own is None else own
    return Standing(priority, _since(minima, spec.created if spec is not None else None))


def counts_at(pod_priority: int, gang_priority: int) -> int:
    """A member's priority: its gang's; its own where that is lower, which only a member beyond the quorum has."""
    return min(pod_priority, gang_priority)


_MinimumOf = tuple[int, Collection[Member]]
"""How many there have to be, and of which members."""


def _minima(members: Mapping[str, Member], spec: GroupSpec) -> Iterator[_MinimumOf]:
    yield spec.min_member, members.values()
    for role, minimum in spec.roles.minima:
        if minimum:  # no member of a role that may be missing is of the quorum
            yield minimum, [info for info in members.values() if spec.roles.role_of(info.pod) == role]


def _priority(minima: Collection[_MinimumOf], priorities: Counter[int]) -> int:
    """That of the least important member of the most important quorum. One important member lifts no gang, and one that is added
    beyond minMember lowers none."""
    if len(priorities) == 1:
        return next(iter(priorities))
    return min(sorted((info.pod.priority for info in found), reverse=True)[number - 1] for number, found in minima)


def _since(minima: Collection[_MinimumOf], created: datetime | None) -> datetime | None:
    """When the member that completed the quorum was created, which is as true after a restart.

    created: the object's; it counts where a member has no creation time, which the API server always gives.
    """
    completed = []
    for number, found in minima:
        stamps = sorted(stamp for info in found if (stamp := info.pod.metadata.creation_timestamp) is not None)
        if len(stamps) < number:
            return created
        completed.append(stamps[number - 1])
    return max(completed)
