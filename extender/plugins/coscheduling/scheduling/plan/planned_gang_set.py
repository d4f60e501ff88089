"""A plan that is noted: whether the gang set may still start by it, and the slots that it has then.

No lock is held while a plan is made: members go, PodGroups change, groups are deleted meanwhile. GangSetPlanning and GangPreemption
ask again under the same hold of the manager's lock under which they note the places; gates come off after that alone.
kube-scheduler's cycle reads its pod once, and binding finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.coscheduling.waits_for import ANYTHING, OWN_EVENTS


@dataclass(frozen=True, slots=True)
class PlannedGangSet:
    """keys: of the gang set when the request was made. groups: those of it that are to start, with what each asked for then. The
    manager's lock is held around everything here."""

    keys: frozenset[str]
    groups: Sequence[tuple[Group, GroupSpec | None]]

    @classmethod
    def of(cls, manager: PodGroupManager, gang_set: Sequence[Group]) -> PlannedGangSet:
        keys = frozenset(group.key for group in gang_set)
        return cls(keys, tuple((group, manager.specs.of(group)) for group in gang_set))

    def only(self, chosen: Sequence[Group]) -> PlannedGangSet:
        """These groups of it have been chosen to start."""
        return replace(self, groups=tuple(each for each in self.groups if each[0] in chosen))

    def may_start_with(self, manager: PodGroupManager, uids: Collection[str]) -> bool:
        """Whether these members, where they are still there, and those with a place are enough for the same request now."""
        return self.asks_for_the_same(manager) and not any(
            manager.places.lacks(group, spec, manager.places.placed(group) | (group.members.keys() & uids)).total
            for group, spec in self.groups
        )

    def asks_for_the_same(self, manager: PodGroupManager) -> bool:
        """Whether the same groups are to start, each by the request that it had."""
        if not self.groups or {each.key for each in gang_set_of(manager, self.groups[0][0])} != self.keys:
            return False
        return all(
            is_there(manager, group) and spec is not None and not spec.invalid and manager.specs.of(group) == spec
            for group, spec in self.groups
        )


def is_there(manager: PodGroupManager, group: Group) -> bool:
    """Whether it was neither deleted nor set aside since it was looked up. Lock held."""
    return manager.groups.get(group.key) is group and group.key not in manager.quarantine


def note_places(
    manager: PodGroupManager,
    gang_set: Sequence[Group],
    request: planner.Request,
    placement: planner.Placement,
    waves: Sequence[frozenset[str]],
    expires: float,
    *,
    gathers: bool = False,
) -> None:
    """The gang set has its places, and is denied no longer; a member that has gone meanwhile gets none. The manager's lock is held.

    gathers: it was still being made when the plan began: those to come have the time of any place, and no later phase's.
    Those of members that a start has left behind are firm, whether or not victims have to go from them first.
    """
    if request.tree is not None:
        manager.composites.choose(request.tree.name, [group.key for group in gang_set])
    wave_of = _wave_of(manager, gang_set, waves)
    settled = {uid for each in gang_set for uid in each.assigned}
    behind = {uid for each in gang_set for uid in manager.begun.left_behind(each)}
    priorities = {each.key: manager.line.priority_of(each) for each in gang_set}
    group_of = {uid: each for each in gang_set for uid in each.members}
    for info in request.members:
        node_name, group = placement.nodes.get(info.pod.uid), group_of.get(info.pod.uid)
        if node_name is not None and group is not None and info.pod.uid not in settled:
            firm, priority = info.pod.uid in behind, priorities[group.key]
            member = group.members[info.pod.uid]
            wave, member.turn = wave_of(info.pod.uid, member.turn), None
            slot = Slot(info, group.key, node_name, expires, firm, priority, wave)
            sliced = next((each for each in request.sliced if info.pod.uid in each.uids), None)
            if sliced is not None:
                slot = replace(
                    slot, ranks=sliced.ranks_beside(info.pod.uid), kind=sliced.kind if sliced.sizes else None
                )
            manager.slots.reserve(slot)
    if placement.kept:
        until = expires if gathers else manager.clock() + manager.to_come_seconds
        manager.places.keep_for_members_to_come(gang_set[0], placement.kept, until)
    for group in gang_set:
        group.planned = True
        for member in group.members.values():
            member.renominated = False
        manager.denied.pop(group.key, None)
        unplaced = (group.refused | group.gated) - manager.places.placed(group)
        manager.queue.settle(group.key, ANYTHING if unplaced else OWN_EVENTS)


def _wave_of(
    manager: PodGroupManager, gang_set: Sequence[Group], waves: Sequence[frozenset[str]]
) -> Callable[[str, int | None], int]:
    """The wave of a member's new slot, by its UID and the turn that it had. The waves of a plan come before those that there are; one
    that is planned again alone keeps its turn, and one that had none comes last.
    """
    in_waves = any(group.key in manager.slots.waves for group in gang_set)
    known = [slot.wave for group in gang_set for slot in manager.slots.of_group(group.key)] if in_waves else []
    first, last = min(known, default=len(waves)) - len(waves), max(known, default=-1) + 1
    planned = {uid: first + number for number, wave in enumerate(waves) for uid in wave}

    def wave_of(uid: str, turn: int | None) -> int:
        if uid in planned or not in_waves:
            return planned.get(uid, 0)
        return turn if turn is not None else last

    return wave_of
