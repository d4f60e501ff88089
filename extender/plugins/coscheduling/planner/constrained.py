"""Members that look at each other: one by one, each judged by the profile's own filters with those before it in place.

A shape's PreFilter runs once; from then on its state is kept true by AddPod, and nodes that are untouched and that
share all labels in question share one judgement. An attempt is an order of members and a preference for nodes in one region;
several are made, until one places all, or the time is up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.plugins import names
from extender.plugins.coscheduling.planner.members import Shape
from extender.plugins.coscheduling.planner.request import Added, Deadline, Trial
from extender.plugins.coscheduling.planner.room import Amounts, BoolColumn, IntColumn, Refusals, Room

OF_THE_NODE = frozenset({names.NODE_VOLUME_LIMITS, names.VOLUME_BINDING, names.VOLUME_RESTRICTIONS, names.VOLUME_ZONE})
"""Plugins whose refusal concerns one node alone, for what is attached or promised there, and says nothing of nodes with the same labels."""

_LAST = 2**62
_MANY = 2**20  # members of a node beyond which it does not matter how many
EXPLAINED = 500  # nodes that are asked why they refuse

Step = tuple[int, PodInfo, int]
"""(shape, member, node)."""


class Preference(Enum):
    """Of the nodes that take a member: one that has members already and few others; the fullest; the one with fewest."""

    FEW = "few"
    FULLEST = "fullest"
    EVEN = "even"


@dataclass
class Arrangement:
    """Places in the making. regions: where each shape may go. sequence: (shape, member, node), each accepted in its turn."""

    shapes: Sequence[Shape]
    nodes: list[NodeInfo]
    room: Room
    regions: Sequence[BoolColumn]
    groups: IntColumn
    preference: Preference
    deadline: Deadline
    sequence: list[Step] = field(default_factory=list)
    unplaced: list[int] = field(default_factory=list)  # the shapes of members that found no node

    def __post_init__(self) -> None:
        self._trials = [shape.trial.clone() for shape in self.shapes]
        self._added: list[Added] = []
        self._told = [0] * len(self.shapes)  # how many of them each trial was told of
        self._passing = [shape.passing & region for shape, region in zip(self.shapes, self.regions, strict=True)]
        self._count_room()
        self._on_node = np.zeros(len(self.nodes), dtype=np.int64)  # members that this attempt has placed
        self._left = [len(shape.members) for shape in self.shapes]
        self._judged_at = [0] * len(self.shapes)  # how many were placed when all nodes were judged last

    def on(self, region: BoolColumn) -> Arrangement:
        """A copy with what has been placed, that goes on among these nodes."""
        other = copy(self)
        other.nodes, other.room, other.sequence = list(self.nodes), self.room.copy(), list(self.sequence)
        other.regions = [region] * len(self.shapes)
        other._trials = [trial.clone() for trial in self._trials]
        other._added, other._told = list(self._added), list(self._told)
        other._passing = [shape.passing & region for shape in self.shapes]
        other._count_room()
        other._on_node, other._left = self._on_node.copy(), list(self._left)
        other._judged_at = [0] * len(self.shapes)
        return other

    def _count_room(self) -> None:
        """A column of how many fit for each amount that is asked for, which shapes of one amount share: members with claims of their own
        are a shape each."""
        columns: dict[tuple[tuple[str, int], ...], tuple[Amounts, IntColumn]] = {}
        self._capacity = []
        for shape in self.shapes:
            asked = shape.asked
            key = tuple(asked.items())
            if key not in columns:
                columns[key] = asked, self.room.capacity(asked)
            self._capacity.append(columns[key][1])
        self._columns = list(columns.values())

    def capacity(self, number: int) -> IntColumn:
        """For each node how many of a shape it takes at most, if they do not mind each other."""
        return np.where(self.shapes[number].open_, self._capacity[number], 0)

    def run(self, order: Sequence[tuple[int, PodInfo]]) -> None:
        """Places as many as it can. A member that finds nothing is tried again after others were placed."""
        waiting = order
        while waiting:
            before = len(self.sequence)
            stuck = []
            closed: dict[int, int] = {}  # shape -> how many were placed when it found nothing
            for number, member in waiting:
                if closed.get(number) == len(self.sequence) or not self._place(number, member):
                    closed[number] = len(self.sequence)
                    stuck.append((number, member))
            waiting = stuck
            if len(self.sequence) == before:
                break
        self.unplaced = [number for number, _ in waiting]

    def _place(self, number: int, member: PodInfo) -> bool:
        self.deadline.check()
        at = self._find(number)
        if at is None:
            return False
        if not self._on_node[at]:
            self.nodes[at] = self.nodes[at].clone()
        node = self.nodes[at]
        volumes = self._trial(number).volumes_on(node.name)
        node.add_pod(member)
        self._on_node[at] += 1
        self.room.take(at, self.shapes[number].asked)
        for asked, column in self._columns:
            column[at] = self.room.capacity_at(at, asked)
        self._left[number] -= 1
        self._added.append((member, node, volumes))
        self.sequence.append((number, member, at))
        return True

    def _find(self, number: int) -> int | None:
        """The preferred one of the nodes that take it. What is skipped was judged, or shares a judgement."""
        found = self._among(number)
        if found is None and self._judged_at[number] < len(self.sequence):
            self._judge_again(number)
            found = self._among(number)
        return found

    def _trial(self, number: int) -> Trial:
        """It is told what it has to know when it is asked: of members that each have a trial, most are asked nothing any more."""
        trial, told = self._trials[number], self._told[number]
        if told < len(self._added):
            trial.add_pods(self._added[told:])
            self._told[number] = len(self._added)
        return trial

    def _among(self, number: int) -> int | None:
        if not self.nodes:
            return None
        trial = self._trial(number)
        candidates = self._passing[number] & (self._capacity[number] > 0)
        key = np.where(candidates, self._keys(number), _LAST)
        touched = self._on_node > 0
        refused: list[int] = []  # touched ones
        while True:
            at = int(key.argmin())
            if key[at] == _LAST:
                return None
            status = trial.filter(self.nodes[at])
            if status.success:
                for other in refused:  # not for their domains' sake but for their own
                    if not touched[at] and self.groups[other] == self.groups[at]:
                        self._passing[number][other] = False
                return at
            if touched[at] or status.plugin in OF_THE_NODE:
                refused.append(at)
                key[at] = _LAST
            else:  # what refuses it refuses all that share its domains and are as they were: they have passed before
                key[(self.groups == self.groups[at]) & ~touched] = _LAST

    def _judge_again(self, number: int) -> None:
        """One by one, the nodes that a sibling's coming may have opened: those that have not passed yet, and those that
        siblings are on. The others share a judgement that was made a moment ago."""
        trial = self._trial(number)
        passing = self._passing[number].copy()
        doubtful = ~passing | (self._on_node > 0)
        room = self._capacity[number] > 0
        for i in np.flatnonzero(doubtful & room & self.shapes[number].open_ & self.regions[number]):
            passing[i] = trial.filter(self.nodes[i]).success
        self.deadline.check()
        self._passing[number] = passing
        self._judged_at[number] = len(self.sequence)

    def _keys(self, number: int) -> IntColumn:
        """The lower the better; ties go to the first node."""
        capacity = np.minimum(self._capacity[number], _MANY)
        match self.preference:
            case Preference.FULLEST:
                return capacity
            case Preference.EVEN:
                return self._on_node * (2 * _MANY) - capacity
        left = self._left[number]
        holds_all = np.where(capacity >= left, capacity, 2 * _MANY - capacity)
        return np.where(self._on_node > 0, holds_all, holds_all + 4 * _MANY)

    def explain(self, refusals: Refusals) -> None:
        """Why the nodes refuse the first member that found none, as things stand now."""
        if not self.unplaced:
            return
        number = self.unplaced[0]
        shape, region = self.shapes[number], self.regions[number]
        refusals.short(self.room.short_of(shape.asked, shape.but_for_room & region & (self._capacity[number] == 0)))
        at = np.flatnonzero(shape.open_ & region & (self._capacity[number] > 0))[:EXPLAINED]
        trial = self._trial(number)
        refusals.count(Counter(trial.filter(self.nodes[i]) for i in at))
