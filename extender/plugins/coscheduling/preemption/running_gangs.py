"""The gangs of which somebody runs, as preemption sees them. Read under the manager's lock."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.preemption.evictable import RunningGang
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


def running_gangs(manager: PodGroupManager) -> list[RunningGang]:
    """Those that run whole, and those of which a part runs."""
    found = (running_gang(manager, group) for group in manager.groups.values())
    return [gang for gang in found if gang is not None]


def running_gang(manager: PodGroupManager, group: Group) -> RunningGang | None:
    """None where no member runs, or none needs the others: no longer, or never, as with a minMember of 1.

    Members of a start that has begun count: in the middle of a commit the gang is no fraction. Of a gang that is set aside all
    members need each other: what it asks for is not known.
    """
    step = partial(_by_what_it_asks_for, manager, group)
    found = manager.quarantine.for_gang(group.key, "guard", lambda: (step(),), None)
    if found is not None:
        return found[0]
    running = _running(group)
    return RunningGang(group.key, len(running), running) if running else None


def _running(group: Group) -> dict[str, tuple[PodInfo, str]]:
    """By UID: the member, and its node."""
    uids = group.assigned() | group.starting
    return {uid: (member.info, member.node_name) for uid, member in group.members.items() if uid in uids}


def _by_what_it_asks_for(manager: PodGroupManager, group: Group) -> RunningGang | None:
    spec = manager.spec(group)
    if spec is None or spec.invalid or spec.min_member <= 1:
        return None
    running = _running(group)
    if not running:
        return None
    role_of = {uid: spec.roles.role_of(info.pod) for uid, (info, _) in running.items()} if spec.roles.minima else {}
    priority = manager.priority_of(group)
    gang = RunningGang(group.key, spec.min_member, running, dict(spec.roles.minima), role_of, priority)
    loose = spec.match_policy is MatchPolicy.ONCE_SATISFIED and group.once_whole
    return gang if gang.complete or not loose else None


def starting_members(manager: PodGroupManager) -> set[str]:
    """UIDs of those that are being bound, or have been and the watch has not shown it yet: as good as running."""
    return {uid for group in manager.groups.values() for uid in (*group.unconfirmed, *group.starting)}


def running_members(manager: PodGroupManager, keys: Iterable[str]) -> dict[str, PodInfo]:
    """By UID: whoever runs of these groups, or begins to."""
    groups = (group for key in keys if (group := manager.groups.get(key)) is not None)
    gangs = (running_gang(manager, group) for group in groups)
    return {uid: info for gang in gangs if gang is not None for uid, (info, _) in gang.running.items()}


def releasable(manager: PodGroupManager, priority: int) -> dict[str, str]:
    """Held members that can be let go for a preemptor of this priority, UID -> key of the group.

    No start of theirs has begun, and their gang is not the rest of one that was cut short: it would stay a fraction.
    """
    return {
        uid: group.key
        for group in manager.groups.values()
        if group.held
        and group.members
        and manager.quarantine.for_gang(
            group.key, "guard", partial(_may_let_go, manager, group, priority), otherwise=False
        )
        for uid in group.held
        if uid not in group.starting
    }


def _may_let_go(manager: PodGroupManager, group: Group, priority: int) -> bool:
    return not manager.begun(group) and manager.priority_of(group) < priority
