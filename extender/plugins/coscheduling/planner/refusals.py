"""Why nodes were refused, summed up to one constant text.

Room comes before everything else: where some nodes would do but for room, that is what a gang waits for. Then the most
frequent reason; of equally frequent ones the first in the alphabet, so that the text stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from extender.framework.status import Status
from extender.plugins import names
from extender.plugins.coscheduling.planner.request import Cause
from extender.plugins.coscheduling.planner.room import shortage

NO_NODE = "no node takes it"


class Refusals:
    def __init__(self) -> None:
        self._others: Counter[tuple[str, str]] = Counter()  # (reason, plugin)
        self._room: Counter[str] = Counter()  # resource

    def copy(self) -> Refusals:
        copy = Refusals()
        copy._others, copy._room = self._others.copy(), self._room.copy()
        return copy

    def count(self, statuses: Iterable[Status]) -> None:
        """Those of NodeResourcesFit are left to `short`, which looks at what is left after all that was placed."""
        for status, times in Counter(statuses).items():
            if status.plugin != names.NODE_RESOURCES_FIT:
                for reason in status.reasons:
                    self._others[reason, status.plugin] += times

    def short(self, resources: Mapping[str, int]) -> None:
        """Resource -> the number of nodes that have too little of it."""
        self._room.update(resources)

    @property
    def resource(self) -> str:
        """What most nodes have too little of; empty where room is not the matter."""
        return min(self._room, key=lambda name: (-self._room[name], name), default="")

    @property
    def reason(self) -> str:
        if self._room:
            return shortage(self.resource)
        return self._main()[0]

    @property
    def cause(self) -> Cause:
        if self._room:
            return Cause.ROOM
        affinity = self._main()[1] in (names.POD_TOPOLOGY_SPREAD, names.INTER_POD_AFFINITY)
        return Cause.AFFINITY if affinity else Cause.NODES

    def _main(self) -> tuple[str, str]:
        return min(self._others, key=lambda entry: (-self._others[entry], entry), default=(NO_NODE, ""))
