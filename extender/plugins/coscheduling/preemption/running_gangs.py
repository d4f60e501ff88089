"""The gangs that run, as preemption sees them. Read under the manager's lock."""

from __future__ import annotations

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.group import Group
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.preemption.evictable import RunningGang


def running_gangs(manager: PodGroupManager) -> list[RunningGang]:
    """Those that have their minMember on nodes."""
    found = (running_gang(manager, group) for group in manager.groups.values())
    return [gang for gang in found if gang is not None and gang.complete]


def running_gang(manager: PodGroupManager, group: Group) -> RunningGang | None:
    spec = manager.spec(group)
    if spec is None or spec.invalid:
        return None
    running: dict[str, tuple[PodInfo, str]] = {}
    for uid, info in group.members.items():
        node_name = info.pod.node_name or group.committed.get(uid)
        if node_name:
            running[uid] = info, node_name
    if not running:
        return None
    role_of = {uid: spec.roles.role_of(info.pod) for uid, (info, _) in running.items()} if spec.roles.minima else {}
    return RunningGang(group.key, spec.min_member, running, dict(spec.roles.minima), role_of)


def releasable(manager: PodGroupManager, priority: int) -> dict[str, str]:
    """Held members that can be let go for somebody of this priority, UID -> key of the group.

    No start of theirs has begun, and none of their gang runs: it would stay a fraction.
    """
    return {
        uid: group.key
        for group in manager.groups.values()
        if group.held and not manager.begun(group)
        for uid in group.held
        if uid not in group.commits and group.members and _priority(group, uid) < priority
    }


def _priority(group: Group, uid: str) -> int:
    info = group.members.get(uid)
    return info.pod.priority if info is not None else group.priority
