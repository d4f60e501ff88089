"""A necessary condition before a plan: whether the cluster has enough of one resource free for so many members, by counting alone.

UnitPlanning asks it for what ran out in the last plan, since most events that free some room do not free enough.
No counterpart upstream.
"""

from __future__ import annotations

from extender.framework.listers import NodeInfoLister
from extender.framework.resource import PODS
from extender.plugins.coscheduling.planner.request import Request
from extender.plugins.coscheduling.planner.room import Room, asked_of


class Counting:
    """Counts of one snapshot are kept until the next, so that many gangs that are alike are counted once. For one thread."""

    def __init__(self) -> None:
        self._snapshot: NodeInfoLister | None = None
        self._counts: dict[tuple[str, int], int] = {}

    def too_little(self, snapshot: NodeInfoLister, request: Request, resource: str) -> bool:
        """Whether that is sure for this resource. False where a member asks for none of it, or nothing is known.

        What is promised to others, and what filters refuse, would only lessen it.
        """
        if not resource or not request.needed or len(request.members) < request.needed:
            return False
        least = 1 if resource == PODS else min(asked_of(info.requests).get(resource, 0) for info in request.members)
        return least > 0 and self._hold(snapshot, resource, least) < request.needed

    def _hold(self, snapshot: NodeInfoLister, resource: str, amount: int) -> int:
        """How many pods of that size all nodes hold together, by this resource and the number of pods."""
        if self._snapshot is not snapshot:
            self._snapshot, self._counts = snapshot, {}
        key = resource, amount
        if key not in self._counts:
            asked = {} if resource == PODS else {resource: amount}
            self._counts[key] = int(Room.of(snapshot, asked).capacity(asked).sum())
        return self._counts[key]
