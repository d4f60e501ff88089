"""The groups, their members and what was decided of them: the one place where the state of gangs lives.

Fed by pod and PodGroup events; asked and told by the Coscheduling plugin. What is here says which pod is in which group; each
other idea has a class of its own in `manager/`, and all of them are reached by the manager.
Each member has one state (member); whether a place is kept for it is in `slots`.
scheduler-plugins: pkg/coscheduling/core/core.go
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE
from extender.client.short_steps import pause
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.quarantine import Quarantine
from extender.plugins.coscheduling.spec.group_annotations import names_groups
from extender.plugins.coscheduling.spec.membership import GroupLabels, GroupRef, foreign_gates
from extender.plugins.coscheduling.state import group_members
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import KnownPods, counts_alike
from extender.plugins.coscheduling.state.manager.begun import Begun
from extender.plugins.coscheduling.state.manager.line import Line
from extender.plugins.coscheduling.state.manager.notes import Notes
from extender.plugins.coscheduling.state.manager.objects import Objects
from extender.plugins.coscheduling.state.manager.places import Places
from extender.plugins.coscheduling.state.manager.registry import GroupRegistry
from extender.plugins.coscheduling.state.manager.specs import Specs
from extender.plugins.coscheduling.state.manager.starts_under_way import StartsUnderWay
from extender.plugins.coscheduling.state.slots import Slots

T = TypeVar("T")
AT_ONCE = 50  # groups that are looked at under one hold of the lock,
PART_SECONDS = 0.001  # but for what one of them takes


def wall_clock() -> datetime:
    return datetime.now(UTC)


class PodGroupManager:
    """All groups. `lock` is held for dictionary work only, never over I/O, planning or another lock but those of waiting pods."""

    def __init__(
        self,
        labels: GroupLabels,
        *,
        denied_seconds: float,
        permitted_seconds: float,
        clock: Callable[[], float],
        gate: str = GANG_GATE,
        to_come_seconds: float = 0.0,
        in_part_after_seconds: float = 0.0,
        wall: Callable[[], datetime] = wall_clock,
    ) -> None:
        self.lock = threading.RLock()  # guards everything below
        self.labels = labels
        self.gate = gate
        self.clock = clock
        self.wall = wall
        # how long room is kept for members that are made later; 0: no gang starts without them
        self.to_come_seconds = to_come_seconds
        # how long after its newest member came an incomplete gang is taken for one that comes in phases; 0: never
        self.in_part_after_seconds = in_part_after_seconds
        self._quiet_at: dict[str, float] = {}  # keys of groups that members have joined -> when that is
        self.max_held_binds = math.inf  # the most bind calls that are held at a time
        # preemption/terminating_victims: UID -> victim, the key of its group, and until when
        self.terminating: dict[str, tuple[corev1.Pod, str, float]] = {}
        # the same by group: key -> UID -> node. They count no more, but what comes after one that stays has to be beside it
        self.nodes_of_victims: dict[str, dict[str, str]] = {}
        self.groups: dict[str, Group] = {}
        self._pods = KnownPods(clock)
        self.slots = Slots()
        self.quarantine = Quarantine(self.lock, clock)
        self.notes = Notes(self.groups, denied_seconds=denied_seconds, permitted_seconds=permitted_seconds, clock=clock)
        self.queue, self.denied, self.permitted = self.notes.queue, self.notes.denied, self.notes.permitted
        self.specs = Specs(self.groups, self.queue, to_come_seconds=to_come_seconds)
        self.gang_set_index, self.composites = self.specs.gang_set_index, self.specs.composites
        self.begun = Begun(self.specs, self.slots, clock=clock, wall=wall)
        self.line = Line(self.groups, self.specs, self.begun, self.quarantine, wall)
        self.places = Places(self.groups, self.specs, self.begun, self.line, self.notes, self.slots)
        self.registry = GroupRegistry(
            self.groups, self.specs, self.begun, self.places, self.notes, self.slots, self.quarantine
        )
        self.objects = Objects(self.groups, self.registry, self.specs)
        self.starts = StartsUnderWay(wall)
        self.registry.on_dropped.append(self.starts.forget)

    def group_of(self, pod: corev1.Pod) -> Group | None:
        """The pod's group, with the pod in it: a verb may see a pod before the watch does.

        A pod that is gone, or that the watch shows in another group, is put into none: it is not among the members of what is
        returned, which is an empty group that is not kept where nothing is left of its own.
        """
        ref = self.labels.group_of(pod)
        if ref is None:
            return self._as_watched(pod)
        if self._pods.may_join_by_call(pod, ref.key):
            self._forget(pod.uid)
            group = self.registry.get_or_new(ref.key)
            self._put(group, pod, ref, by_call=True)
            self._follow_start(group)
        return self.groups.get(ref.key) or Group(ref.key)

    def find(self, pod: corev1.Pod) -> Group | None:
        """The pod's group as it is; a pod that is gone is not brought back by asking."""
        ref = self.labels.group_of(pod)
        return self.groups.get(ref.key) if ref is not None else self._as_watched(pod)

    def _as_watched(self, pod: corev1.Pod) -> Group | None:
        """A kube-scheduler that is older than a field of pods, such as schedulingGroup, sends them without it."""
        return self.groups.get(self._pods.group_of(pod.uid))

    def group_known_of(self, pod: corev1.Pod) -> Group | None:
        """The group that the watch or a call has shown the pod in; of a pod that is not known, the one that it names."""
        return self.groups.get(self._pods.groups.get(pod.uid, "")) or self.find(pod)

    def key_of(self, pod: corev1.Pod) -> str:
        """The key of the pod's group, which need not be known yet; empty for a pod of no group. Takes the lock."""
        ref = self.labels.group_of(pod)
        if ref is not None:
            return ref.key
        with self.lock:
            return self._pods.group_of(pod.uid)

    def groups_with(self, uids: Iterable[str]) -> list[Group]:
        """Those that one of these pods is a member of, or is held for. Lock held."""
        keys = {key for uid in uids for key in (self._pods.group_of(uid), self._pods.holder_of(uid))}
        return [self.groups[key] for key in sorted(keys) if key in self.groups]

    def is_member(self, uid: str) -> bool:
        return uid in self._pods

    def is_nominated(self, uid: str) -> bool:
        """Whether the pod is a member that we have sent to its place, and not withdrawn since."""
        group = self.groups.get(self._pods.group_of(uid))
        return group is not None and group.members[uid].nomination is not None

    def holder_of(self, pod: corev1.Pod) -> Group | None:
        """The group that holds the pod, or has started it, whatever the pod says by now; else its group."""
        key = self._pods.holder_of(pod.uid)
        return self.groups.get(key) if key else self.find(pod)

    def hold_is_over(self, group: Group, uid: str) -> None:
        """Its bind call waits no longer."""
        group.end_hold(uid)
        self._pods.hold_is_over(uid, group.key)

    def unseen(self) -> list[corev1.Pod]:
        """Members that a call has shown and, for too long, no watch. While one is held its call vouches for it."""
        groups = {uid: self.groups[self._pods.group_of(uid)] for uid in self._pods.unseen()}
        return [group.members[uid].pod for uid, group in groups.items() if uid not in group.held]

    def _put(self, group: Group, pod: corev1.Pod, ref: GroupRef, *, alike: bool = False, by_call: bool = False) -> None:
        new = pod.uid not in group.members
        try:
            effects = group_members.upsert(group, pod, ref, self.gate, alike=alike)
        except Exception:
            self.registry.drop_if_empty(group)  # it may have been made for this member
            raise
        self._pods.joins(pod.uid, group.key, by_call=by_call)
        if effects:
            self.places.carry_out(effects, group, pod.uid, node_name=pod.node_name)
        if group.spec is None and (group.planned or self.gang_set_index.names(group.key) or names_groups(pod.metadata)):
            self.registry.asks_anew(group)
        if new:
            if group.in_part:
                group.taken_for_in_part(False)
            if group.steps:  # fewer of its members come later: a plan without this one may refuse what fits with it
                self.notes.epoch += 1
            if self.in_part_after_seconds:
                self._quiet_at[group.key] = self.clock() + self.in_part_after_seconds
            if self.slots.to_come(group.key):
                self.places.claim(group, group.members[pod.uid].info)
            if group.whole_of:  # it waits for those that exist, of which there is one more
                self.places.follow(group)
            self.registry.on_changed(group, joined=True)

    def pod_changed(self, pod: corev1.Pod) -> Group | None:
        """Takes in a pod of the watch; a deleting or terminal one counts no longer. Returns its group."""
        known = self._pods.groups.get(pod.uid, "")
        member = self.groups[known].members[pod.uid] if known else None
        alike = member is not None and counts_alike(member.info.pod, pod)
        ref = member.ref if member is not None and alike else self.labels.group_of(pod)
        if pod.deleting or pod.terminal or pod.uid in self.terminating:
            return self.pod_gone(pod) or (self.groups.get(ref.key) if ref is not None else None)
        if known and (ref is None or ref.key != known):
            self._forget(pod.uid)
        if ref is None:
            return None
        group = self.groups.get(ref.key) or self.registry.get_or_new(ref.key)
        self._put(group, pod, ref, alike=alike)
        if not known:
            group_members.restore(group, pod)
        return group

    def member_stays(self, group: Group, pod: corev1.Pod) -> None:
        """Takes in a member of the watch that counts as before, by `counts_alike`, and is not going."""
        self._put(group, pod, group.members[pod.uid].ref, alike=True)

    def pod_gone(self, pod: corev1.Pod) -> Group | None:
        """Forgets a pod by UID, with its place. Returns the group that it was in."""
        self._pods.goes(pod.uid)
        return self._forget(pod.uid)

    def is_gone(self, pod: corev1.Pod) -> bool:
        """Whether the watch has shown that it goes, or has gone, or a victim was told to."""
        return self._pods.is_gone(pod.uid)

    def comes_back(self, uid: str) -> None:
        """A pod that was taken for gone is none: what is said of it next counts."""
        self._pods.comes_back(uid)

    def _forget(self, uid: str) -> Group | None:
        key = self._pods.group_of(uid)
        if not key:
            return None
        group = self.groups[key]
        effects = group_members.forget(group, uid)
        self._pods.leaves(uid, held=uid in group.held)
        self.places.carry_out(effects, group, uid)
        self.registry.drop_if_empty(group)
        if self.gang_set_index.names(key) and group.spec is None:
            self.registry.asks_anew(group)
        self._follow_start(group)
        self.places.follow(group)
        return group

    def _follow_start(self, group: Group) -> None:
        """After a call, which may show a member on its node, or in another group; after an event its handler does it."""
        if group.start is not None and group.key in self.groups:
            self.begun.follow(group, self.specs.of(group))

    def note_in_part(self) -> list[str]:
        """Incomplete gangs that no member has joined for so long are taken for ones that come in phases. Returns their keys. Lock held."""
        now, found = self.clock(), list[str]()
        for key in [key for key, at in self._quiet_at.items() if at <= now]:
            del self._quiet_at[key]
            if (group := self.groups.get(key)) is not None:
                group.taken_for_in_part(True)
                self.notes.wake((key,))
                found.append(key)
        return found

    def plannable(self, group: Group, scheduler_name: str) -> list[PodInfo]:
        """Members that can be given a place: pending, ours, and held back by no gate but ours."""
        return [
            info
            for info in group.pending()
            if info.pod.spec.scheduler_name == scheduler_name
            and not (info.pod.gated and foreign_gates(info.pod, (self.gate,)))
        ]


def in_parts(keys: Iterable[T]) -> Iterator[Iterator[T]]:
    """For a walk over all groups: as many as may be looked at under one hold of the lock, fewer where that takes long. Each part is to be
    read to its end, once, before the next."""
    rest = iter(keys)
    for first in rest:
        yield _part(first, rest)


def _part(first: T, rest: Iterator[T]) -> Iterator[T]:
    until = time.perf_counter() + PART_SECONDS
    yield first
    for _ in range(AT_ONCE - 1):
        if time.perf_counter() >= until:
            return
        try:
            yield next(rest)
        except StopIteration:
            return


def by_turns(keys: Iterable[T]) -> Iterator[Iterator[T]]:
    """The same parts; between two of them answers have their turn. No lock held."""
    for number, part in enumerate(in_parts(keys)):
        if number:
            pause()
        yield part
