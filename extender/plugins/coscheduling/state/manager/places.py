"""The places of a group's members: which have one, how many are missing, and how places are kept, taken over, given up and lost.

PodGroupManager keeps it, under its lock; `state/slots.py` has the slots themselves. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice

from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.spec.sources.steps import Step
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import is_of_kind
from extender.plugins.coscheduling.state.manager.begun import Begun
from extender.plugins.coscheduling.state.manager.line import Line
from extender.plugins.coscheduling.state.manager.notes import Notes
from extender.plugins.coscheduling.state.manager.specs import Specs
from extender.plugins.coscheduling.state.member import Effect
from extender.plugins.coscheduling.state.quorum import NOTHING, Needs, are_enough, needs, unmade
from extender.plugins.coscheduling.state.slots import Slot, Slots, holds, is_for_shape_of


class Places:
    def __init__(
        self, groups: Mapping[str, Group], specs: Specs, begun: Begun, line: Line, notes: Notes, slots: Slots
    ) -> None:
        self._groups = groups
        self._specs = specs
        self._begun = begun
        self._line = line
        self._notes = notes
        self._slots = slots

    def carry_out(
        self, effects: Iterable[Effect], group: Group, uid: str, *, node_name: str = "", until: float = 0.0
    ) -> None:
        """What a member's transition means for its slot; nothing else follows from the table. node_name: where the member is, or was to
        be bound. until: when a slot that is kept expires, in seconds of the clock."""
        for effect in effects:
            match effect:
                case Effect.RELEASE_PLACE:
                    self._slots.release(uid, bound=bool(node_name))
                case Effect.KEEP_PLACE:
                    self._keep_slot(group, uid, node_name, until)

    def _keep_slot(self, group: Group, uid: str, node_name: str, until: float) -> None:
        """For as long as after a plan; `follow_start` says whether it is firm."""
        member, slot = group.members.get(uid), self._slots.get(uid)
        if member is not None:
            slot = slot or Slot(member.info, group.key, node_name, 0.0, gang_priority=self._line.priority_of(group))
            self._slots.reserve(replace(slot, node_name=node_name, expires=max(slot.expires, until)))

    def claim(self, group: Group, info: PodInfo) -> None:
        """A member that has come is for a slot that was kept for members to come; where none will do there is one place too few."""
        slots = self._slots.to_come(group.key)
        found = next((slot for slot in slots if not info.pod.node_name and self.may_take(group, slot, info)), None)
        if found is not None:
            self._slots.give(found, info)
        elif slots:
            self.follow(group)

    def claim_all(self, group: Group) -> None:
        """Room was found again for members of which some came while none was kept: they have theirs, as if they had come now."""
        placed = self.placed(group)
        for info in sorted(group.pending(), key=lambda info: info.pod.name):
            if info.pod.uid not in placed and self._slots.to_come(group.key):
                self.claim(group, info)
        group.planned = True
        self.follow(group)

    def may_take(self, group: Group, slot: Slot, info: PodInfo) -> bool:
        """Whether a slot of its group that is for another member, or for one to come, will do for this one, which has none. The quorum
        has to be as good as before: no other role or slice, no lower priority, and what finishes a start is for those that it left
        behind."""
        spec = self._specs.of(group)
        if spec is None or info.pod.priority < slot.pod.priority:
            return False
        if slot.kind is not None and not is_of_kind(spec, info.pod, slot.kind):
            return False
        rank = spec.rank_of(info.pod) if slot.ranks is not None else None
        if slot.ranks is not None and (rank is None or rank[0] or rank[1] not in slot.ranks):
            return False
        if spec.roles.minima and spec.roles.role_of(info.pod) != spec.roles.role_of(slot.pod):
            return False
        if slot.firm and info.pod.uid not in self._begun.left_behind(group):
            return False
        if not slot.to_come:
            return is_for_shape_of(slot, info)
        if group.gathering is not None:
            return is_for_shape_of(slot, info) and spec.rank_of(info.pod) == spec.rank_of(slot.pod)
        # Executors follow a start, and none counts for it: their room is of what minResources names, which rarely is memory.
        return holds(slot, info, in_part=Step.DRIVER in group.steps)

    def keep_for_members_to_come(self, group: Group, kept: Iterable[tuple[str, PodInfo]], until: float) -> None:
        """Slots for members that do not exist yet: (node name, a pod that asks for as much). A member of that role that is no larger
        has it as soon as it comes, and what it leaves is kept on; they go when their time, in seconds of the clock, is up."""
        for node_name, info in kept:
            priority = self._line.priority_of(group)
            self._slots.reserve(Slot(info, group.key, node_name, until, gang_priority=priority, to_come=True))
        if group.gathering is not None or group.gathered:  # members came while it was planned
            placed = self.placed(group)
            for info in [info for info in group.pending() if info.pod.uid not in placed]:
                self.claim(group, info)
        self.follow(group)

    def release(self, group: Group, uids: Iterable[str] | None = None) -> None:
        """Takes back the slots of these members, or of all. A member keeps its turn."""
        for uid in list(self._slots.uids_of(group.key) if uids is None else uids):
            slot = self._slots.release(uid)
            if slot is not None and (member := group.members.get(uid)) is not None:
                member.turn = slot.wave
        self._notes.queue.forget_why(group.key)
        self.follow(group)

    def give_up(self, group: Group, keep: Collection[str] = ()) -> bool:
        """Takes back all slots but those of held members, and of the members to keep. Returns whether there were any."""
        uids = [
            place.uid
            for place in self._slots.of_group(group.key)
            if place.uid not in group.held and place.uid not in keep
        ]
        for uid in uids:
            self._slots.release(uid)
        for member in group.members.values():
            member.turn = None
        group.planned = False
        group.preempting = None
        for uid in uids:
            group.place_lost(uid)
        if uids:
            self._notes.queue.forget_why(group.key)
        return bool(uids)

    def lose(self, group: Group, uids: Iterable[str]) -> None:
        """These members are to be planned again, beside the places that are still good. Where those are enough, it may start."""
        self.release(group, uids)
        self._notes.forget(group.key)
        self._notes.queue.move_to_active((group.key,))

    def placed(self, group: Group) -> AbstractSet[str]:
        """Members with a place: on a node, held, or planned."""
        planned = self._slots.uids_of(group.key) & group.members.keys()
        return group.assigned | group.in_permit | group.starting | planned

    def lacks(self, group: Group, spec: GroupSpec | None, placed: AbstractSet[str]) -> Needs:
        """What the group still needs if these members have a place, beside the slots for members that are still to come."""
        if spec is None or are_enough(spec, len(placed)):
            return NOTHING
        kept = self._slots.to_come(group.key)
        most = min(len(kept), unmade(group, spec)) if kept else 0
        if most and are_enough(
            spec, len(placed) + most
        ):  # asked with each member's event: not for a list of all that are to come
            return NOTHING
        return needs(group, spec, placed, [slot.pod for slot in islice(kept, most)])

    def follow(self, group: Group) -> None:
        """After places went, or the group asks for something else: without enough of them it is planned no more, but anew."""
        if not group.planned:
            return
        spec = self._specs.valid(group)
        if spec is None:
            group.planned = False
        elif not are_enough(spec, len(group.assigned) + len(group.in_permit) + len(group.starting)):
            group.planned = not self.lacks(group, spec, self.placed(group)).total
        if not group.planned and group.key in self._groups and group.waits_for_room():
            self._notes.queue.move_to_active((group.key,))
