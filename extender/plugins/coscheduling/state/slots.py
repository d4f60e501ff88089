"""Slots: the room that a plan gives a gang, node by node, until its members are bound there.

The planner, Coscheduling's Filter and the preemption guard count them. A slot is reserved for one member at a time, but any member of the
same shape may take it; the member it was reserved for is then sent to a free slot. It may be reserved for a member that is still to come.
Where none of the nodes offered has a free slot, the member's own is moved to one of them, if nothing but room says where it has to be
(MovedSlots). kube-scheduler has no counterpart: its nominations vanish on a restart or a preemption, so they are only hints; slots decide.

    (none) --plan--> free, for a member or for one to come --filter--> taken (Admitted, Waiting, Starting) --watch: bound--> (none)
    free --filter, on a node that is not offered--> free, on one that is
    free --no room any more, refuted, expired, plan given up--> (none)    taken --refused, hold ended--> free
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Set
from dataclasses import dataclass, replace
from itertools import count
from typing import Self, TypeVar

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.ordering import ABOVE_ANY_PRIORITY
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.state.counts.standing import counts_at

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Slot:
    """Room for one member on one node. `expires` in seconds of the clock: a slot to which no member comes is given up then.

    pod_info: what is counted: the member that the slot is for, or the likeness of one that is still to come.
    group: the gang's key; empty for the room of a single pod. firm: holds whatever the others' priority, to finish a start that has begun.
    gang_priority: None for a pod of no gang. wave: members are sent in the order of their slots' waves, the lowest first.
    ranks: those of the slice that the room is for; None where a member of any rank may have it. kind: (role, controller) of its slice, the
    controller where several count ranks from 0; None where the gang has slices of one kind.
    id: the same as long as the slot is there, whichever member it is for; 0 until it is kept.
    """

    pod_info: PodInfo
    group: str
    node_name: str
    expires: float
    firm: bool = False
    gang_priority: int | None = None
    wave: int = 0
    to_come: bool = False
    ranks: range | None = None
    kind: tuple[str, str] | None = None
    id: int = 0

    @property
    def uid(self) -> str:
        """Of the member that it is for; for one to come a UID that no pod has."""
        return self.pod_info.pod.metadata.uid

    @property
    def pod(self) -> corev1.Pod:
        return self.pod_info.pod

    @property
    def priority(self) -> int:
        own = self.pod_info.pod.priority
        return own if self.gang_priority is None else counts_at(own, self.gang_priority)

    def holds_against(self, priority: int) -> bool:
        return self.firm or self.priority >= priority

    def for_member(self, other: Slot) -> Slot:
        """This slot, for the member of the other one; how long it is kept, and whether it is firm, goes with the member."""
        return replace(self, pod_info=other.pod_info, to_come=other.to_come, expires=other.expires, firm=other.firm)


def holds(slot: Slot, info: PodInfo, *, in_part: bool = False) -> bool:
    """Whether the room for a member to come, of which the shape is not known, is enough for this one. in_part: of cpu, memory and
    storage in so far as it has any; the node has to have the rest free."""
    asked, room = info.requests, slot.pod_info.requests
    names = [*(name for name in planner.NATIVE if room.amount(name) or not in_part), *asked.scalar]
    return bool(names) and all(asked.amount(name) <= room.amount(name) for name in names)


def is_for_shape_of(slot: Slot, info: PodInfo) -> bool:
    """Whether any node treats the member and what the slot was planned for alike."""
    return planner.shape_of(slot.pod_info) == planner.shape_of(info)


@dataclass(frozen=True, slots=True)
class _Counted:
    """What one slot is counted by. priority: None for one that is firm."""

    group: str
    priority: int | None
    later_wave: bool
    looks_at_others: bool

    @classmethod
    def of(cls, slot: Slot) -> Self:
        priority = None if slot.firm else slot.priority
        return cls(slot.group, priority, bool(slot.wave), planner.looks_at_others(slot.pod_info))


class Slots:
    """By the UID of the member that each is for, by node and by group. Not locked: the owner's lock guards it."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Slot] = {}
        self._counted: dict[str, _Counted] = {}  # worked out once, when a slot is kept: as many are taken back
        self._by_node: dict[str, dict[str, Slot]] = {}
        self._by_group: dict[str, dict[str, Slot]] = {}
        self._to_come: dict[str, dict[str, Slot]] = {}  # by group: those for members that are still to come
        self._firm: dict[str, dict[str, Slot]] = {}  # by group
        self.waves: Counter[str] = Counter()  # group -> how many of its slots are of another wave than the first
        self.looking: Counter[str] = Counter()  # group -> how many are for pods that look at where others are
        self._priorities: Counter[int] = Counter()  # of the slots that are not firm
        self._given_up = False
        self._followers: list[set[str]] = []
        self._ids = count(1)

    def next_number(self) -> int:
        """One that no slot has had."""
        return next(self._ids)

    def follow(self, lowest: int | None = None) -> set[str]:
        """A set that the node of each slot is put into, of those that there are and as they come and go; to be emptied at will.

        lowest: as `lowest_against` has it, for a follower to which slots of a lower priority are nothing: where it is above any, those that
        are there and not firm are left out."""
        changed = set(self._by_node)
        if lowest == ABOVE_ANY_PRIORITY:
            changed = {slot.node_name for slots in self._firm.values() for slot in slots.values()}
        self._followers.append(changed)
        return changed

    def unfollow(self, changed: set[str]) -> None:
        self._followers = [each for each in self._followers if each is not changed]

    def _changed(self, node_name: str) -> None:
        for follower in self._followers:
            follower.add(node_name)

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Slot]:
        return iter(self._by_uid.values())

    def uids(self) -> Set[str]:
        """Of the pods that have a slot."""
        return self._by_uid.keys()

    def get(self, uid: str) -> Slot | None:
        """The slot that is for this pod."""
        return self._by_uid.get(uid)

    def on_node(self, node_name: str) -> Collection[Slot]:
        return self._by_node.get(node_name, {}).values()

    def of_group(self, group: str) -> list[Slot]:
        return list(self._by_group.get(group, {}).values())

    def of_group_on(self, group: str, node_names: Set[str]) -> Iterator[Slot]:
        """Those on these nodes, in the time of the fewer: the nodes, or the group's slots."""
        slots = self._by_group.get(group, {})
        if len(slots) <= len(node_names):
            yield from (slot for slot in slots.values() if slot.node_name in node_names)
        else:
            yield from (slot for name in sorted(node_names) for slot in self.on_node(name) if slot.group == group)

    def uids_of(self, group: str) -> Set[str]:
        """Of the members that have a slot, and of those to come. Not to be changed, nor kept."""
        return self._by_group.get(group, {}).keys()

    def to_come(self, group: str) -> Collection[Slot]:
        """The group's slots for members that are still to come."""
        return self._to_come.get(group, {}).values()

    def firm_of(self, group: str) -> Set[str]:
        """UIDs of members with firm slots: a live view, for callers to read at once and not to change."""
        return self._firm.get(group, {}).keys()

    def reserve(self, slot: Slot) -> None:
        """Keeps a new slot, or changes the one that the same pod has."""
        uid = slot.uid
        known = self._by_uid.get(uid)
        before = self.release(uid, bound=known is not None and known.node_name == slot.node_name)
        if not slot.id:
            slot = replace(slot, id=before.id if before is not None else next(self._ids))
        self._changed(slot.node_name)
        self._by_uid[uid] = slot
        for index, key in self._indexes(slot):
            index.setdefault(key, {})[uid] = slot
        counted = self._counted[uid] = _Counted.of(slot)
        self._count(counted, 1)

    def release(self, uid: str, *, bound: bool = False) -> Slot | None:
        """bound: the pod is on that node now, so the room does not come free for others."""
        slot = self._by_uid.pop(uid, None)
        if slot is None:
            return None
        self._changed(slot.node_name)
        self._given_up = self._given_up or not bound
        for index, key in self._indexes(slot):
            del index[key][uid]
            if not index[key]:
                del index[key]
        self._count(self._counted.pop(uid), -1)
        return slot

    def _indexes(self, slot: Slot) -> Iterator[tuple[dict[str, dict[str, Slot]], str]]:
        yield self._by_node, slot.node_name
        yield self._by_group, slot.group
        if slot.to_come:
            yield self._to_come, slot.group
        if slot.firm:
            yield self._firm, slot.group

    def _count(self, counted: _Counted, by: int) -> None:
        if counted.priority is not None:
            _add(self._priorities, counted.priority, by)
        if counted.later_wave:
            _add(self.waves, counted.group, by)
        if counted.looks_at_others:
            _add(self.looking, counted.group, by)

    def move(self, uid: str, node_name: str) -> None:
        """The pod's slot is on this node now: its room on the node before comes free. Raises KeyError where the pod has none."""
        self.reserve(replace(self._by_uid[uid], node_name=node_name))

    def give(self, slot: Slot, info: PodInfo) -> None:
        """The slot is for this member now; the slot that it leaves, if it had one, is for the member that the other was for."""
        own = self.release(info.pod.uid, bound=True)
        self.release(slot.uid, bound=True)
        if own is None:
            self.reserve(replace(slot, pod_info=info, to_come=False))
            if slot.to_come and (rest := self._rest(slot, info)) is not None:
                self.reserve(replace(slot, pod_info=rest, id=0))
        else:
            self.reserve(slot.for_member(own))
            self.reserve(own.for_member(slot))

    def _rest(self, slot: Slot, info: PodInfo) -> PodInfo | None:
        """What the member leaves of the room that was kept; None where it is too little for another like it."""
        room = slot.pod_info.requests
        left = room.clone()
        left.subtract(info.requests)
        amounts = {name: left.amount(name) for name in (*planner.NATIVE, *room.scalar) if room.amount(name)}
        if any(amount < info.requests.amount(name) for name, amount in amounts.items()):
            return None
        return (
            planner.asking_for(slot.pod, f"{slot.uid}/{self.next_number()}", amounts) if any(amounts.values()) else None
        )

    def lowest_against(self, priority: int) -> int:
        """The lowest priority of the slots that hold against this one, but for firm ones: from there to here all see the same ones."""
        return min((known for known in self._priorities if known >= priority), default=ABOVE_ANY_PRIORITY)

    def given_up(self) -> bool:
        """Whether a slot has ended without a binding since this was last asked."""
        given_up, self._given_up = self._given_up, False
        return given_up


def _add(counts: Counter[T], key: T, by: int) -> None:
    """Keeps no key that counts 0."""
    counts[key] += by
    if not counts[key]:
        del counts[key]
