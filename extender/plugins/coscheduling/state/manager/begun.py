"""Gangs that have begun and are not whole: starts that were cut short, with the places that finish them, and gangs that broke.

PodGroupManager keeps it, under its lock; `state/starts.py` says what a start is. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime

from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.specs import Specs
from extender.plugins.coscheduling.state.quorum import is_broken, left_behind
from extender.plugins.coscheduling.state.slots import Slots
from extender.plugins.coscheduling.state.starts import follow_start, recall_once_whole, recall_start


class Begun:
    def __init__(self, specs: Specs, slots: Slots, *, clock: Callable[[], float], wall: Callable[[], datetime]) -> None:
        self._specs = specs
        self._slots = slots
        self._clock = clock
        self._wall = wall
        # keys of gangs that ask what becomes of them when broken, and are -> since when
        self.broken: dict[str, float] = {}

    def was_cut_short(self, group: Group) -> bool:
        """Whether a start of ours was cut short, and can be finished: a part of the gang runs, and is of no use until it is whole."""
        return bool(self.left_behind(group))

    def left_behind(self, group: Group) -> AbstractSet[str]:
        """The members that would complete a start that was cut short. Their places are firm, and no others."""
        spec = self._specs.of(group) if group.start is not None else None
        return left_behind(group, spec) if spec is not None else frozenset()

    def recall(self, group: Group) -> bool:
        """When we begin to lead: whether a start that the pods' records show was cut short, and can be finished."""
        spec = self._specs.of(group)
        recall_start(group, spec, self._wall())
        self.follow(group, spec)
        recall_once_whole(group, spec, self._specs.foreign_of(group))
        self.follow_broken(group, spec)
        return self.was_cut_short(group)

    def follow(self, group: Group, spec: GroupSpec | None) -> None:
        """Members came to nodes, or went: is the last start over, and which places does it take to finish it?"""
        firm = self._slots.firm_of(group.key)
        if group.start is None and not firm:
            return
        follow_start(group, spec)
        behind = left_behind(group, spec) if group.start is not None and spec is not None else frozenset()
        changed = (behind & self._slots.uids_of(group.key)) ^ firm
        for slot in filter(None, map(self._slots.get, changed)):
            self._slots.reserve(replace(slot, firm=not slot.firm))

    def follow_broken(self, group: Group, spec: GroupSpec | None) -> None:
        """Members came to nodes, or left them."""
        if spec is None or spec.invalid or spec.patience.broken_after is None or not is_broken(group, spec):
            self.broken.pop(group.key, None)
        else:
            self.broken.setdefault(group.key, self._clock())
