"""One member beside the places of its gang: where a plan of it alone would put it, with no plan made.

MovedSlots asks this in filter calls, for members that look at no other. What the filters say of nodes but for their room it
keeps; here is the rest: the room that is left, and the order in which `alike` chooses. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from extender.framework.listers import NodeInfoLister
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.planner.alike import split
from extender.plugins.coscheduling.planner.domains import Scope
from extender.plugins.coscheduling.planner.members import MemberClass, judged, shape_of
from extender.plugins.coscheduling.planner.request import Judge, Request, Topology
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn, Room, asked_of


def open_nodes(member: PodInfo, snapshot: NodeInfoLister, judge: Judge) -> BoolColumn:
    """The nodes of the snapshot that refuse the member for nothing but want of room."""
    shape, _ = judged(MemberClass((member,), shape_of(member)), snapshot, judge)
    return shape.but_for_room


def place_one(
    member: PodInfo, snapshot: NodeInfoLister, at: IntColumn, topology: Topology, placed: Sequence[str]
) -> int | None:
    """The row of a node with room for the member, of the rows `at`, in ascending order; None where none has.

    topology: requires no domain. placed: the nodes of the gang's other members, which matter only where there are levels.
    Raises UnknownLevelError.
    """
    asked = asked_of(member.requests)
    capacity = np.zeros(len(snapshot.list()), dtype=np.int64)
    capacity[at] = Room.of(snapshot, asked, at).capacity(asked)
    if not capacity.any():
        return None
    scope = Scope(snapshot, Request([member], 1, topology=topology, placed=placed if topology.levels else ()))
    for level in scope.levels_to_try():
        for inside in scope.holding(level, [capacity], [1]):
            return split(scope.domains, scope.packing, capacity, inside, level + 1, 1)[0][0]
    return split(scope.domains, scope.packing, capacity, at, 0, 1)[0][0]
