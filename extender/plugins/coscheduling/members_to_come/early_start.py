"""Gangs that are still being made: while their members keep coming all of the gang has its room, and those that have come are held.

A gang of many members takes seconds to be created. Without this its members are refused until the last one is there, and start only
then. With it the gang is planned when its first members come: a likeness stands for each that is missing, and what is found for it is
a slot for a member to come. Each member takes such a slot as it comes and is held in bind; the last one starts the gang. Room that is
held for a gang that may never be whole is bounded: by silence, by time, by a part of the room that there is, and once for each time
that the gang gathers. A complete gang or a single pod that finds no room ends it at once.
No counterpart upstream: scheduler-plugins and kube-scheduler's own gangs refuse a member until the quorum exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice

from msgspec import structs

from extender import metrics
from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dispatch.dispatcher import needs_siblings
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.pod_conditions import same_refusal, was_refused
from extender.plugins.coscheduling.spec.keys import JOBSET_INDEX
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.gang_sets import is_linked
from extender.plugins.coscheduling.state.group import Gathering, Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.waits_for import brings_volumes

PAUSES = 4.0  # of the usual length that are a silence
LIKENESS = "to-come/"  # what the UIDs of likenesses begin with, and no pod's


@dataclass(frozen=True, slots=True)
class EarlyStartLimits:
    """silence_seconds: since the newest member came. most_seconds: since the first one. part_of_room: of what nodes have left for such
    members, from 0 to 1, that all gangs that gather may have together."""

    silence_seconds: float
    most_seconds: float
    part_of_room: float

    def ends(self, gathering: Gathering, now: float) -> bool:
        """Where members come one by one among those of many gangs, silence is a pause several times as long as those before it."""
        silence = max(self.silence_seconds, PAUSES * gathering.pace)
        return now - gathering.newest >= silence or now - gathering.since >= self.most_seconds


class EarlyStarts:
    """The manager's lock guards everything here. limits: None where no gang starts early."""

    def __init__(self, manager: PodGroupManager, holds: Holds, limits: EarlyStartLimits | None) -> None:
        self._manager = manager
        self._holds = holds
        self._limits = limits
        self._keys: dict[str, None] = {}  # of groups that gather, the first to begin first
        self._emptying: set[str] = set()  # keys of groups whose holds were ended here, until their calls have
        if limits is not None:
            manager.registry.on_changed = self._changed
            manager.registry.on_dropped.append(self._dropped)

    def _changed(self, group: Group, *, joined: bool) -> None:
        """Lock held."""
        spec, gathering, now = self._manager.specs.of(group), group.gathering, self._manager.clock()
        if gathering is None:
            if not group.gathered and spec is not None and self._may_gather(group, spec):
                group.gathering = Gathering(now, now)
                self._keys[group.key] = None
                metrics.early_starts.labels("begun").inc()
            return
        if joined:
            gathering.newest = now
            gathering.came += 1
        if spec is not None and not spec.invalid and len(group.members) >= spec.min_member:
            self._complete(group)
        elif spec is None or not self._may_gather(group, spec):
            self.end(group)

    def _dropped(self, key: str) -> None:
        self._keys.pop(key, None)
        if (group := self._manager.groups.get(key)) is not None:
            group.gathering, group.gathered = None, False

    def _may_gather(self, group: Group, spec: GroupSpec) -> bool:
        """Only where the missing members are plainly like the first: of a gang with roles or phases they are not, and where members
        look at each other a likeness without its pod tells too little."""
        if spec.invalid or not 0 < len(group.members) < spec.min_member:
            return False
        if group.assigned or group.started or group.ended or group.whole_of or group.start is not None:
            return False  # a part of it has been: that is completed, or begins anew
        if group.steps or group.in_part or group.early or spec.min_member > self._manager.max_held_binds / 2:
            return False
        if spec.roles.minima or spec.min_resources is not None or is_linked(self._manager, group):
            return False
        if spec.match_policy is MatchPolicy.ONLY_WAITING:
            return False
        info = next(iter(group.members.values())).info
        if needs_siblings(info) or brings_volumes(info.pod) or info.host_ports:
            return False
        rank = spec.rank_of(info.pod)
        return rank is None or (rank[0] == 0 and rank[1] < spec.min_member and not JOBSET_INDEX.on(info.pod.metadata))

    def _complete(self, group: Group) -> None:
        """All members are there, and it is a gang as any other. What is still kept for members to come was for others than came."""
        group.gathering = None
        group.gathered = True
        self._keys.pop(group.key, None)
        metrics.early_starts.labels("complete").inc()
        self.release_surplus(group)
        if not group.planned:
            self._manager.queue.move_to_active((group.key,))

    def release_surplus(self, group: Group) -> None:
        """Of a gang that gathers no more, and of which no phase is to come. Lock held."""
        surplus = [slot.uid for slot in self._manager.slots.to_come(group.key)]
        if surplus and group.gathering is None:
            self._manager.places.release(group, surplus)
            self._manager.notes.on_capacity_freed([group.key])

    def end(self, group: Group) -> None:
        """It waits as any other that lacks members, and gathers no more until it has been complete, or empty. Lock held."""
        manager = self._manager
        if group.gathering is None:
            return
        group.gathering.over = True
        group.gathering = None
        group.gathered = bool(group.members)
        self._keys.pop(group.key, None)
        spec = manager.specs.of(group)
        there, minimum = len(group.members), spec.min_member if spec is not None else 0
        manager.places.give_up(group)
        for uid in list(group.in_permit):
            text = messages.not_enough_siblings(group.members[uid].pod.name, there, minimum)
            self._holds.reject(group, uid, text)
        if group.held:
            self._emptying.add(group.key)
        manager.notes.forget(group.key)
        manager.queue.move_to_active((group.key,))
        manager.notes.on_capacity_freed([group.key])
        metrics.early_starts.labels("given_up").inc()

    def make_way(self, priority: int) -> bool:
        """For a complete gang, or a single pod, of this priority that finds no room. Returns whether room comes free by it, now or
        as soon as the calls that are held have ended. Lock held."""
        groups = [group for key in list(self._keys) if (group := self._manager.groups.get(key)) is not None]
        ended = [group for group in groups if self._manager.line.priority_of(group) <= priority]
        had_room = any(group.held or self._manager.slots.of_group(group.key) for group in ended)
        for group in ended:
            self.end(group)
        return had_room

    def makes_way_for(self, pod: corev1.Pod) -> bool:
        """Likewise, for a pod that kube-scheduler has found no room for. One of a gang that is not complete takes it from none. Lock
        held."""
        group = self._manager.find(pod) if self._keys else None
        spec = self._manager.specs.of(group) if group is not None else None
        if not self._keys or (group is not None and (spec is None or len(group.members) < spec.min_member)):
            return False
        return self.make_way(pod.priority)

    def room_is_coming(self) -> bool:
        """Whether calls that were held for a gang that has gathered in vain are still to end: until then no pod need be evicted. Lock
        held."""
        groups = self._manager.groups
        self._emptying = {key for key in self._emptying if key in groups and groups[key].ending}
        return bool(self._emptying)

    def is_small_enough(self, group: Group, spec: GroupSpec, capacity: int) -> bool:
        """Whether it may gather beside the others. capacity: how many such members the nodes have room for now. Lock held."""
        if self._limits is None:
            return False
        others = sum(
            each.min_member
            for key in self._keys
            if key != group.key
            and (other := self._manager.groups.get(key)) is not None
            and other.planned
            and (each := self._manager.specs.of(other)) is not None
        )
        return spec.min_member + others <= self._limits.part_of_room * (capacity + others)

    # What happens

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """A single pod that kube-scheduler finds no room for has it, where a gang that gathers holds it."""
        if self._limits is None or new is None or new.node_name or not was_refused(new):
            return
        if old is not None and same_refusal(old, new):
            return
        with self._manager.lock:
            if self._manager.labels.group_of(new) is None:
                self.makes_way_for(new)

    def tick(self, may_plan: bool) -> None:
        """About once a second. may_plan: whether we lead still."""
        limits = self._limits
        if limits is None:
            return
        with self._manager.lock:
            now = self._manager.clock()
            for key in list(self._keys):
                group = self._manager.groups.get(key)
                gathering = group.gathering if group is not None else None
                if group is None or gathering is None:
                    self._keys.pop(key, None)
                elif not may_plan or limits.ends(gathering, now):
                    self._manager.quarantine.for_gang(key, "early-start", partial(self.end, group), None)


