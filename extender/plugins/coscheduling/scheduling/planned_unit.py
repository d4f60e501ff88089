"""A unit as it was when its plan was asked for: the plan counts only if the unit may still start by it when it is noted.

No lock is held while a plan is made: members go, PodGroups change, groups are deleted meanwhile. UnitPlanning and
GangPreemption ask, under the same hold of the manager's lock under which they note the places; gates come off after that alone.
No counterpart upstream: kube-scheduler's cycle reads its pod once, and binding finds out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs
from extender.plugins.coscheduling.state.units import unit_of


@dataclass(frozen=True, slots=True)
class PlannedUnit:
    """groups: with what each asked for when the request was made. The manager's lock is held around everything here."""

    groups: Sequence[tuple[Group, GroupSpec | None]]

    @classmethod
    def of(cls, manager: PodGroupManager, unit: Sequence[Group]) -> PlannedUnit:
        return cls(tuple((group, _asked(manager, group)) for group in unit))

    def may_start_with(self, manager: PodGroupManager, uids: Collection[str]) -> bool:
        """Whether these members, where they are still there, and those with a place are enough for the same request now."""
        first = self.groups[0][0]
        if {each.key for each in unit_of(manager, first)} != {group.key for group, _ in self.groups}:
            return False
        return all(
            is_there(manager, group)
            and spec is not None
            and not spec.invalid
            and _asked(manager, group) == spec
            and not needs(group, spec, manager.placed(group) | (group.members.keys() & uids))
            for group, spec in self.groups
        )


def is_there(manager: PodGroupManager, group: Group) -> bool:
    """Whether it was neither deleted nor set aside since it was looked up. Lock held."""
    return manager.groups.get(group.key) is group and group.key not in manager.quarantine


def _asked(manager: PodGroupManager, group: Group) -> GroupSpec | None:
    """Without the object, whose status changes with each verdict."""
    spec = manager.spec(group)
    return replace(spec, pod_group=None) if spec is not None else None
