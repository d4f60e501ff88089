"""Members that wait in Permit (are held), and how their wait is ended: by Permit, events, the quarantine or preemption.

kube-scheduler: pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.framework.interface import WaitingPod
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

GetWaitingPod = Callable[[str], WaitingPod | None]
"""By UID."""
HeldMember = tuple[Group, str]
"""A group and the UID of one of its members."""


class Holds:
    """Allows and rejects held members, with WaitOnPermit's messages. A member whose start has begun is not rejected. UIDs are of members.

    The locks of waiting pods are taken inside the manager's.
    """

    def __init__(self, name: str, manager: PodGroupManager, get_waiting_pod: GetWaitingPod) -> None:
        """name: of the plugin that holds them."""
        self._name = name
        self._manager = manager
        self._get_waiting_pod = get_waiting_pod

    def lift(self, uids: Sequence[str]) -> bool:
        """Allows the members. Returns whether all of them were still held."""
        held = [self._get_waiting_pod(uid) for uid in uids]
        lifted = [pod is not None and pod.allow(self._name) for pod in held]
        return all(lifted)

    def reject(self, group: Group, uid: str, cause: str) -> None:
        """Ends the hold of one member, if it has one. Lock held."""
        if uid in group.held:
            self.reject_members([(group, uid)], cause)

    def reject_all(self, group: Group, cause: str) -> None:
        """Ends the holds of the group, and those of the groups that were to start with it."""
        with self._manager.lock:
            self.end_holds(gang_set_of(self._manager, group), cause)

    def end_holds(self, gang_set: Sequence[Group], cause: str) -> None:
        """Ends the holds of these groups. Lock held."""
        self.reject_members(not_ending(gang_set), cause)

    def reject_members(self, members: Sequence[HeldMember], cause: str) -> None:
        """Lock held."""
        for group, uid in members:
            if uid in group.starting:
                continue
            waiting = self._get_waiting_pod(uid)
            if waiting is not None and waiting.reject(self._name, cause):
                group.ending.add(uid)


def not_ending(gang_set: Sequence[Group]) -> list[HeldMember]:
    """Held members that were not rejected yet. Fast if there are none: it is called n times while the n members of a gang are rejected."""
    return [
        (group, uid)
        for group in gang_set
        if len(group.ending) < len(group.held)
        for uid in group.held.keys() - group.ending
    ]


def waiting(gang_set: Sequence[Group]) -> list[HeldMember]:
    """Held members whose start has not begun."""
    return [(group, uid) for group in gang_set for uid in group.held if uid in group.in_permit]