def with_room_to_come(placement: planner.Placement, request: planner.Request) -> planner.Placement:
    """What was found for likenesses is room that is kept for members to come."""
    return placement.keeping(info for info in request.members if info.pod.uid.startswith(LIKENESS))


def likenesses(manager: PodGroupManager, group: Group, number: int) -> Sequence[PodInfo]:
    """So many members that are still to be made, like the newest that there is, of the ranks that are missing; nothing where it does not
    gather. Lock held."""
    spec = manager.specs.of(group)
    if group.gathering is None or number <= 0 or not group.members or spec is None:
        return ()
    pod = next(reversed(group.members.values())).pod
    index = spec.index_key_of(pod)
    there = {spec.rank_of(pod) for pod in (*(each.pod for each in group.members.values()), *_to_come(manager, group))}
    ranks = (rank for rank in count() if (0, rank) not in there)
    found = []
    for rank in islice(ranks, number):
        uid = f"{LIKENESS}{group.key}/{manager.slots.next_number()}"
        labels = {**pod.metadata.labels, **({str(index): str(rank)} if index is not None else {})}
        metadata = structs.replace(pod.metadata, name="to-come", uid=uid, labels=labels, annotations={})
        found.append(PodInfo(structs.replace(pod, metadata=metadata)))
    return found


def _to_come(manager: PodGroupManager, group: Group) -> Iterator[corev1.Pod]:
    return (slot.pod for slot in manager.slots.to_come(group.key))
