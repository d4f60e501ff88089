"""How many alike members find room once some pods are gone, by adding up: what a plan would say, without planning.

It holds for gangs whose members mind nothing but room; the search for victims asks it in place of the planner, and has the
planner confirm what it found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from extender.framework.listers import NodeInfoLister
from extender.framework.resource import PODS
from extender.plugins import names
from extender.plugins.coscheduling.planner import Judge, Request, shape_of
from extender.plugins.coscheduling.planner.hypothetical import with_pods
from extender.plugins.coscheduling.planner.members import looks_at_others
from extender.plugins.coscheduling.planner.room import Room, asked_of
from extender.plugins.coscheduling.preemption.evictable import Evictable

_MOST = 2**61


class RoomEstimate:
    """Columns: what is free on each node, and what each victim would give back."""

    def __init__(self, cluster: NodeInfoLister, request: Request, judge: Judge, everybody: Sequence[Evictable]) -> None:
        promised = with_pods(cluster, request.promised)
        member = request.members[0]
        statuses = judge.begin(member.pod, promised).filter_all()
        self._asked = asked_of(member.requests)
        self._needed = request.needed
        self._eligible = np.array([s.success or s.plugin == names.NODE_RESOURCES_FIT for s in statuses], dtype=np.bool_)
        self._room = Room.of(promised, self._asked)
        at = {node.name: index for index, node in enumerate(promised.list())}
        self._number = {victim.uid: number for number, victim in enumerate(everybody)}
        self._node = np.array([at[victim.node_name] for victim in everybody], dtype=np.intp)
        self._gives = {
            name: np.array([min(_amount(victim, name), _MOST) for victim in everybody], dtype=np.int64)
            for name in (*self._asked, PODS)
        }

    @staticmethod
    def applies(request: Request) -> bool:
        """Whether members are alike, mind nothing but room, and may go anywhere."""
        if request.allowed or request.excluded or request.topology.required or request.minima or not request.members:
            return False
        if any(looks_at_others(member) for member in request.members):
            return False
        return len({shape_of(member) for member in request.members}) == 1

    def fits(self, victims: Iterable[Evictable]) -> bool:
        """Whether the gang would, if these went."""
        gone = np.array([self._number[victim.uid] for victim in victims], dtype=np.intp)
        room = self._room.copy()
        room.give(self._node[gone], {name: amounts[gone] for name, amounts in self._gives.items()})
        holds = room.capacity(self._asked)[self._eligible]
        return int(np.minimum(holds, self._needed).sum()) >= self._needed


def _amount(victim: Evictable, name: str) -> int:
    return 1 if name == PODS else victim.info.requests.amount(name)
