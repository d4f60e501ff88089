"""Members beyond minMember that our gate holds and that find no room: their gang starts or runs without them, and says so.

UnitPlanning notes why after each plan, GangObserver tells it once the gang runs, GangReport shows it. Plain extra members are
kube-scheduler's to tell about. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.scheduling.plan_request import PlanRequests
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.phases import Phase, phase_of
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.stops import Gate, Reason, Stop

Plan = Callable[[planner.Request], object]


def note_extra_members(
    manager: PodGroupManager, requests: PlanRequests, group: Group, scheduler_name: str, plan: Plan
) -> planner.Cause | None:
    """After a plan: those that got no place are asked for once more, as if one were needed, to hear why not. None: nobody waits."""
    with manager.lock:
        spec = manager.spec(group)
        if spec is None or not left_over(manager, group) or requests.lacks(group):
            return None
        request = one_extra_member(requests.request((group,), scheduler_name), (group,))
    if not request.needed:
        return None
    verdict = plan(request)
    if not isinstance(verdict, planner.Verdict):
        return None
    with manager.lock:
        text = messages.no_room_for_extra_members(spec.min_member, verdict.reason)
        group.stop(Stop(Reason.EXTRA_MEMBERS_WAIT, text, manager.clock()))
    return verdict.cause


def one_extra_member(request: planner.Request, unit: Sequence[Group]) -> planner.Request:
    """Of a unit that needs nobody more: what would do for one of those that our gate holds. Lock held."""
    gated = [info for info in request.members if any(info.pod.uid in group.gated for group in unit)]
    return replace(request, members=gated, needed=min(1, len(gated)), minima=())


def left_over(manager: PodGroupManager, group: Group) -> bool:
    """Whether our gate holds members that have no place. Lock held."""
    return bool(group.gated and (group.gated & group.members.keys()) - manager.placed(group))


def extra_members_wait(manager: PodGroupManager, group: Group) -> Gate | None:
    """What a gang that runs has to say of them. Lock held."""
    stop = group.stopped
    if stop is None or stop.reason is not Reason.EXTRA_MEMBERS_WAIT or not group.gated & group.members.keys():
        return None
    if phase_of(manager, group) is not Phase.BOUND:
        return None
    return Gate(stop.reason, stop.message, "")
