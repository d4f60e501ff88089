"""Which groups there are: a group exists while it has members, held ones among them, or a PodGroup; what is noted of it goes with it.

PodGroupManager keeps it, under its lock. scheduler-plugins: pkg/coscheduling/core/core.go
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from extender.plugins.coscheduling.quarantine import Quarantine
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.begun import Begun
from extender.plugins.coscheduling.state.manager.notes import Notes
from extender.plugins.coscheduling.state.manager.places import Places
from extender.plugins.coscheduling.state.manager.specs import Specs
from extender.plugins.coscheduling.state.slots import Slots


class Changed(Protocol):
    def __call__(self, group: Group, *, joined: bool) -> None: ...


def _untold(group: Group, *, joined: bool) -> None:
    """Where no gang starts early."""


class GroupRegistry:
    def __init__(
        self,
        groups: dict[str, Group],
        specs: Specs,
        begun: Begun,
        places: Places,
        notes: Notes,
        slots: Slots,
        quarantine: Quarantine,
    ) -> None:
        self._groups = groups
        self._specs = specs
        self._begun = begun
        self._places = places
        self._notes = notes
        self._slots = slots
        self._quarantine = quarantine
        self.on_dropped: list[Callable[[str], None]] = []  # told the keys of groups that are gone, under the lock
        self.on_changed: Changed = (
            _untold  # told of groups that have one more member, or ask for something else, under the lock
        )

    def get_or_new(self, key: str) -> Group:
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(key, on_waiting=partial(self._notes.queue.follow, key))
        return group

    def asks_anew(self, group: Group) -> None:
        """What its object, or one of its pods, asks for has changed: the groups that it names count at once."""
        group.asks_anew()
        if self._specs.of(group) is None:
            self._specs.forget(group.key)
        self._places.follow(group)
        self.on_changed(group, joined=False)

    def drop_if_empty(self, group: Group) -> None:
        """A group of which nothing is left is forgotten, with its notes. While one that has gone is held still it is kept, as if made
        anew: those that come next are another gang of that name.
        """
        if group.members or group.object is not None:
            return
        if self._groups.get(group.key) is group:
            for slot in list(self._slots.to_come(group.key)):
                self._slots.release(slot.uid)
            self._specs.forget(group.key)
            self._notes.forget(group.key)
            self._notes.queue.forget(group.key)
            self._begun.broken.pop(group.key, None)
            self._quarantine.forget(group.key)
            group.last_diagnosis = None
            for forget in self.on_dropped:
                forget(group.key)
            if not group.held:
                del self._groups[group.key]
