"""The planner's door: sorts the members, chooses the way, and words the verdict."""

from __future__ import annotations

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner.gang import AlikeGang, ConstrainedGang, Gang, Problem
from extender.plugins.coscheduling.planner.hypothetical import Cluster, with_pods
from extender.plugins.coscheduling.planner.members import classes, looks_at_others, relevant_labels
from extender.plugins.coscheduling.planner.minima import plan_minima
from extender.plugins.coscheduling.planner.request import (
    Cause,
    Deadline,
    Judge,
    OutOfTimeError,
    Placement,
    Request,
    Verdict,
)
from extender.plugins.coscheduling.planner.room import Room
from extender.plugins.coscheduling.planner.scope import Scope, UnknownLevelError

OUT_OF_TIME = "planning took longer than its time budget"


def plan(cluster: Cluster, request: Request, judge: Judge) -> Placement | Verdict:
    """Places for `needed` members and as many more as fit, or why there are none.

    cluster: a snapshot; one with columns is faster."""
    if request.minima:
        return plan_minima(request, lambda part: plan(cluster, part, judge))
    if len(request.members) < request.needed:
        return Verdict("not enough members", len(request.members), request.needed, Cause.MEMBERS)
    if not request.members:
        return Placement({})
    deadline = Deadline.of(request)
    gang: Gang | None = None
    try:
        gang = _gang(with_pods(cluster, request.promised), request, judge, deadline)
        return gang.place() or gang.verdict()
    except UnknownLevelError as error:
        return Verdict(str(error), 0, request.needed, Cause.TOPOLOGY)
    except OutOfTimeError:
        placed = gang.placed if gang is not None else 0
        return Verdict(OUT_OF_TIME, placed, request.needed, Cause.BUDGET)


def _gang(snapshot: NodeInfoLister, request: Request, judge: Judge, deadline: Deadline) -> Gang:
    sorted_out = classes(request, relevant_labels(request.members, snapshot), judge)
    room = Room.of(snapshot, {name for members in sorted_out for name in members.asked})
    problem = Problem(snapshot, sorted_out, request, Scope(snapshot, request), room, judge, deadline)
    constrained = any(looks_at_others(members.first) for members in sorted_out)
    return ConstrainedGang(problem) if constrained else AlikeGang(problem)
