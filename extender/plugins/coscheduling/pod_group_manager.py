"""The groups, their members and what was decided of them: the one place where the state of gangs lives.

Fed by pod and PodGroup events; asked and told by the Coscheduling plugin. A group exists while it has members or a PodGroup.
scheduler-plugins: pkg/coscheduling/core/core.go

A member's strongest state counts, in this order: assigned (the API says so) > committed (we bound it, the watch has
not said so yet) > held (its bind call waits in Permit) > planned (the ledger has its place) > pending.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from operator import itemgetter

from cachetools import TTLCache

from extender.api import corev1
from extender.api.schedulingv1alpha1 import GANG_GATE, PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import group_members
from extender.plugins.coscheduling.denials import Denials
from extender.plugins.coscheduling.gang_groups import GangGroups
from extender.plugins.coscheduling.gang_queue import GangQueue
from extender.plugins.coscheduling.group import Group
from extender.plugins.coscheduling.ledger import Ledger
from extender.plugins.coscheduling.quarantine import Quarantine
from extender.plugins.coscheduling.quorum import in_part, needs
from extender.plugins.coscheduling.spec.group_annotations import names_groups
from extender.plugins.coscheduling.spec.membership import GroupLabels, GroupRef, foreign_gates
from extender.plugins.coscheduling.spec.pod_group import (
    GroupSpec,
    spec_of_in_tree,
    spec_of_labels,
    spec_of_pod_group,
)

MAX_NOTES = 100_000  # a note that is pushed out is only made again
GONE_SECONDS = 300.0  # how long a late call cannot bring a deleted pod back
UNSEEN_SECONDS = 30.0  # how long a pod counts that only a call has shown, and no watch
AT_ONCE = 50  # groups that are looked at under one hold of the lock
Order = tuple[bool, int, datetime, str]
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
        wall: Callable[[], datetime] = wall_clock,
    ) -> None:
        self.lock = threading.RLock()  # guards everything below
        self.labels = labels
        self.gate = gate
        self.clock = clock
        self.wall = wall
        self.groups: dict[str, Group] = {}
        self.ledger = Ledger()
        self.gang_groups = GangGroups()
        self.queue = GangQueue(clock)
        self.denied = Denials(denied_seconds, clock)
        self.quarantine = Quarantine(self.lock, clock)
        self.permitted: TTLCache[str, bool] = TTLCache(MAX_NOTES, permitted_seconds, timer=clock)
        self.epoch = 0  # grows with every event that can help a denied group
        self.cluster_epoch = 0  # likewise, but not with what we give up ourselves
        self.leaving: dict[str, tuple[corev1.Pod, float]] = {}  # preemption/leaving's: UID -> victim, and until when
        self._group_by_uid: dict[str, str] = {}
        self._gone: TTLCache[str, bool] = TTLCache(MAX_NOTES, GONE_SECONDS, timer=clock)
        self._unseen: dict[str, float] = {}  # UID -> until when the watch has to show it

    def group_of(self, pod: corev1.Pod) -> Group | None:
        """The pod's group, made if need be, with the pod in it: a verb may see a pod before the watch does."""
        ref = self.labels.group_of(pod)
        if ref is None:
            return self._as_watched(pod)
        group = self._group(ref.key)
        if pod.uid not in group.members and not pod.deleting and not pod.terminal and pod.uid not in self._gone:
            self._put(group, pod, ref)
            self._unseen[pod.uid] = self.clock() + UNSEEN_SECONDS
        return group

    def find(self, pod: corev1.Pod) -> Group | None:
        """The pod's group as it is; a pod that is gone is not brought back by asking."""
        ref = self.labels.group_of(pod)
        return self.groups.get(ref.key) if ref is not None else self._as_watched(pod)

    def _as_watched(self, pod: corev1.Pod) -> Group | None:
        """A kube-scheduler that is older than a field of pods, such as schedulingGroup, sends them without it."""
        return self.groups.get(self._group_by_uid.get(pod.uid, ""))

    def key_of(self, pod: corev1.Pod) -> str:
        """The key of the pod's group, which need not be known yet; empty for a pod of no group."""
        ref = self.labels.group_of(pod)
        return ref.key if ref is not None else self._group_by_uid.get(pod.uid, "")

    def is_member(self, uid: str) -> bool:
        return uid in self._group_by_uid

    def prune(self) -> None:
        """Forgets pods that a call has shown and no watch since."""
        now = self.clock()
        for uid in [uid for uid, until in self._unseen.items() if until <= now]:
            del self._unseen[uid]
            group = self.groups.get(self._group_by_uid.get(uid, ""))
            if group is not None and uid in group.members and uid not in group.held:
                self._forget(uid)

    def _group(self, key: str) -> Group:
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group(key)
        return group

    def _put(self, group: Group, pod: corev1.Pod, ref: GroupRef) -> None:
        group_members.put(group, pod, ref, self.gate)
        if ref.lightweight and names_groups(pod.metadata):
            self.spec(group)  # whom it names counts at once
        self._group_by_uid[pod.uid] = group.key

    def pod_changed(self, pod: corev1.Pod) -> Group | None:
        """Takes in a pod of the watch; a deleting or terminal one counts no longer. Returns its group."""
        ref = self.labels.group_of(pod)
        self._unseen.pop(pod.uid, None)
        known = self._group_by_uid.get(pod.uid)
        if known is not None and (ref is None or ref.key != known):
            self._forget(pod.uid)
        if ref is None:
            return None
        group = self._group(ref.key)
        if pod.deleting or pod.terminal or pod.uid in self.leaving:
            self.pod_gone(pod)
            return group
        self._put(group, pod, ref)
        if known is None:
            group_members.recall(group, pod)
        if pod.node_name:
            group_members.arrived(group, pod.uid)
            self.ledger.release(pod.uid, bound=True)
        return group

    def pod_gone(self, pod: corev1.Pod) -> Group | None:
        """Forgets a pod by UID, with its place. Returns the group that it was in."""
        self._gone[pod.uid] = True
        self._unseen.pop(pod.uid, None)
        return self._forget(pod.uid)

    def comes_back(self, uid: str) -> None:
        """A pod that was taken for gone is none: what is said of it next counts."""
        self._gone.pop(uid, None)

    def _forget(self, uid: str) -> Group | None:
        key = self._group_by_uid.pop(uid, None)
        if key is None:
            return None
        group = self.groups[key]
        group_members.forget(group, uid)
        self.ledger.release(uid)
        self.drop_if_empty(group)
        return group

    def pod_group_changed(self, pod_group: PodGroup) -> Group:
        group = self._group(pod_group.key)
        group.pod_group = pod_group
        group.spec = None
        self.spec(group)  # whom it names counts at once
        return group

    def pod_group_gone(self, pod_group: PodGroup) -> Group | None:
        group = self.groups.get(pod_group.key)
        if group is not None:
            group.pod_group = None
            self._object_gone(group)
        return group

    def in_tree_changed(self, pod_group: InTreePodGroup) -> Group:
        group = self._group(pod_group.key)
        group.in_tree = pod_group
        group.spec = None
        self.spec(group)
        return group

    def in_tree_gone(self, pod_group: InTreePodGroup) -> Group | None:
        group = self.groups.get(pod_group.key)
        if group is not None:
            group.in_tree = None
            self._object_gone(group)
        return group

    def _object_gone(self, group: Group) -> None:
        group.spec = None
        if self.spec(group) is None:
            self.gang_groups.name(group.key, ())
        self.drop_if_empty(group)

    def drop_if_empty(self, group: Group) -> None:
        """A group of which nothing is left is forgotten, with its notes."""
        if not group.members and not group.held and group.pod_group is None and group.in_tree is None:
            self.groups.pop(group.key, None)
            self.gang_groups.name(group.key, ())
            self.forget_notes(group.key)
            self.queue.forget(group.key)
            self.quarantine.forget(group.key)

    def room_came_free(self, but: Collection[str] = ()) -> None:
        """Denials are void, those that are being decided on an older snapshot too. but: who gave that room up."""
        self.epoch += 1
        self.denied.clear(but)
        self.queue.active.update(
            key for key, each in self.groups.items() if (each.refused or each.gated) and key not in but
        )

    def volumes_changed(self) -> bool:
        """Likewise, for groups whose members bring volumes. Returns whether one of them waits. Lock held."""
        waiting = [
            group
            for group in self.groups.values()
            if (group.refused or group.gated) and any(info.pod.spec.volumes for info in group.members.values())
        ]
        if waiting:
            self.epoch += 1
        for group in waiting:
            self.denied.pop(group.key, None)
            self.queue.active.add(group.key)
        return bool(waiting)

    def forget_notes(self, key: str) -> None:
        self.denied.pop(key, None)
        self.permitted.pop(key, None)

    def spec(self, group: Group) -> GroupSpec | None:
        """What the group asks for; None where it names a PodGroup that does not exist."""
        if group.spec is None:
            if group.pod_group is not None:
                group.spec = spec_of_pod_group(group.pod_group)
            elif group.in_tree is not None:
                group.spec = spec_of_in_tree(group.in_tree)
            else:
                lightweight = [
                    (info.pod, group.refs[uid]) for uid, info in group.members.items() if group.refs[uid].lightweight
                ]
                if lightweight:
                    group.spec = spec_of_labels(group.key, lightweight)
            if group.spec is not None:
                self.gang_groups.name(group.key, group.spec.groups)
        return group.spec

    def siblings(self, group: Group, scheduler_name: str) -> set[str]:
        """UIDs of the members that count towards the quorum: those on a node, and those that will come to this scheduler."""
        return group.on_node.union(group.of_scheduler.get(scheduler_name, ()))

    def plannable(self, group: Group, scheduler_name: str) -> list[PodInfo]:
        """Members that can be given a place: pending, ours, and held back by no gate but ours."""
        return [
            info
            for info in group.pending()
            if info.pod.spec.scheduler_name == scheduler_name and not foreign_gates(info.pod, (self.gate,))
        ]

    def begun(self, group: Group) -> bool:
        """Whether a part of it runs, and that is less than minMember: nobody has anything of it until it is completed."""
        spec = self.spec(group)
        return spec is not None and in_part(group, spec)

    def order(self, group: Group) -> Order:
        """What has begun comes first, then the priority of the lowest member, then age, then name."""
        spec = self.spec(group)
        created = spec.created if spec is not None else None
        return not self.begun(group), -self._priority(group), created or _FAR_FUTURE, group.key

    def in_order(self, groups: Iterable[Group]) -> list[Group]:
        """The first comes first; without those that are set aside, and those that `order` raises at."""
        found = []
        for group in groups:
            order = self.quarantine.for_gang(group.key, "order", partial(self.order, group), None)
            if order is not None:
                found.append((order, group))
        return [group for _, group in sorted(found, key=itemgetter(0))]

    def _priority(self, group: Group) -> int:
        """Of the lowest member, of those that start together too."""
        keys = self.gang_groups.unit(group.key)
        if len(keys) == 1 or self.gang_groups.was_whole(keys):
            return group.priority
        return min(each.priority for key in keys if (each := self.groups.get(key)) is not None)

    def release_places(self, group: Group, uids: Iterable[str] | None = None) -> None:
        """Takes back the group's reservations, or those of some members."""
        for reservation in self.ledger.of_group(group.key):
            if uids is None or reservation.uid in uids:
                self.ledger.release(reservation.uid)
        if uids is None:
            group.planned = False

    def give_up_places(self, group: Group, keep: Collection[str] = ()) -> bool:
        """Takes back all reservations but those of held members, and of the members to keep. Returns whether there were any."""
        uids = [
            place.uid
            for place in self.ledger.of_group(group.key)
            if place.uid not in group.held and place.uid not in keep
        ]
        self.release_places(group, uids)
        group.waves.clear()
        group.planned = False
        group.preempting = None
        group.refused.update(uid for uid in uids if uid not in group.gated)
        return bool(uids)

    def lose_places(self, group: Group, uids: Iterable[str]) -> None:
        """These members are to be planned again, beside the places that are still good. Where those are enough, it may start."""
        for uid in uids:
            self.ledger.release(uid)
        group.planned = group.planned and self._enough_placed(group)
        self.forget_notes(group.key)
        self.queue.active.add(group.key)

    def placed(self, group: Group) -> set[str]:
        """Members with a place: on a node, held, or planned."""
        planned = {reservation.uid for reservation in self.ledger.of_group(group.key)}
        return group.assigned() | set(group.held) | planned

    def _enough_placed(self, group: Group) -> bool:
        spec = self.spec(group)
        return spec is not None and not needs(group, spec, self.placed(group))


def in_parts(keys: Iterable[str]) -> Iterator[list[str]]:
    """For who walks over all groups: as many as may be looked at under one hold of the lock."""
    rest = iter(keys)
    while part := list(islice(rest, AT_ONCE)):
        yield part
