"""Gangs that are still being made: while their members keep coming all of the gang has its room, and those that have come are held.

A gang of many members takes seconds to be created. Without this its members are refused until the last one is there, and start only
then. With it the gang is planned when its first members come: a likeness stands for each that is missing, and what is found for it is
a slot for a member to come. Each member takes such a slot as it comes and is held in bind; the last one starts the gang. Room that is
held for a gang that may never be whole is bounded: by silence, by time, by a part of the room that there is, and once for each time
that the gang gathers. A complete gang or a single pod that finds no room ends it at once.
No counterpart upstream: scheduler-plugins and kube-scheduler's own gangs refuse a member until the quorum exists.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.framework.resource import Resource
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.dispatcher import needs_siblings
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.members_to_come.likenesses import asks_for_no_more, has_each_role, names_of
from extender.plugins.coscheduling.pod_conditions import same_refusal, was_refused
from extender.plugins.coscheduling.spec.keys import JOBSET_INDEX
from extender.plugins.coscheduling.spec.match_policy import MatchPolicy
from extender.plugins.coscheduling.spec.membership import foreign_gates
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.gang_sets import is_linked
from extender.plugins.coscheduling.state.group import Gathering, Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import comes_in_phases, needs
from extender.plugins.coscheduling.waits_for import brings_volumes

log = logging.getLogger(__name__)

PAUSES = 8.0  # of the usual length that are a silence: where members of many gangs are made in turn, some are much longer than others
FEW = 4  # members of which the pauses tell little: for as many pauses that of all gangs which gather counts


@dataclass(frozen=True, slots=True)
class EarlyStartLimits:
    """silence_seconds: since the newest member came. most_seconds: since the first one. part_of_room: of what nodes have left for such
    members, from 0 to 1, that all gangs that gather may have together."""

    silence_seconds: float
    most_seconds: float
    part_of_room: float

    def ends(self, gathering: Gathering, now: float, usual: float) -> bool:
        """Where members come one by one among those of many gangs, silence is a pause several times as long as those before it. usual:
        the pause between two members of a gang, of all gangs that gather."""
        pause = (gathering.newest - gathering.since + FEW * usual) / (gathering.came + FEW)
        silence = max(self.silence_seconds, PAUSES * pause)
        return now - gathering.newest >= silence or now - gathering.since >= self.most_seconds


@dataclass(slots=True)
class _Sum:
    """What pods ask for together, and how many they are."""

    requests: Resource = field(default_factory=Resource)
    pods: int = 0

    @classmethod
    def of(cls, infos: Iterable[PodInfo]) -> _Sum:
        total = cls()
        total.add(infos)
        return total

    def add(self, infos: Iterable[PodInfo]) -> None:
        for info in infos:
            self.requests.add(info.requests)
            self.pods += 1

    def covers(self, other: _Sum) -> bool:
        asked = other.requests
        return self.pods >= other.pods and all(
            self.requests.amount(name) >= asked.amount(name) for name in names_of(asked)
        )


class EarlyStarts:
    """The manager's lock guards everything here. limits: None where no gang starts early."""

    def __init__(self, manager: PodGroupManager, holds: Holds, limits: EarlyStartLimits | None) -> None:
        self._manager = manager
        self._holds = holds
        self._limits = limits
        self._keys: dict[str, None] = {}  # of groups that gather, the first to begin first
        self._leads = False  # by the last tick
        self._emptying: set[str] = set()  # keys of groups whose holds were ended here, until the bind calls end
        if limits is not None:
            manager.registry.on_changed = self._changed
            manager.registry.on_dropped.append(self._dropped)

    def _changed(self, group: Group, *, joined: bool) -> None:
        """Lock held."""
        spec, gathering, now = self._manager.specs.of(group), group.gathering, self._manager.clock()
        if gathering is None:
            if not self._leads:  # it may have waited for long, under another leader or before a restart
                group.gathered = bool(group.members)
            if not group.gathered and spec is not None and self._may_gather(group, spec):
                group.gathering = Gathering(now, now)
                self._keys[group.key] = None
                metrics.early_starts.labels("begun").inc()
            return
        if joined:
            gathering.newest = now
            gathering.came += 1
        if spec is not None and self._is_complete(group, spec):
            self._complete(group)
        elif spec is None or not self._may_gather(group, spec):
            self.end(group, "members of other kinds are missing")

    def _dropped(self, key: str) -> None:
        self._keys.pop(key, None)
        if (group := self._manager.groups.get(key)) is not None:
            group.gathering, group.gathered, group.gathered_in_vain = None, False, False

    def _may_gather(self, group: Group, spec: GroupSpec) -> bool:
        """Whether room may be kept for its missing members: only where they are plainly like those that there are."""
        if spec.invalid or not group.members or not needs(group, spec, group.members.keys()):
            return False
        if _has_begun(group) or comes_in_phases(group) or not self._is_by_itself(group, spec):
            return False
        newest = next(reversed(group.members.values())).info
        if not self._is_plain(spec, newest) or not _shows_its_roles(group, spec, newest):
            return False
        if group.gathering is not None:
            return True  # the others were looked at as they came
        return _asks_as_its_members(group, spec) and all(
            self._is_plain(spec, member.info) for member in group.members.values()
        )

    def _is_by_itself(self, group: Group, spec: GroupSpec) -> bool:
        """Whether no other group has a part in its start, and it leaves bind calls to others."""
        if is_linked(self._manager, group) or spec.match_policy is MatchPolicy.ONLY_WAITING:
            return False
        return spec.min_member <= self._manager.max_held_binds / 2

    def _is_plain(self, spec: GroupSpec, info: PodInfo) -> bool:
        """Whether the member comes as soon as it is created, and tells what others like it ask for. One that a foreign gate holds may come
        in an hour."""
        if needs_siblings(info) or brings_volumes(info.pod) or info.host_ports or self._is_held_back(info.pod):
            return False
        rank = spec.rank_of(info.pod)
        return rank is None or (rank[0] == 0 and rank[1] < spec.min_member and not JOBSET_INDEX.on(info.pod.metadata))

    def _is_held_back(self, pod: corev1.Pod) -> bool:
        return pod.gated and foreign_gates(pod, (self._manager.gate,))

    def _is_complete(self, group: Group, spec: GroupSpec) -> bool:
        """Whether all members that it needs are there, and may come."""
        if spec.invalid or needs(group, spec, group.members.keys()):
            return False
        return not self._is_held_back(next(reversed(group.members.values())).pod)

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

    def end(self, group: Group, reason: str) -> None:
        """It waits as any other that lacks members, and gathers no more until it has been complete, or empty. reason: for the log. Lock
        held."""
        manager = self._manager
        if group.gathering is None:
            return
        group.gathering.over = True
        group.gathering = None
        group.gathered = group.gathered_in_vain = bool(group.members)
        self._keys.pop(group.key, None)
        spec = manager.specs.of(group)
        there, minimum = len(group.members), spec.min_member if spec is not None else 0
        if group.planned:
            log.info("early start ended group=%s members=%d of=%d reason=%r", group.key, there, minimum, reason)
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

    def make_way(self, priority: int, asking: Sequence[PodInfo] = ()) -> bool:
        """Ends early starts of this priority or a lower one, for a complete gang or a single pod that finds no room. Returns whether room
        comes free by it, now or once held calls have ended. Lock held.

        asking: the members of the gang; early starts end until their room covers what these ask for. Empty: all end.
        """
        if asking and self.room_is_coming():
            return True  # the gang is planned again when those calls have ended
        asked, freed = _Sum.of(asking), _Sum()
        for group in self._first_to_give_way(priority):
            if asking and freed.covers(asked):
                break
            freed.add(slot.pod_info for slot in self._manager.slots.of_group(group.key))
            self.end(group, "others can start in its room")
        return bool(freed.pods)

    def _first_to_give_way(self, priority: int) -> list[Group]:
        """Those that gather, up to this priority: of the lowest priority first, then those that lack the largest part of their members."""
        line, known = self._manager.line, self._manager.groups
        groups = [group for key in list(self._keys) if (group := known.get(key)) is not None]
        lower = [group for group in groups if line.priority_of(group) <= priority]
        return sorted(lower, key=lambda each: (line.priority_of(each), self._part_there(each)))

    def _part_there(self, group: Group) -> float:
        """Of its minMember: those that are nearly complete start soon, and would have the most members refused."""
        spec = self._manager.specs.of(group)
        return len(group.members) / max(1, spec.min_member) if spec is not None else 0.0

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
            self._leads = may_plan
            now, usual = self._manager.clock(), self._usual_pause()
            for key in list(self._keys):
                group = self._manager.groups.get(key)
                gathering = group.gathering if group is not None else None
                if group is None or gathering is None:
                    self._keys.pop(key, None)
                elif not may_plan or limits.ends(gathering, now, usual):
                    self._manager.quarantine.for_gang(
                        key, "early-start", partial(self.end, group, "no member comes"), None
                    )

    def _usual_pause(self) -> float:
        """Seconds from one member to the next of its gang, on the average over all that gather. Lock held."""
        known = map(self._manager.groups.get, self._keys)
        gatherings = [group.gathering for group in known if group is not None and group.gathering is not None]
        came = sum(each.came for each in gatherings)
        return sum(each.newest - each.since for each in gatherings) / came if came else 0.0


def _has_begun(group: Group) -> bool:
    """A part of it has been: that is completed, or begins anew."""
    return bool(group.assigned or group.started or group.ended or group.whole_of or group.start is not None)


def _shows_its_roles(group: Group, spec: GroupSpec, newest: PodInfo) -> bool:
    """Whether of each role with a minimum a member is there, to which the missing ones are alike."""
    return not spec.roles.minima or (spec.rank_of(newest.pod) is None and has_each_role(group, spec))


def _asks_as_its_members(group: Group, spec: GroupSpec) -> bool:
    """Whether minResources is no more than what all members ask for if the missing ones are like those that there are."""
    return spec.min_resources is None or asks_for_no_more(group, spec, spec.min_resources)
