"""The gates of PreFilter that need no plan: whether a gang may be planned at all.

Admission asks them for each member, GangObserver and the pages for each gang; that a denial is still fresh is Admission's.
scheduler-plugins: pkg/coscheduling/core/core.go (PreFilter)
"""

from __future__ import annotations

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.pod_group_manager import Group, PodGroupManager
from extender.plugins.coscheduling.stops import NOT_FOUND, Gate, Reason


def shut_gate(manager: PodGroupManager, group: Group, scheduler_name: str, pod_name: str) -> Gate | None:
    """The first that is shut for the group's members of this scheduler; None where all are open. The manager's lock is held."""
    if manager.backing_off(group.key):
        text = messages.failed_recently(group.key)
        return Gate(Reason.BACKING_OFF, text, text)
    spec = manager.spec(group)
    if spec is None:
        return NOT_FOUND
    if spec.invalid:
        return Gate(Reason.INVALID_POD_GROUP, spec.invalid, spec.invalid)
    siblings = manager.siblings(group, scheduler_name)
    if len(siblings) < spec.min_member:
        return Gate(
            Reason.QUORUM_MISSING,
            messages.waiting_for_members(spec.min_member),
            messages.not_enough_siblings(pod_name, len(siblings), spec.min_member),
        )
    if not group.planned:
        ready = len(group.assigned()) + len(manager.plannable(group, scheduler_name))
        if ready < spec.min_member:
            return Gate(Reason.GATED, messages.waiting_for_gates(spec.min_member), messages.gated_siblings(pod_name))
    return None
