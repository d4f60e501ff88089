"""The members that wait in Permit, for those that may end their wait or start their gang: events, containment, preemption.

Permit's GangPermit keeps them. kube-scheduler: pkg/scheduler/framework/runtime/waiting_pods_map.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from extender.plugins.coscheduling.state.group import Group


class Holds(Protocol):
    """A hold ends with its cause, in WaitOnPermit's words; one whose start has begun does not end. UIDs are of members."""

    def recheck(self, group: Group) -> None:
        """Starts the gang if it is complete now, after minMember was lowered or a group was named no longer."""
        ...

    def reject(self, group: Group, uid: str, cause: str) -> None:
        """Ends the hold of one member, if it has one. The manager's lock is held."""
        ...

    def reject_all(self, group: Group, cause: str) -> None:
        """Ends the holds of the group, and those of the groups that were to start with it."""
        ...

    def end_holds(self, gang_set: Sequence[Group], cause: str) -> None:
        """Ends the holds of these groups. The manager's lock is held."""
        ...
