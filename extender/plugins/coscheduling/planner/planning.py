"""The planner's door: sorts the members, chooses the way, and words the verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.gang import AlikeGang, ConstrainedGang, Gang, Problem
from extender.plugins.coscheduling.planner.members import classes, looks_at_others, relevant_labels
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


def plan(nodes: Sequence[NodeInfo], request: Request, judge: Judge) -> Placement | Verdict:
    """Places for `needed` members and as many more as fit, or why there are none. Never raises for a gang that is odd."""
    if len(request.members) < request.needed:
        return Verdict("not enough members", len(request.members), request.needed, Cause.MEMBERS)
    if not request.members:
        return Placement({})
    deadline = Deadline.of(request)
    gang: Gang | None = None
    try:
        gang = _gang(_with_promises(nodes, request.promised), request, judge, deadline)
        return gang.place() or gang.verdict()
    except UnknownLevelError as error:
        return Verdict(str(error), 0, request.needed, Cause.TOPOLOGY)
    except OutOfTimeError:
        placed = gang.placed if gang is not None else 0
        return Verdict(OUT_OF_TIME, placed, request.needed, Cause.BUDGET)


def _gang(nodes: Sequence[NodeInfo], request: Request, judge: Judge, deadline: Deadline) -> Gang:
    sorted_out = classes(request, relevant_labels(request.members, nodes))
    room = Room.of(nodes, {name for members in sorted_out for name in members.asked})
    problem = Problem(nodes, sorted_out, request, Scope(nodes, request), room, judge, deadline)
    constrained = any(looks_at_others(members.first) for members in sorted_out)
    return ConstrainedGang(problem) if constrained else AlikeGang(problem)


def _with_promises(nodes: Sequence[NodeInfo], promised: Iterable[tuple[str, PodInfo]]) -> Sequence[NodeInfo]:
    """The snapshot with the promised pods in place; nodes without promises are shared, not copied."""
    by_node: dict[str, list[PodInfo]] = {}
    for node_name, pod in promised:
        by_node.setdefault(node_name, []).append(pod)
    if not by_node:
        return nodes
    result = []
    for node in nodes:
        if pods := by_node.get(node.name):
            node = node.clone()
            present = {info.pod.metadata.uid for info in node.pods}
            for pod in pods:
                if pod.pod.metadata.uid not in present:
                    node.add_pod(pod)
        result.append(node)
    return result
