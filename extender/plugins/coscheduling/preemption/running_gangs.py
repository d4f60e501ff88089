"""The gangs of which somebody runs, as preemption sees them. Read under the manager's lock."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.group import Group
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.preemption.evictable import RunningGang
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy


def running_gangs(manager: PodGroupManager) -> list[RunningGang]:
    """Those that run whole, and those of which a part runs."""
    found = (running_gang(manager, group) for group in manager.groups.values())
    return [gang for gang in found if gang is not None]


def running_gang(manager: PodGroupManager, group: Group) -> RunningGang | None:
    """None where no member runs, and where none needs the others any more.

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
    nodes = {uid: info.pod.node_name or _on_its_way(group, uid) for uid, info in group.members.items()}
    return {uid: (group.members[uid], node_name) for uid, node_name in nodes.items() if node_name}


def _by_what_it_asks_for(manager: PodGroupManager, group: Group) -> RunningGang | None:
    spec = manager.spec(group)
    if spec is None or spec.invalid:
        return None
    running = _running(group)
    if not running:
        return None
    role_of = {uid: spec.roles.role_of(info.pod) for uid, (info, _) in running.items()} if spec.roles.minima else {}
    gang = RunningGang(group.key, spec.min_member, running, dict(spec.roles.minima), role_of)
    loose = spec.match_policy is MatchPolicy.ONCE_SATISFIED and group.once_whole
    return gang if gang.complete or not loose else None


def starting_members(manager: PodGroupManager) -> set[str]:
    """UIDs of those that are being bound, or have been and the watch has not shown it yet: as good as running."""
    groups = manager.groups.values()
    return {uid for group in groups for uid in (*group.committed, *group.held) if _on_its_way(group, uid)}


def running_members(manager: PodGroupManager, keys: Iterable[str]) -> dict[str, PodInfo]:
    """By UID: whoever runs of these groups, or begins to."""
    groups = (group for key in keys if (group := manager.groups.get(key)) is not None)
    gangs = (running_gang(manager, group) for group in groups)
    return {uid: info for gang in gangs if gang is not None for uid, (info, _) in gang.running.items()}


def _on_its_way(group: Group, uid: str) -> str:
    """The node that a member is being bound to, or has been."""
    commit = group.commits.get(uid)
    return group.committed.get(uid) or (group.held.get(uid, "") if commit is not None and commit.begun else "")


def releasable(manager: PodGroupManager, priority: int) -> dict[str, str]:
    """Held members that can be let go for somebody of this priority, UID -> key of the group.

    No start of theirs has begun, and none of their gang runs: it would stay a fraction.
    """
    return {
        uid: group.key
        for group in manager.groups.values()
        if group.held
        and not manager.quarantine.for_gang(group.key, "guard", partial(manager.begun, group), otherwise=True)
        for uid in group.held
        if uid not in group.commits and group.members and _priority(group, uid) < priority
    }


def _priority(group: Group, uid: str) -> int:
    info = group.members.get(uid)
    return info.pod.priority if info is not None else group.priority
