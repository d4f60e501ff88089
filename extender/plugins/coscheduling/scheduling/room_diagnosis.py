"""Why a gang finds no room, looked at more closely: is it that kube-scheduler refuses the nodes, or that others have places there?

GangSetPlanning asks before it denies a gang, and what it finds is told everywhere: condition, event, page and explain.
GangReport's relaxations ask the same questions. Pure but for the planner, which the caller runs.
No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.scheduling.rejected_in_tree import quote
from extender.plugins.coscheduling.state.diagnosis import OF_CAUSE, Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.refutations import NOWHERE

BUDGET_SECONDS = 0.2  # for one question: a gang whose members constrain each other is refused without an answer
LOOKED_AT = frozenset((planner.Cause.ROOM, planner.Cause.NODES, planner.Cause.AFFINITY, planner.Cause.TOPOLOGY))

Fits = Callable[[PlanQuestion], bool]


def without_refusals(request: planner.Request) -> planner.Request:
    """As if kube-scheduler took every place that we would give."""
    return replace(request, excluded=frozenset(), allowed={})


def look_closer(
    manager: PodGroupManager,
    requests: PlanRequests,
    gang_set: Sequence[Group],
    question: PlanQuestion,
    stop: Diagnosis,
    fits: Fits,
) -> Diagnosis:
    """The stop as it is told. The manager's lock is not held."""
    if stop.verdict is None or stop.verdict.cause not in LOOKED_AT:
        return stop
    request = question.request
    with manager.lock:
        spec = manager.spec(gang_set[0])
        refused = bool(request.excluded) or any(group.refuted.times for group in gang_set)
        quoted = next(filter(None, map(quote, gang_set)), "")
    refused = refused or NOWHERE in request.allowed.values()
    asked = question.asking(replace(request, budget_seconds=BUDGET_SECONDS))
    if refused and fits(asked.asking(without_refusals(asked.request))):
        text = messages.refuted(spec.min_member if spec is not None else 0)
        return replace(stop, reason=UnschedulableReason.REFUTED_BY_SCHEDULER, message=text, quote=quoted)
    if asked.others and fits(asked.without_others()):
        with manager.lock:
            own = {uid for group in gang_set for uid in group.members}
            places = {place.uid for place in requests.places_of_others(gang_set)}
        others = frozenset(places | {info.pod.uid for _, info in request.promised} - own)
        if others:  # else they have all gone meanwhile
            return replace(stop, reason=UnschedulableReason.RESERVED_FOR_OTHERS, in_the_way=others)
    return stop


def no_longer_reserved(manager: PodGroupManager, group: Group) -> Diagnosis | None:
    """What stops it once those whose places were in its way run there, and no place was given up. Lock held."""
    stop = group.last_diagnosis
    if (
        stop is None
        or stop.reason is not UnschedulableReason.RESERVED_FOR_OTHERS
        or stop.verdict is None
        or not stop.in_the_way
    ):
        return None
    if any(manager.slots.get(uid) is not None for uid in stop.in_the_way):
        return None
    return replace(
        stop, reason=OF_CAUSE.get(stop.verdict.cause, UnschedulableReason.INSUFFICIENT_RESOURCES), since=manager.clock()
    )
