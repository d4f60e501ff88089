"""The line of gangs that wait: which is planned first, at which priority, and since when it could have started.

PodGroupManager keeps it, under its lock. scheduler-plugins: pkg/coscheduling/coscheduling.go (Less)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter

from extender.plugins.coscheduling.quarantine import Quarantine
from extender.plugins.coscheduling.state.counts.standing import Standing, standing_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.begun import Begun
from extender.plugins.coscheduling.state.manager.specs import Specs

Order = tuple[bool, int, bool, datetime, str]
"""What gangs are sorted by; a key comes last."""
_FAR_FUTURE = datetime.max.replace(tzinfo=UTC)


class Line:
    def __init__(
        self,
        groups: Mapping[str, Group],
        specs: Specs,
        begun: Begun,
        quarantine: Quarantine,
        wall: Callable[[], datetime],
    ) -> None:
        self._groups = groups
        self._specs = specs
        self._begun = begun
        self._quarantine = quarantine
        self._wall = wall

    def order(self, group: Group) -> Order:
        """What has begun comes first, then priority, then what has not given up, then the age of the quorum, then the name."""
        standing = self.standing(group)
        since = standing.since or _FAR_FUTURE
        return not self._begun.was_cut_short(group), -standing.priority, self.has_given_up(group), since, group.key

    def has_given_up(self, group: Group) -> bool:
        """Whether the gang, if it waits, has done so for longer than it asks for: it comes behind others of its priority."""
        spec = self._specs.of(group)
        if spec is None or spec.patience.give_up_after is None:
            return False
        since = self.standing(group).since
        return since is not None and (self._wall() - since).total_seconds() >= spec.patience.give_up_after

    def in_order(self, groups: Iterable[Group]) -> list[Group]:
        """The first comes first; without those that are set aside, and those that `order` raises at."""
        found = []
        for group in groups:
            order = self._quarantine.for_gang(group.key, "order", partial(self.order, group), None)
            if order is not None:
                found.append((order, group))
        return [group for _, group in sorted(found, key=itemgetter(0))]

    def priority_of(self, group: Group) -> int:
        """At which the gang is planned, preempts and is preempted."""
        return self.standing(group).priority

    def standing(self, group: Group) -> Standing:
        """The gang's priority and age; of groups that start together the lowest priority, and the age of the last quorum."""
        if group.key in self._specs.composites.parents:
            return self._standing_in_tree(group, self._specs.composites.root_of(group.key))
        keys = self._specs.gang_set_index.sets.get(group.key)
        if keys is None or self._specs.gang_set_index.was_whole(keys):
            return self._own_standing(group)
        found = [self._own_standing(each) for key in keys if (each := self._groups.get(key)) is not None]
        since = max((each.since or _FAR_FUTURE for each in found), default=_FAR_FUTURE)
        return Standing(min((each.priority for each in found), default=0), since)

    def _standing_in_tree(self, group: Group, root: str) -> Standing:
        """The widest composite's own priority, if it has one. Groups without a quorum yet make the others no younger."""
        started, spec = self._specs.composites.has_started(root), self._specs.composites.spec(root)
        keys = (
            (group.key,) if started else self._specs.composites.chosen(root) or self._specs.composites.groups_of(root)
        )
        found = [self._own_standing(each) for key in keys if (each := self._groups.get(key)) is not None]
        since = max((each.since for each in found if each.since is not None), default=None)
        own = spec.priority if spec is not None else None
        return Standing(min((each.priority for each in found), default=0) if own is None else own, since)

    def _own_standing(self, group: Group) -> Standing:
        if group.standing is None:
            group.standing = standing_of(group.members, group.priorities, self._specs.of(group))
        return group.standing
