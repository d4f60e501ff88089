"""The planner's door: sorts the members, and chooses one of the two ways to place a gang.

Members that do not look at each other are placed by counting (`alike`), others by the in-tree filters (`search`).
No counterpart upstream.
"""

from __future__ import annotations

from extender.framework.hypothetical import Cluster, with_pods
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling.planner.alike import AlikeGang
from extender.plugins.coscheduling.planner.domains import UnknownLevelError
from extender.plugins.coscheduling.planner.foreseen import NATIVE, plan_foreseen
from extender.plugins.coscheduling.planner.gang import Gang
from extender.plugins.coscheduling.planner.members import classes, looks_at_others, plan_minima, relevant_labels
from extender.plugins.coscheduling.planner.request import (
    Cause,
    Deadline,
    Judge,
    NoPlacement,
    OutOfTimeError,
    Placement,
    Request,
)
from extender.plugins.coscheduling.planner.room import Room
from extender.plugins.coscheduling.planner.search import ConstrainedGang
from extender.plugins.coscheduling.planner.trees import plan_tree

OUT_OF_TIME = "planning took longer than its time budget"


def plan(cluster: Cluster, request: Request, judge: Judge) -> Placement | NoPlacement:
    """Places for `needed` members and as many more as fit, or why there are none.

    cluster: a snapshot; one with columns is faster."""
    gang: Gang | None = None
    try:
        if request.tree is not None:
            return plan_tree(cluster, request, lambda part: plan(cluster, part, judge), judge)
        if request.foreseen is not None:
            names = {*NATIVE, *request.foreseen.total.scalar}
            room = Room.of(with_pods(cluster, request.promised), names)
            return plan_foreseen(request, request.foreseen, lambda part: plan(cluster, part, judge), room)
        if request.minima:
            return plan_minima(request, lambda part: plan(cluster, part, judge))
        if len(request.members) < request.needed:
            return NoPlacement("not enough members", len(request.members), request.needed, Cause.MEMBERS)
        if not request.members:
            return Placement({})
        deadline = Deadline.of(request)
        gang = _gang(with_pods(cluster, request.promised), request, judge, deadline)
        return gang.place() or gang.verdict()
    except UnknownLevelError as error:
        return NoPlacement(str(error), 0, request.needed, Cause.TOPOLOGY)
    except OutOfTimeError:
        placed = gang.placed if gang is not None else 0
        composite = request.tree.name if request.tree is not None else ""
        return NoPlacement(OUT_OF_TIME, placed, request.needed, Cause.BUDGET, composite=composite)


def _gang(snapshot: NodeInfoLister, request: Request, judge: Judge, deadline: Deadline) -> Gang:
    sorted_out = classes(request, relevant_labels(request.members, snapshot), judge)
    constrained = any(looks_at_others(members.first) for members in sorted_out)
    way = ConstrainedGang if constrained else AlikeGang
    return way(snapshot, sorted_out, request, judge, deadline)
