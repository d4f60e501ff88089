"""The gates of PreFilter that need no plan: whether a gang may be planned at all.

Admission asks them for each member, GangObserver and the pages for each gang, the barrier for a member that comes late; that a
denial is still fresh is Admission's.
scheduler-plugins: pkg/coscheduling/core/core.go (PreFilter)
"""

from __future__ import annotations

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.bind_slots import too_large
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import Needs, is_free, needs
from extender.plugins.coscheduling.state.stops import NOT_FOUND, SET_ASIDE, Gate, Reason
from extender.plugins.coscheduling.state.units import missing_group, unit_of


def shut_gate(manager: PodGroupManager, group: Group, scheduler_name: str, pod_name: str, uid: str = "") -> Gate | None:
    """The first that is shut for the group's members of this scheduler; None where all are open. The manager's lock is held.

    uid: of the member that asks; one that need not wait for the others finds all open.
    """
    gate = _own_gate(manager, group, scheduler_name, pod_name, uid)
    if gate is not None:
        return gate
    if _too_large(manager, group, uid):
        text = messages.EXCEEDS_HELD_BINDS
        return Gate(Reason.EXCEEDS_HELD_BINDS, text, text, told=text)
    if not manager.gang_groups:
        return None
    if other := missing_group(manager, group):
        text = messages.waiting_for_group(other)
        return Gate(Reason.COMPANION_NOT_READY, text, text, told=text)
    for companion in unit_of(manager, group)[1:]:
        gate = _own_gate(manager, companion, scheduler_name, "", "")
        if gate is not None:
            text = messages.companion_waits(companion.key, gate.cause)
            return Gate(Reason.COMPANION_NOT_READY, text, text, told=text)
    return None


def companion_missing(manager: PodGroupManager, group: Group) -> str:
    """Why nobody of the group can start, whoever comes: one that it starts with is not there, or asks for nonsense. Lock held."""
    if other := missing_group(manager, group):
        return messages.waiting_for_group(other)
    for companion in unit_of(manager, group)[1:]:
        spec = manager.spec(companion)
        if spec is None or spec.invalid:
            return messages.companion_waits(companion.key, NOT_FOUND.cause if spec is None else spec.invalid)
    return ""


def _too_large(manager: PodGroupManager, group: Group, uid: str) -> bool:
    spec = manager.spec(group)
    if spec is None or is_free(group, spec, uid):
        return False
    return too_large(manager, unit_of(manager, group), manager.max_held_binds)


def _own_gate(manager: PodGroupManager, group: Group, scheduler_name: str, pod_name: str, uid: str) -> Gate | None:
    if group.key in manager.quarantine:
        return SET_ASIDE
    if manager.queue.backing_off(group.key):
        text = messages.failed_recently(group.key)
        return Gate(Reason.BACKING_OFF, text, text)
    spec = manager.spec(group)
    if spec is None:
        return NOT_FOUND
    if spec.invalid:
        return Gate(Reason.INVALID_POD_GROUP, spec.invalid, spec.invalid)
    if is_free(group, spec, uid):
        return None
    if group.preempting is not None:
        return Gate(Reason.PREEMPTING, messages.PREEMPTING, messages.PREEMPTING)
    siblings = manager.siblings(group, scheduler_name)
    if missing := needs(group, spec, siblings):
        return _quorum_gate(spec, missing, pod_name, strangers=len(group.members.keys() - siblings))
    if not group.planned:
        ready = group.assigned() | {info.pod.uid for info in manager.plannable(group, scheduler_name)}
        if needs(group, spec, ready):
            return Gate(Reason.GATED, messages.waiting_for_gates(spec.min_member), messages.gated_siblings(pod_name))
        away = group.errors.away(manager.clock())
        if away and not manager.begun(group) and needs(group, spec, ready - away):
            text = messages.failed_recently(group.key)
            return Gate(Reason.BACKING_OFF, text, text)
    return None


def _quorum_gate(spec: GroupSpec, missing: Needs, pod_name: str, *, strangers: int) -> Gate:
    """The group as a whole comes before its roles. strangers: how many would come to another scheduler."""
    minima = dict(spec.roles.minima)
    if not missing.roles or missing.total > sum(number for _, number in missing.roles):
        current = spec.min_member - missing.total
        cause = messages.waiting_for_members(spec.min_member, strangers)
        refusal = messages.not_enough_siblings(pod_name, current, spec.min_member)
        return Gate(Reason.QUORUM_MISSING, cause, refusal, told=f"{current}")
    role, short = missing.roles[0]
    cause = messages.waiting_for_role(role, minima[role], strangers)
    refusal = messages.not_enough_of_role(pod_name, role, minima[role] - short, minima[role])
    return Gate(Reason.QUORUM_MISSING, cause, refusal, told=f"{role} {minima[role] - short}")
