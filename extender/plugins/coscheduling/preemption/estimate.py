"""How many alike members find room once some pods are gone, by adding up: what a plan would say, without planning.

It holds for gangs whose members mind nothing but room; the searches for victims ask it in place of the planner and have
the planner confirm what they found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from extender.framework.node_info import NodeInfo
from extender.framework.resource import PODS
from extender.plugins.coscheduling.planner.members import looks_at_others, shape_of
from extender.plugins.coscheduling.planner.request import Request
from extender.plugins.coscheduling.planner.room import asked_of, free
from extender.plugins.coscheduling.preemption.evictable import Evictable

MOST = 2**31
"""More members than this no node is said to hold."""


class RoomEstimate:
    """Free amounts of the nodes, and what each victim would give back. Changes with `give` and `take_back`."""

    def __init__(self, nodes: Sequence[NodeInfo], eligible: Sequence[bool], request: Request) -> None:
        """eligible: the nodes that the members' other filters do not mind."""
        self._asked = {PODS: 1, **asked_of(request.members[0].requests)}
        self._needed = request.needed
        self._at = {node.name: index for index, node in enumerate(nodes)}
        self._free = [{name: free(node, name) for name in self._asked} for node in nodes]
        self._eligible = list(eligible)
        self._capacity: NDArray[np.int64] = np.array(
            [self._holds(index) for index in range(len(nodes))], dtype=np.int64
        )

    @staticmethod
    def applies(request: Request) -> bool:
        """Whether members are alike, mind nothing but room, and may go anywhere."""
        if request.allowed or request.excluded or request.topology.required:
            return False
        if any(looks_at_others(member) for member in request.members):
            return False
        return len({shape_of(member) for member in request.members}) == 1

    def fits(self, victims: Iterable[Evictable]) -> bool:
        """Whether the gang would, if these went as well."""
        victims = list(victims)
        self.give(victims)
        fits = self.enough
        self.take_back(victims)
        return fits

    @property
    def enough(self) -> bool:
        return int(self._capacity.sum()) >= self._needed

    def give(self, victims: Iterable[Evictable]) -> None:
        self._move(victims, 1)

    def take_back(self, victims: Iterable[Evictable]) -> None:
        self._move(victims, -1)

    def _move(self, victims: Iterable[Evictable], sign: int) -> None:
        changed = set()
        for victim in victims:
            index = self._at[victim.node_name]
            amounts = self._free[index]
            for name in self._asked:
                amounts[name] += sign * _amount(victim, name)
            changed.add(index)
        for index in changed:
            self._capacity[index] = self._holds(index)

    def _holds(self, index: int) -> int:
        if not self._eligible[index]:
            return 0
        amounts: Mapping[str, int] = self._free[index]
        return max(0, min(MOST, *(amounts[name] // asked for name, asked in self._asked.items())))

    def holds(self, node_name: str) -> int:
        return int(self._capacity[self._at[node_name]])


def _amount(victim: Evictable, name: str) -> int:
    return 1 if name == PODS else victim.info.requests.amount(name)
