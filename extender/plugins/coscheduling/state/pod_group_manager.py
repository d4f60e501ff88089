"""The groups, their members and what was decided of them: the one place where the state of gangs lives.

Fed by pod and PodGroup events; asked and told by the Coscheduling plugin. A group exists while it has members,
held ones among them, or a PodGroup.
Each member has one state (member); whether a place is kept for it is in `slots`.
scheduler-plugins: pkg/coscheduling/core/core.go
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from operator import itemgetter
from typing import TypeVar

from cachetools import TTLCache

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE
from extender.client.interface import OwnPodGroup
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling.composites import Composites
from extender.plugins.coscheduling.quarantine import Quarantine
from extender.plugins.coscheduling.spec.group_annotations import names_groups
from extender.plugins.coscheduling.spec.in_tree import CompositeSpec, spec_of_in_tree
from extender.plugins.coscheduling.spec.membership import GroupLabels, GroupRef, foreign_gates
from extender.plugins.coscheduling.spec.pod_group import (
    GroupSpec,
    spec_of_labels,
    spec_of_pod_group,
    too_many_together,
)
from extender.plugins.coscheduling.spec.sources.foreign import KINDS, ForeignPodGroup, kind_of, spec_of_foreign
from extender.plugins.coscheduling.spec.sources.steps import started_early
from extender.plugins.coscheduling.state import group_members
from extender.plugins.coscheduling.state.denials import Denials
from extender.plugins.coscheduling.state.gang_queue import GangQueue
from extender.plugins.coscheduling.state.gang_set_index import GangSetIndex
from extender.plugins.coscheduling.state.group import Group, Standing, standing_of
from extender.plugins.coscheduling.state.group_members import KnownPods, counts_alike
from extender.plugins.coscheduling.state.member import Effect
from extender.plugins.coscheduling.state.quorum import NOTHING, Needs, in_phase, is_broken, left_behind, needs, unmade
from extender.plugins.coscheduling.state.slots import Slot, Slots, holds, is_for_shape_of
from extender.plugins.coscheduling.state.starts import follow_start, recall_once_whole, recall_start
from extender.plugins.coscheduling.waits_for import brings_volumes
from extender.plugins.pod_claims import claim_uses

MAX_NOTES = 100_000  # a note that is pushed out is only made again
T = TypeVar("T")
AT_ONCE = 50  # groups that are looked at under one hold of the lock
Order = tuple[bool, int, bool, datetime, str]
"""What gangs are sorted by; a key comes last."""
_FAR_FUTURE = datetime.max.replace(tzinfo=UTC)


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
        self.groups: dict[str, Group] = {}
        # by API group and key: every PodGroup of another system; one that no member of ours names is no group
        self.foreign: dict[str, dict[str, ForeignPodGroup]] = {kind: {} for kind in KINDS}
        self.slots = Slots()
        self.gang_set_index = GangSetIndex()
        self.composites = Composites()
        self.queue = GangQueue(clock)
        self.denied = Denials(denied_seconds, clock)
        self.quarantine = Quarantine(self.lock, clock)
        self.permitted: TTLCache[str, bool] = TTLCache(MAX_NOTES, permitted_seconds, timer=clock)
        self.on_dropped: list[Callable[[str], None]] = []  # told the keys of groups that are gone, under the lock
        # keys of gangs that ask what becomes of them when broken, and are -> since when
        self.broken: dict[str, float] = {}
        self.epoch = 0  # grows with every event that can help a denied group
        self.cluster_epoch = 0  # likewise, but not with what we give up ourselves
        # preemption/terminating_victims: UID -> victim, and until when
        self.terminating: dict[str, tuple[corev1.Pod, float]] = {}
        self._pods = KnownPods(clock)

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
            self._put(self.groups.get(ref.key) or self._new_group(ref.key), pod, ref, by_call=True)
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
        return self.groups.get(self._pods.group_of(pod.uid)) or self.find(pod)

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

    def _new_group(self, key: str) -> Group:
        group = self.groups[key] = Group(key, on_waiting=partial(self.queue.follow, key))
        return group

    def _put(self, group: Group, pod: corev1.Pod, ref: GroupRef, *, alike: bool = False, by_call: bool = False) -> None:
        new = pod.uid not in group.members
        effects = group_members.upsert(group, pod, ref, self.gate, alike=alike)
        self._pods.joins(pod.uid, group.key, by_call=by_call)
        if effects:
            self.carry_out(effects, group, pod.uid, node_name=pod.node_name)
        if group.spec is None and (group.planned or self.gang_set_index.names(group.key) or names_groups(pod.metadata)):
            self._asks_anew(group)
        if new:
            group.in_part = False
            if group.steps:  # fewer of its members come later: a plan without this one may refuse what fits with it
                self.epoch += 1
            if self.in_part_after_seconds:
                self._quiet_at[group.key] = self.clock() + self.in_part_after_seconds
            if self.slots.to_come(group.key):
                self._claim_slot(group, group.members[pod.uid].info)
            if group.whole_of:  # it waits for those that exist, of which there is one more
                self.follow_places(group)

    def pod_changed(self, pod: corev1.Pod) -> Group | None:
        """Takes in a pod of the watch; a deleting or terminal one counts no longer. Returns its group."""
        known = self._pods.group_of(pod.uid)
        member = self.groups[known].members[pod.uid] if known else None
        alike = member is not None and counts_alike(member.info.pod, pod)
        ref = member.ref if member is not None and alike else self.labels.group_of(pod)
        if pod.deleting or pod.terminal or pod.uid in self.terminating:
            return self.pod_gone(pod) or (self.groups.get(ref.key) if ref is not None else None)
        if known and (ref is None or ref.key != known):
            self._forget(pod.uid)
        if ref is None:
            return None
        group = self.groups.get(ref.key) or self._new_group(ref.key)
        self._put(group, pod, ref, alike=alike)
        if not known:
            group_members.restore(group, pod)
        return group

    def pod_gone(self, pod: corev1.Pod) -> Group | None:
        """Forgets a pod by UID, with its place. Returns the group that it was in."""
        self._pods.goes(pod.uid)
        return self._forget(pod.uid)

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
        self.carry_out(effects, group, uid)
        self.drop_if_empty(group)
        if self.gang_set_index.names(key) and group.spec is None:
            self._asks_anew(group)
        self.follow_places(group)
        return group

    def carry_out(
        self, effects: Iterable[Effect], group: Group, uid: str, *, node_name: str = "", until: float = 0.0
    ) -> None:
        """What a member's transition means for its slot; nothing else follows from the table. node_name: where the member is, or was to
        be bound. until: when a slot that is kept expires, in seconds of the clock."""
        for effect in effects:
            match effect:
                case Effect.RELEASE_PLACE:
                    self.slots.release(uid, bound=bool(node_name))
                case Effect.KEEP_PLACE:
                    self._keep_slot(group, uid, node_name, until)

    def _keep_slot(self, group: Group, uid: str, node_name: str, until: float) -> None:
        """For as long as after a plan; `follow_start` says whether it is firm."""
        member, slot = group.members.get(uid), self.slots.get(uid)
        if member is not None:
            slot = slot or Slot(member.info, group.key, node_name, 0.0, gang_priority=self.priority_of(group))
            self.slots.reserve(replace(slot, node_name=node_name, expires=max(slot.expires, until)))

    def _claim_slot(self, group: Group, info: PodInfo) -> None:
        """A member that has come is for a slot that was kept for members to come; where none will do there is one place too few."""
        slots = self.slots.to_come(group.key)
        found = next((slot for slot in slots if not info.pod.node_name and self.may_take(group, slot, info)), None)
        if found is not None:
            self.slots.give(found, info)
        elif slots:
            self.follow_places(group)

    def may_take(self, group: Group, slot: Slot, info: PodInfo) -> bool:
        """Whether a slot of its group that is for another member, or for one to come, will do for this one, which has none. The quorum
        has to be as good as before: no other role or slice, no lower priority, and what finishes a start is for those that it left
        behind."""
        spec = self.spec(group)
        if spec is None or info.pod.priority < slot.pod.priority:
            return False
        rank = spec.rank_of(info.pod) if slot.ranks is not None else None
        if slot.ranks is not None and (rank is None or rank[0] or rank[1] not in slot.ranks):
            return False
        if spec.roles.minima and spec.roles.role_of(info.pod) != spec.roles.role_of(slot.pod):
            return False
        if slot.firm and info.pod.uid not in self.left_behind(group):
            return False
        return holds(slot, info) if slot.to_come else is_for_shape_of(slot, info)

    def keep_for_members_to_come(self, group: Group, kept: Iterable[tuple[str, PodInfo]], until: float) -> None:
        """Slots for members that do not exist yet: (node name, a pod that asks for as much). A member of that role that is no larger
        has it as soon as it comes, and what it leaves is kept on; they go when their time, in seconds of the clock, is up."""
        for node_name, info in kept:
            priority = self.priority_of(group)
            self.slots.reserve(Slot(info, group.key, node_name, until, gang_priority=priority, to_come=True))
        self.follow_places(group)

    def pod_group_changed(self, pod_group: OwnPodGroup) -> Group:
        group = self.groups.get(pod_group.key) or self._new_group(pod_group.key)
        if group.pod_group is None:
            group.early = started_early(pod_group.status.conditions)
        group.put(pod_group)
        self._asks_anew(group)
        return group

    def pod_group_gone(self, pod_group: OwnPodGroup) -> Group | None:
        group = self.groups.get(pod_group.key)
        if group is not None:
            group.take(pod_group)
            self._asks_anew(group)
            self.drop_if_empty(group)
        return group

    def foreign_changed(self, pod_group: ForeignPodGroup) -> Group | None:
        """Returns the group that is what this object says from now on."""
        self.foreign[kind_of(pod_group)][pod_group.key] = pod_group
        group = self.groups.get(pod_group.key)
        if group is None or self.foreign_of(group) is not pod_group:
            return None
        self._asks_anew(group)
        return group

    def renew_foreign(self, pod_group: ForeignPodGroup) -> None:
        """It asks for the same as before."""
        self.foreign[kind_of(pod_group)][pod_group.key] = pod_group

    def foreign_gone(self, pod_group: ForeignPodGroup) -> Group | None:
        """Returns the group that was what this object says."""
        group = self.groups.get(pod_group.key)
        before = self.foreign_of(group) if group is not None else None
        known = self.foreign[kind_of(pod_group)].pop(pod_group.key, None)
        if group is None or before is None or before is not known:
            return None
        self._asks_anew(group)
        return group

    def foreign_of(self, group: Group) -> ForeignPodGroup | None:
        """The other system's PodGroup that its members name; our own and kube-scheduler's come before it."""
        if group.object is not None:
            return None
        named = {wish.kind for wish in group.wishes}
        found = (self.foreign[kind].get(group.key) for kind in KINDS if kind in named)
        return next((each for each in found if each is not None), None)

    def composite_changed(self, key: str, spec: CompositeSpec | None) -> list[str]:
        """None: it is gone. Returns the keys of the groups below it, which ask for something else now."""
        before = self.composites.groups_of(key)
        if spec is not None:
            self.composites.put(spec)
        else:
            self.composites.remove(key)
        return sorted({*before, *self.composites.groups_of(key)} & self.groups.keys())

    def tree_changed(self, key: str) -> Group | None:
        """A composite above the group has changed."""
        group = self.groups.get(key)
        if group is not None:
            self._asks_anew(group)
        return group

    def _asks_anew(self, group: Group) -> None:
        """What its object, or one of its pods, asks for has changed: the groups that it names count at once."""
        group.spec = None
        if self.spec(group) is None:
            self.gang_set_index.name(group.key, ())
            self._adopt(group.key, "")
        self.follow_places(group)

    def _adopt(self, key: str, parent: str) -> None:
        """The group names this composite. Where its tree becomes too large by it, or small enough, all its groups ask anew."""
        concerned = self.composites.adopt(key, parent)
        for each in concerned:
            if (group := self.groups.get(each)) is not None and each != key:
                group.spec = None
                self.queue.move_to_active((each,))

    def try_names_again(self, key: str) -> Group | None:
        """A group whose names were refused; None if they still are."""
        group = self.groups.get(key)
        if group is None or not self.gang_set_index.try_again(key):
            return None
        self._asks_anew(group)
        return group

    def drop_if_empty(self, group: Group) -> None:
        """A group of which nothing is left is forgotten, with its notes. While one that has gone is held still it is kept, as if made
        anew: those that come next are another gang of that name.
        """
        if group.members or group.object is not None:
            return
        if self.groups.get(group.key) is group:
            for slot in list(self.slots.to_come(group.key)):
                self.slots.release(slot.uid)
            self.gang_set_index.name(group.key, ())
            self._adopt(group.key, "")
            self.forget_notes(group.key)
            self.queue.forget(group.key)
            self.broken.pop(group.key, None)
            self.quarantine.forget(group.key)
            group.last_diagnosis = None
            for forget in self.on_dropped:
                forget(group.key)
            if not group.held:
                del self.groups[group.key]

    def on_capacity_freed(self, but: Collection[str] = ()) -> None:
        """Denials are void, those that are being decided on an older snapshot too. but: the gangs that gave that room up."""
        self.epoch += 1
        self.denied.clear(but)
        self.queue.move_all_to_active(but)

    def wake(self, keys: Collection[str]) -> None:
        """What has happened may help these groups: their denials are void, and they are planned again."""
        if keys:
            self.epoch += 1
        for key in keys:
            self.denied.pop(key)
        self.queue.move_to_active(keys)

    def volumes_changed(self, keys: Iterable[str], claims: Collection[str] | None = None) -> bool:
        """Likewise, for those of these groups that wait and whose members bring volumes. Returns whether there are any.

        claims: `namespace/name` of what has changed; None for what any volume may depend on.
        """
        found = [key for key in keys if key in self.queue.waiting and _brings(self.groups[key], claims)]
        self.wake(found)
        return bool(found)

    def forget_notes(self, key: str) -> None:
        self.denied.pop(key)
        self.permitted.pop(key, None)
        self.queue.forget_why(key)

    def spec(self, group: Group) -> GroupSpec | None:
        """What the group asks for; None where it names a PodGroup that does not exist."""
        if group.spec is None:
            group.standing = None
            group.spec = spec_of(group, self.foreign_of(group))
            if group.spec is not None:
                self.gang_set_index.name(group.key, group.spec.groups)
                self._adopt(group.key, group.spec.parent)
                if not group.spec.invalid and (wrong := self.composites.problem(group.key)):
                    group.spec = replace(group.spec, invalid=wrong)
                if number := self.gang_set_index.refused(group.key):
                    group.spec = too_many_together(group.spec, number)
        if group.spec is None or group.pod_group is None or not self.to_come_seconds:
            return group.spec
        return in_phase(group, group.spec)

    def note_in_part(self) -> None:
        """Incomplete gangs that no member has joined for so long are taken for ones that come in phases. Lock held."""
        now = self.clock()
        for key in [key for key, at in self._quiet_at.items() if at <= now]:
            del self._quiet_at[key]
            if (group := self.groups.get(key)) is not None:
                group.in_part = True
                group.changes += 1
                self.wake((key,))

    def siblings(self, group: Group, scheduler_name: str) -> AbstractSet[str]:
        """UIDs of the members that count towards the quorum: those on a node, and those that will come to this scheduler."""
        return group.assigned | group.of_scheduler.get(scheduler_name, set())

    def plannable(self, group: Group, scheduler_name: str) -> list[PodInfo]:
        """Members that can be given a place: pending, ours, and held back by no gate but ours."""
        return [
            info
            for info in group.pending()
            if info.pod.spec.scheduler_name == scheduler_name and not foreign_gates(info.pod, (self.gate,))
        ]

    def begun(self, group: Group) -> bool:
        """Whether a start of ours was cut short, and can be finished: a part of the gang runs, and is of no use until it is whole."""
        return bool(self.left_behind(group))

    def recall_start(self, group: Group) -> bool:
        """When we begin to lead: whether a start that the pods' records show was cut short, and can be finished."""
        spec = self.spec(group)
        recall_start(group, spec, self.wall())
        recall_once_whole(group, spec, self.foreign_of(group))
        self.follow_broken(group)
        return self.begun(group)

    def left_behind(self, group: Group) -> AbstractSet[str]:
        """The members that would complete a start that was cut short. Their places are firm, and no others."""
        spec = self.spec(group) if group.start is not None else None
        return left_behind(group, spec) if spec is not None else frozenset()

    def follow_start(self, group: Group) -> None:
        """Members came to nodes, or went: is the last start over, and which places does it take to finish it?"""
        firm = self.slots.firm_of(group.key)
        if group.start is None and not firm:
            return
        spec = self.spec(group)
        follow_start(group, spec)
        behind = left_behind(group, spec) if group.start is not None and spec is not None else frozenset()
        changed = (behind & self.slots.uids_of(group.key)) ^ firm
        for slot in filter(None, map(self.slots.get, changed)):
            self.slots.reserve(replace(slot, firm=not slot.firm))

    def order(self, group: Group) -> Order:
        """What has begun comes first, then priority, then what has not given up, then the age of the quorum, then the name."""
        standing = self.standing(group)
        since = standing.since or _FAR_FUTURE
        return not self.begun(group), -standing.priority, self.has_given_up(group), since, group.key

    def has_given_up(self, group: Group) -> bool:
        """Whether the gang, if it waits, has done so for longer than it asks for: it comes behind others of its priority."""
        spec = self.spec(group)
        if spec is None or spec.patience.give_up_after is None:
            return False
        since = self.standing(group).since
        return since is not None and (self.wall() - since).total_seconds() >= spec.patience.give_up_after

    def follow_broken(self, group: Group) -> None:
        """Members came to nodes, or left them."""
        spec = self.spec(group)
        if spec is None or spec.invalid or spec.patience.broken_after is None or not is_broken(group, spec):
            self.broken.pop(group.key, None)
        else:
            self.broken.setdefault(group.key, self.clock())

    def in_order(self, groups: Iterable[Group]) -> list[Group]:
        """The first comes first; without those that are set aside, and those that `order` raises at."""
        found = []
        for group in groups:
            order = self.quarantine.for_gang(group.key, "order", partial(self.order, group), None)
            if order is not None:
                found.append((order, group))
        return [group for _, group in sorted(found, key=itemgetter(0))]

    def priority_of(self, group: Group) -> int:
        """At which the gang is planned, preempts and is preempted."""
        return self.standing(group).priority

    def standing(self, group: Group) -> Standing:
        """The gang's priority and age; of groups that start together the lowest priority, and the age of the last quorum."""
        if group.key in self.composites.parents:
            return self._standing_in_tree(group, self.composites.root_of(group.key))
        keys = self.gang_set_index.sets.get(group.key)
        if keys is None or self.gang_set_index.was_whole(keys):
            return self._own_standing(group)
        found = [self._own_standing(each) for key in keys if (each := self.groups.get(key)) is not None]
        since = max((each.since or _FAR_FUTURE for each in found), default=_FAR_FUTURE)
        return Standing(min((each.priority for each in found), default=0), since)

    def _standing_in_tree(self, group: Group, root: str) -> Standing:
        """The widest composite's own priority, if it has one. Groups without a quorum yet make the others no younger."""
        started, spec = self.composites.has_started(root), self.composites.spec(root)
        keys = (group.key,) if started else self.composites.chosen(root) or self.composites.groups_of(root)
        found = [self._own_standing(each) for key in keys if (each := self.groups.get(key)) is not None]
        since = max((each.since for each in found if each.since is not None), default=None)
        own = spec.priority if spec is not None else None
        return Standing(min((each.priority for each in found), default=0) if own is None else own, since)

    def _own_standing(self, group: Group) -> Standing:
        spec = self.spec(group)
        if group.standing is None:
            group.standing = standing_of(group.members, group.priorities, spec)
        return group.standing

    def release_places(self, group: Group, uids: Iterable[str] | None = None) -> None:
        """Takes back the slots of these members, or of all. A member keeps its turn."""
        for uid in list(self.slots.uids_of(group.key) if uids is None else uids):
            slot = self.slots.release(uid)
            if slot is not None and (member := group.members.get(uid)) is not None:
                member.turn = slot.wave
        self.queue.forget_why(group.key)
        self.follow_places(group)

    def give_up_places(self, group: Group, keep: Collection[str] = ()) -> bool:
        """Takes back all slots but those of held members, and of the members to keep. Returns whether there were any."""
        uids = [
            place.uid
            for place in self.slots.of_group(group.key)
            if place.uid not in group.held and place.uid not in keep
        ]
        for uid in uids:
            self.slots.release(uid)
        for member in group.members.values():
            member.turn = None
        group.planned = False
        group.preempting = None
        for uid in uids:
            group.place_lost(uid)
        if uids:
            self.queue.forget_why(group.key)
        return bool(uids)

    def lose_places(self, group: Group, uids: Iterable[str]) -> None:
        """These members are to be planned again, beside the places that are still good. Where those are enough, it may start."""
        self.release_places(group, uids)
        self.forget_notes(group.key)
        self.queue.move_to_active((group.key,))

    def placed(self, group: Group) -> AbstractSet[str]:
        """Members with a place: on a node, held, or planned."""
        planned = self.slots.uids_of(group.key) & group.members.keys()
        return group.assigned | group.in_permit | group.starting | planned

    def lacks(self, group: Group, placed: AbstractSet[str]) -> Needs:
        """What the group still needs if these members have a place, beside the slots for members that are still to come."""
        spec = self.spec(group)
        if spec is None:
            return NOTHING
        to_come = [slot.pod for slot in self.slots.to_come(group.key)]
        return needs(group, spec, placed, to_come[: unmade(group, spec)])

    def follow_places(self, group: Group) -> None:
        """After places went, or the group asks for something else: without enough of them it is planned no more, but anew."""
        if not group.planned:
            return
        spec = self.spec(group)
        group.planned = spec is not None and not spec.invalid and not self.lacks(group, self.placed(group)).total
        if not group.planned and group.key in self.groups and group.waits_for_room():
            self.queue.move_to_active((group.key,))


def spec_of(group: Group, foreign: ForeignPodGroup | None) -> GroupSpec | None:
    """What its object asks for, with its pods' annotations where it has none; or, where there is no object, its pods."""
    beside = [wish.asked for wish in group.wishes if wish.asked]
    if group.pod_group is not None:
        return spec_of_pod_group(group.pod_group, beside=beside)
    if group.in_tree is not None:
        return spec_of_in_tree(group.in_tree, beside)
    if foreign is not None:
        return spec_of_foreign(foreign, beside)
    lightweight = [(each.pod, each.ref) for each in group.members.values() if each.ref.lightweight]
    return spec_of_labels(group.key, lightweight) if lightweight else None


def _brings(group: Group, claims: Collection[str] | None) -> bool:
    if claims is None:
        return any(brings_volumes(each.pod) for each in group.members.values())
    pods = (group.members[uid].pod for uid in group.claiming)
    return any(f"{pod.namespace}/{use.name}" in claims for pod in pods for use in claim_uses(pod))


def in_parts(keys: Iterable[T]) -> Iterator[list[T]]:
    """For a walk over all groups: as many as may be looked at under one hold of the lock."""
    rest = iter(keys)
    while part := list(islice(rest, AT_ONCE)):
        yield part
