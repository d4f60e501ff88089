"""Plans that cannot lead to a start any more after an event, and the groups that an event concerns beside its own.

PodEvents and ObjectEvents ask, under the manager's lock, and drop the plans once they have let it go. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter

from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, is_linked, missing_group
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


class VoidPlans:
    def __init__(self, manager: PodGroupManager, rounds: PlanningRounds) -> None:
        self._manager = manager
        self._rounds = rounds

    def together(self, group: Group, before: Sequence[Group]) -> Sequence[Group]:
        """The group, those that it starts with now, and those that are there of what it was to start with before."""
        known = self._manager.groups
        others = {each.key for each in (*before, *gang_set_of(self._manager, group))} - {group.key}
        return (group, *(known[key] for key in sorted(others) if key in known)) if others else (group,)

    def void(self, groups: Sequence[Group]) -> list[str]:
        """Groups whose plan, or what is left of its slots, cannot lead to a start any more: a group of the gang set lost its quorum,
        or is gone.
        """
        known, slots = self._manager.groups, self._manager.slots
        return [
            group.key
            for group in sorted(groups, key=attrgetter("key"))
            if known.get(group.key) is group
            and (group.planned or slots.uids_of(group.key))
            and not self._may_start(group)
        ]

    def _may_start(self, group: Group) -> bool:
        manager = self._manager
        linked = is_linked(manager, group)
        for each in gang_set_of(manager, group) if linked else (group,):
            spec = manager.specs.valid(each)
            if spec is None or manager.places.lacks(each, spec, each.members.keys()).total:
                return False
        return not linked or not (missing_group(manager, group) or manager.composites.missing(group.key))

    def drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._manager.quarantine.for_gang(key, "events", partial(self._rounds.drop_plan, key), None)
