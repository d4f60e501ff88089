"""The checks of PreFilter that need no plan: whether a gang may be planned, and what is said of its extra members.

Admission asks them for each member, GangObserver and the pages for each gang, Permit for a member that comes late; that a
denial is still fresh is Admission's. Members beyond minMember that our gate holds and that find no room keep no gang from starting.
scheduler-plugins: pkg/coscheduling/core/core.go (PreFilter)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.config.group_sources import LWS_INDEX
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dependencies import BROKEN, SCHEDULED, WAITING, Verdict
from extender.plugins.coscheduling.dispatch.bind_slots import too_large
from extender.plugins.coscheduling.scheduling.phases import Phase, phase_of
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.steps import Step
from extender.plugins.coscheduling.state.diagnosis import (
    NOT_FOUND,
    SET_ASIDE,
    Diagnosis,
    FailedCheck,
    UnschedulableReason,
)
from extender.plugins.coscheduling.state.gang_sets import choice, gang_set_of, is_linked, missing_group
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import Needs, are_enough, needs, schedules_alone


def failed_check(
    manager: PodGroupManager, group: Group, scheduler_name: str, pod_name: str, uid: str = ""
) -> FailedCheck | None:
    """The first that fails for the group's members of this scheduler; None where all pass. The manager's lock is held.

    uid: of the member that asks; one that need not wait for the others passes all.
    """
    if group.key in manager.quarantine:
        return SET_ASIDE
    spec = manager.specs.of(group)
    alone = spec is not None and schedules_alone(group, spec, uid)
    failed = _own_check(manager, group, spec, scheduler_name, pod_name, alone=alone)
    if failed is not None:
        return failed
    if not alone and too_large(manager, gang_set_of(manager, group), manager.max_held_binds):
        text = messages.EXCEEDS_HELD_BINDS
        return FailedCheck(UnschedulableReason.EXCEEDS_HELD_BINDS, text, text, told=text)
    if not is_linked(manager, group):
        return None
    if root := manager.composites.root_of(group.key):
        text = _waits_in_tree(manager, group, root, scheduler_name)
        return FailedCheck(UnschedulableReason.COMPANION_NOT_READY, text, text, told=text) if text else None
    if other := missing_group(manager, group):
        text = _waits_for(manager, other)
        return FailedCheck(UnschedulableReason.COMPANION_NOT_READY, text, text, told=text)
    for peer_gang in gang_set_of(manager, group)[1:]:
        failed = _check_of_peer(manager, peer_gang, scheduler_name)
        if failed is not None:
            text = messages.companion_waits(peer_gang.key, failed.cause)
            return FailedCheck(UnschedulableReason.COMPANION_NOT_READY, text, text, told=text)
    return None


def _waits_for(manager: PodGroupManager, other: str) -> str:
    """other: what `missing_group` returns."""
    composite = manager.composites.parents.get(other)
    return messages.is_of_a_composite(other, composite) if composite else messages.waiting_for_group(other)


def _waits_in_tree(manager: PodGroupManager, group: Group, root: str, scheduler_name: str) -> str:
    """What the group waits for in its tree of composites; empty if it may be planned."""
    composites = manager.composites
    if missing := composites.missing(group.key):
        return messages.waiting_for_composite(missing)
    gang_set = gang_set_of(manager, group)
    if composites.has_started(root):
        return ""
    if (chosen := choice(manager, root)) and group.key not in chosen:
        return messages.waiting_for_chosen(root)
    failed = {each.key: check for each in gang_set[1:] if (check := _check_of_peer(manager, each, scheduler_name))}
    if chosen:
        return next((messages.companion_waits(key, check.cause) for key, check in failed.items()), "")
    lacking = composites.lacking(root, {each.key for each in gang_set} - failed.keys())
    if not lacking or not failed:
        return lacking
    key, check = min(failed.items(), key=lambda each: each[0])
    return f"{lacking}: {messages.companion_waits(key, check.cause)}"


def missing_peer_gang(manager: PodGroupManager, group: Group) -> str:
    """Why no member of the group can start, whichever come: one that it starts with is not there, or asks for nonsense. Lock held."""
    if not is_linked(manager, group):
        return ""
    composites = manager.composites
    if missing := composites.missing(group.key):
        return messages.waiting_for_composite(missing)
    if other := missing_group(manager, group):
        return _waits_for(manager, other)
    gang_set = gang_set_of(manager, group)
    root = composites.root_of(group.key)
    if (
        root
        and not composites.has_started(root)
        and (lacking := composites.lacking(root, {each.key for each in gang_set}))
    ):
        return lacking
    for peer_gang in gang_set[1:]:
        spec = manager.specs.of(peer_gang)
        if spec is None or spec.invalid:
            return messages.companion_waits(peer_gang.key, NOT_FOUND.cause if spec is None else spec.invalid)
    return ""


def _check_of_peer(manager: PodGroupManager, group: Group, scheduler_name: str) -> FailedCheck | None:
    """Of a gang that another starts with: as for a member that waits for the others."""
    if group.key in manager.quarantine:
        return SET_ASIDE
    spec = manager.specs.of(group)
    alone = spec is not None and schedules_alone(group, spec, "")
    return _own_check(manager, group, spec, scheduler_name, "", alone=alone)


def _own_check(
    manager: PodGroupManager,
    group: Group,
    spec: GroupSpec | None,
    scheduler_name: str,
    pod_name: str,
    *,
    alone: bool,
) -> FailedCheck | None:
    """alone: the member that asks need not wait for the others."""
    if manager.queue.backs_off(group.key):
        text = messages.failed_recently(group.key)
        return FailedCheck(UnschedulableReason.BACKING_OFF, text, text)
    if spec is None:
        return NOT_FOUND
    if spec.invalid:
        return FailedCheck(UnschedulableReason.INVALID_POD_GROUP, spec.invalid, spec.invalid)
    if alone:
        return None
    if group.preempting is not None:
        return FailedCheck(UnschedulableReason.PREEMPTING, messages.PREEMPTING, messages.PREEMPTING)
    if group.gathering is not None:
        return None  # it has room for those that are missing, or finds none
    if group.planned and are_enough(spec, len(group.of_scheduler.get(scheduler_name, ()))):
        return None  # asked for each member: no set of all is made for it
    siblings = group.siblings(scheduler_name)
    missing = needs(group, spec, siblings)
    if missing.total:
        return _quorum_check(spec, missing, pod_name, strangers=len(group.members.keys() - siblings))
    if not group.planned:
        ready = group.assigned | {info.pod.uid for info in manager.plannable(group, scheduler_name)}
        if needs(group, spec, ready):
            return FailedCheck(
                UnschedulableReason.GATED,
                messages.waiting_for_gates(spec.asked),
                messages.gated_siblings(pod_name),
            )
        away = group.errors.away(manager.clock())
        if away and not manager.begun.was_cut_short(group) and needs(group, spec, ready - away):
            text = messages.failed_recently(group.key)
            return FailedCheck(UnschedulableReason.BACKING_OFF, text, text)
    return None


def _quorum_check(spec: GroupSpec, missing: Needs, pod_name: str, *, strangers: int) -> FailedCheck:
    """The group as a whole comes before its roles. strangers: how many would come to another scheduler."""
    minima = dict(spec.roles.minima)
    if not missing.roles or missing.total > sum(number for _, number in missing.roles):
        current = spec.asked - missing.total
        remark = messages.LEADER_ALONE if spec.index == LWS_INDEX and current == 1 else ""
        cause = messages.waiting_for_members(spec.asked, strangers) + remark
        refusal = messages.not_enough_siblings(pod_name, current, spec.asked) + remark
        return FailedCheck(UnschedulableReason.QUORUM_MISSING, cause, refusal, told=f"{current}")
    role, short = missing.roles[0]
    cause = messages.waiting_for_role(role, minima[role], strangers)
    refusal = messages.not_enough_of_role(pod_name, role, minima[role] - short, minima[role])
    return FailedCheck(UnschedulableReason.QUORUM_MISSING, cause, refusal, told=f"{role} {minima[role] - short}")


Plan = Callable[[PlanQuestion], object]


def note_extra_members(
    manager: PodGroupManager,
    requests: PlanRequests,
    group: Group,
    scheduler_name: str,
    snapshot: NodeInfoLister,
    plan: Plan,
) -> planner.Cause | None:
    """After a plan: those that got no place are asked for once more, as if one were needed, to hear why not. None: no member waits."""
    with manager.lock:
        spec = manager.specs.of(group)
        if spec is None or not left_over(manager, group) or requests.lacks(group):
            return None
        asked = one_extra_member(requests.question((group,), scheduler_name, snapshot), (group,))
    if not asked.request.needed:
        return None
    verdict = plan(asked)
    if not isinstance(verdict, planner.NoPlacement):
        return None
    with manager.lock:
        text = messages.no_room_for_extra_members(spec.min_member, verdict.reason)
        group.stop(Diagnosis(UnschedulableReason.EXTRA_MEMBERS_WAIT, text, manager.clock()))
    return verdict.cause


def one_extra_member(question: PlanQuestion, gang_set: Sequence[Group]) -> PlanQuestion:
    """Of a gang set that needs no further member: what would do for one of those that our gate holds. Lock held."""
    request = question.request
    gated = [info for info in request.members if any(info.pod.uid in group.gated for group in gang_set)]
    return question.asking(request.for_one_of(gated))


def verdict_of_start(group: Group, spec: GroupSpec) -> Verdict:
    """What is told of a gang that starts, or runs. Lock held."""
    minimum = spec.asked
    if spec.to_come:
        initializers = bool(group.steps[Step.INITIALIZER])
        number = max(group.early, spec.been + len(group.members)) if initializers else len(group.members)
        text = messages.started_in_part(number, minimum, initializers=initializers)
        return Verdict(False, WAITING, text, UnschedulableReason.MEMBERS_TO_COME)
    early = group.early if spec.been else 0
    text = messages.complete_at_last(early, minimum) if early else messages.complete(minimum)
    return Verdict(True, SCHEDULED, text)


def left_over(manager: PodGroupManager, group: Group) -> bool:
    """Whether our gate holds members that have no place. Lock held."""
    return bool(group.gated and (group.gated & group.members.keys()) - manager.places.placed(group))


def extra_members_wait(manager: PodGroupManager, group: Group) -> FailedCheck | None:
    """What a gang that runs has to say of them. Lock held."""
    stop = group.last_diagnosis
    if (
        stop is None
        or stop.reason is not UnschedulableReason.EXTRA_MEMBERS_WAIT
        or not group.gated & group.members.keys()
    ):
        return None
    if phase_of(manager, group) is not Phase.BOUND:
        return None
    return FailedCheck(stop.reason, stop.message, "")


def says_broken(group: Group) -> bool:
    """Whether its object says that it is broken, and that what is left of it is to go."""
    return group.told is not None and group.told.status == "False" and group.told.reason == BROKEN
