"""What the watch says of pods, groups and nodes: which members count, which plans are void, which gangs are planned again.

The Coscheduling plugin hands every event on to here; what follows runs in the background. Each informer calls from its own
thread. scheduler-plugins has queueing hints in this place: here a group that an event can help is planned by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TypeVar

from extender.api import corev1
from extender.api.schedulingv1alpha3 import CompositePodGroup
from extender.client.interface import OwnPodGroup
from extender.client.short_steps import pause
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.events.scheduler_feedback import SchedulerFeedback
from extender.plugins.coscheduling.hints.helpful_events import of_node, of_pod
from extender.plugins.coscheduling.members_to_come.foreseen import give_back
from extender.plugins.coscheduling.pod_conditions import same_refusal, was_refused
from extender.plugins.coscheduling.scheduling.lost_slots import lose_slot
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.scheduling.rejected_in_tree import refused_unasked
from extender.plugins.coscheduling.spec.group_annotations import asks_for, relevant
from extender.plugins.coscheduling.spec.in_tree import spec_of_composite
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.spec.sources.foreign import ForeignPodGroup
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, is_linked, missing_group, update_once_satisfied
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts
from extender.plugins.coscheduling.state.quorum import needs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Consequences:
    """Of one event of a pod. void: keys of groups whose plan is. look: whether groups that wait are to be planned. due: groups of which
    members are to be sent."""

    void: Sequence[str] = ()
    look: bool = False
    due: Sequence[Group] = ()


NOTHING = Consequences()


class GroupEvents:
    """The manager's lock is taken for the bookkeeping of each event, and let go before anything is planned or patched."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        dispatcher: Dispatcher,
        holds: Holds,
        recheck: Callable[[Group], None],
        dependencies: CoschedulingDependencies,
    ) -> None:
        """recheck: starts a gang that is complete now, after minMember was lowered or a group was named no longer."""
        self._manager = manager
        self._rounds = rounds
        self._dispatcher = dispatcher
        self._feedback = SchedulerFeedback(manager, dispatcher)
        self._holds = holds
        self._recheck = recheck
        self._claims: frozenset[str] | None = (
            frozenset()
        )  # changed since gangs were last looked through; None: any may have
        self._with = dependencies

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Keeps the members; a group that gained its quorum, or room that came free, is looked at in the background.

        That room is free whatever is raised about the pod's own gang.
        """
        happened = of_pod(old, new)
        found = NOTHING
        try:
            found = self._follow(old, new)
            if found.void:
                self._drop(found.void)
            for group in found.due:
                self._for_gang(group.key, partial(self._dispatcher.dispatch, group), None)
        finally:
            if found.void:
                self.on_capacity_freed()
            if happened is not None:
                self._rounds.happened(happened)
        if not found.void and (found.look or self._is_refused(old, new)):
            self._rounds.schedule_planning()

    def _follow(self, old: corev1.Pod | None, new: corev1.Pod | None) -> Consequences:
        """Keeps the members, and says what follows."""
        manager = self._manager
        with manager.lock:
            before = manager.group_known_of(old) if old is not None else None
            spec = before.spec if before is not None else None
            concerned = gang_set_of(manager, before) if before is not None else ()
            group = manager.pod_changed(new) if new is not None else manager.pod_gone(old) if old is not None else None
            if before is not None and new is not None and not new.deleting and new.uid not in before.members:
                self._holds.reject(before, new.uid, messages.MEMBER_GONE)
            if group is None:
                return Consequences(self._void(concerned)) if concerned else NOTHING
            if group is not before or group.spec is None or group.spec is not spec:  # it may start with others now
                concerned = self._together(group, concerned)
            step = partial(self._look_at_change, group, concerned, old, new)
            return manager.quarantine.for_gang(group.key, "events", step, NOTHING)

    def _look_at_change(
        self, group: Group, concerned: Sequence[Group], old: corev1.Pod | None, new: corev1.Pod | None
    ) -> Consequences:
        """What follows for the pod's group, and those that it starts with (concerned). Lock held.

        Not done while it is set aside: it has no plan then, and SetAside makes up for the rest.
        """
        manager, void, look = self._manager, list[str](), False
        membership = _membership_changed(manager.labels, old, new)
        if membership:
            on_node = (old is not None and old.node_name) or (new is not None and new.node_name)
            if on_node or group.start is not None:
                update_once_satisfied(manager, group)
            for each in concerned:
                manager.notes.forget(each.key)
            look = give_back(manager, group) or self._matters(group, new)
        look = self._parked_unasked(group, old, new) or look
        if look:
            manager.queue.move_to_active(
                each.key for each in concerned if each.key in manager.groups and each.key not in manager.denied
            )
        if membership:
            void = self._void(concerned)
        return Consequences(void, look, self._due(group, old, new) if new is not None else ())

    def _due(self, group: Group, old: corev1.Pod | None, new: corev1.Pod) -> Sequence[Group]:
        """Groups of which members may be sent now: the next wave, or one that has come and that a slot was kept for. Lock held."""
        manager, slots = self._manager, self._manager.slots
        if new.node_name:
            return gang_set_of(manager, group) if slots.waves and self._dispatcher.in_waves(group) else ()
        came = old is None or old.metadata.labels != new.metadata.labels
        if not (came and (group.gated or group.refused) and slots.get(new.uid) is not None):
            return ()
        spec = manager.spec(group)
        waits = spec is None or needs(group, spec, group.members.keys())
        return () if waits else (group,)  # with those that have waited for it

    def tick(self) -> None:
        """About once a second: members that calls have shown, and for too long no watch, count no longer. One that comes after
        all is taken in as any other. Groups that were kept out of a full set are taken in when it has room."""
        manager = self._manager
        with manager.lock:
            unseen = manager.unseen()
            fitting = manager.gang_set_index.fitting()
        for pod in unseen:
            self._for_gang(manager.key_of(pod), partial(self._forget_unseen, pod), None)
        for key in fitting:
            change = partial(self._object_changed, key, partial(manager.objects.try_names_again, key), gone=False)
            manager.quarantine.for_gang(key, "events", change, None)

    def _forget_unseen(self, pod: corev1.Pod) -> None:
        self.on_pod(pod, None)
        with self._manager.lock:
            self._manager.comes_back(pod.uid)

    def on_pod_group(self, old: OwnPodGroup | None, new: OwnPodGroup | None) -> None:
        """Of the CRD, or kube-scheduler's own where that is watched. Our own conditions are no news."""
        manager = self._manager
        self._on_object(
            old,
            new,
            manager.objects.pod_group_changed,
            manager.objects.pod_group_gone,
            manager.objects.pod_group_changed,
        )

    def on_foreign_pod_group(self, old: ForeignPodGroup | None, new: ForeignPodGroup | None) -> None:
        """Another system's object; its status is that system's."""
        manager = self._manager
        self._on_object(
            old, new, manager.objects.foreign_changed, manager.objects.foreign_gone, manager.objects.renew_foreign
        )

    def _on_object(
        self,
        old: OwnPodGroup | ForeignPodGroup | None,
        new: OwnPodGroup | ForeignPodGroup | None,
        changed: Callable[..., Group | None],
        gone: Callable[..., Group | None],
        renewed: Callable[..., object],
    ) -> None:
        """renewed: takes in an object that asks for the same as before."""
        if new is not None and old is not None and asks_for(old) == asks_for(new):
            with self._manager.lock:
                renewed(new)
        elif new is not None:
            self._object_changed(new.key, partial(changed, new), gone=False)
        elif old is not None:
            self._object_changed(old.key, partial(gone, old), gone=True)

    def on_composite_pod_group(self, old: CompositePodGroup | None, new: CompositePodGroup | None) -> None:
        """All groups below it ask for something else."""
        manager = self._manager
        before, after = (spec_of_composite(each) if each is not None else None for each in (old, new))
        known = after or before
        if known is None or before == after:
            return
        with manager.lock:
            keys = manager.objects.composite_changed(known.key, after)
        for key in keys:
            change = partial(self._object_changed, key, partial(manager.objects.tree_changed, key), gone=False)
            manager.quarantine.for_gang(key, "events", change, None)

    def _object_changed(self, key: str, change: Callable[[], Group | None], *, gone: bool) -> None:
        """What the group was to start with until now, and what it is to start with from now on, is looked at anew."""
        manager = self._manager
        with manager.lock:
            manager.quarantine.try_now(key)
            before = manager.groups.get(key)
            concerned = gang_set_of(manager, before) if before is not None else ()
            group = change()
            if group is None:
                return
            groups = self._together(group, concerned)
            update_once_satisfied(manager, group)
            for each in groups:
                if gone:
                    self._holds.reject_all(each, messages.GROUP_DELETED)
                else:
                    self._recheck(each)
                manager.notes.forget(each.key)
            manager.queue.move_to_active(each.key for each in groups if each.key in manager.groups)
            void = [key] if gone else self._void(groups)
            for each in groups:
                parked = [each.members[uid].pod for uid in each.refused - each.gated if uid in each.members]
                self._dispatcher.steering.activate(each.key, parked)
        self._drop(void)
        self._rounds.schedule_planning()
        self._dispatcher.steering.carry_out()

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        """A node that came or got better may help; one that went takes the plans on it with it."""
        if new is None and old is not None:
            with self._manager.lock:
                lost = list(self._manager.slots.on_node(old.name))
                for place in lost:
                    lose_slot(self._manager, place)
            if lost:
                self._rounds.schedule_planning()
        if (happened := of_node(old, new)) is not None:
            self._rounds.happened(happened)

    def on_volumes(self, old: object | None, new: object | None) -> None:
        """Volumes, claims or classes changed: gangs that wait and bring such volumes may fit now. Many changes, one look."""
        with self._manager.lock:
            of_changes = _claims_of(old, new)
            self._claims = self._claims | of_changes if self._claims is not None and of_changes is not None else None
        self._with.submit("volumes", self._volumes_changed)

    def _volumes_changed(self) -> None:
        with self._manager.lock:
            claims, self._claims = self._claims, frozenset()
            keys = self._manager.queue.index.bringing_volumes()
        waits = False
        for some in in_parts(sorted(keys)):
            with self._manager.lock:
                waits = self._manager.notes.volumes_changed(some, claims) or waits
            pause()  # other threads have their turn
        if waits:
            self._rounds.schedule_planning()

    def on_capacity_freed(self) -> None:
        with self._manager.lock:
            self._manager.notes.cluster_epoch += 1
            self._manager.notes.on_capacity_freed()
        self._rounds.schedule_planning()

    # Under the manager's lock

    def _together(self, group: Group, before: Sequence[Group]) -> Sequence[Group]:
        """The group, those that it starts with now, and those that are there of what it was to start with before."""
        known = self._manager.groups
        others = {each.key for each in (*before, *gang_set_of(self._manager, group))} - {group.key}
        return (group, *(known[key] for key in sorted(others) if key in known)) if others else (group,)

    def _void(self, groups: Sequence[Group]) -> list[str]:
        """Groups whose plan cannot come to a start any more: one of the gang set lost its quorum, or is gone; and those that have
        places left of one."""
        known, slots = self._manager.groups, self._manager.slots
        return [
            group.key
            for group in sorted(groups, key=attrgetter("key"))
            if known.get(group.key) is group
            and (group.planned or slots.uids_of(group.key))
            and not self._may_start(group)
        ]

    def _may_start(self, group: Group) -> bool:
        manager = self._manager
        for each in gang_set_of(manager, group):
            spec = manager.spec(each)
            if spec is None or spec.invalid or manager.places.lacks(each, each.members.keys()):
                return False
        return not is_linked(manager, group) or not (
            missing_group(manager, group) or manager.composites.missing(group.key)
        )

    def _matters(self, group: Group, new: corev1.Pod | None) -> bool:
        """Whether a group that waits may have a plan after this: not if the pod has its place or its node already."""
        if new is not None and (new.node_name or self._manager.slots.get(new.uid) is not None):
            return False
        return any(each.refused or each.gated for each in gang_set_of(self._manager, group))

    def _parked_unasked(self, group: Group, old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
        """Whether kube-scheduler has refused a member before it asked us, by its own filters: its gang gets its verdict
        all the same. Once, for each time that the pod becomes refused, and when we see it first."""
        if new is None or new.node_name or not was_refused(new):
            return False
        member = group.members.get(new.uid)
        if member is None or new.uid in group.held or (old is not None and same_refusal(old, new)):
            return False
        if new.uid in group.refused if old is not None else member.last_rejection:
            return False
        if self._manager.slots.get(new.uid) is not None:
            return False  # its place is refuted, or not: that is told by its nomination
        group.happened(new.uid, MemberEvent.PARKED)
        if refused_unasked(new):
            member.rejected_in_tree = self._manager.notes.cluster_epoch
        return True

    # Beyond it

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._for_gang(key, partial(self._rounds.drop_plan, key), None)

    def _for_gang(self, key: str, step: Callable[[], T], otherwise: T) -> T:
        return self._manager.quarantine.for_gang(key, "events", step, otherwise)

    def _is_refused(self, old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
        """Whether the group has to be planned again because kube-scheduler has refused the member, or has cleared its nomination."""
        if old is None or new is None or old.uid != new.uid or new.node_name:
            return False
        if old.status.nominated_node_name and not new.status.nominated_node_name:
            step = self._feedback.on_nomination_cleared
        elif old.status.conditions != new.status.conditions:
            step = self._feedback.on_unschedulable
        else:
            return False
        return self._for_gang(self._manager.key_of(new), partial(step, old, new), otherwise=False)


def _claims_of(old: object | None, new: object | None) -> frozenset[str] | None:
    """`namespace/name` of the claims that a change is of; None for one that any claim may depend on: of a volume that is no claim's yet,
    of a class, of what a node can attach."""
    found = set()
    for each in (old, new):
        if isinstance(each, corev1.PersistentVolumeClaim):
            found.add(f"{each.metadata.namespace}/{each.metadata.name}")
        elif isinstance(each, corev1.PersistentVolume) and each.spec.claim_ref is not None:
            found.add(f"{each.spec.claim_ref.namespace}/{each.spec.claim_ref.name}")
        elif each is not None:
            return None
    return frozenset(found)


def _membership_changed(labels: GroupLabels, old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
    """Came, went, is going, lost a gate, asks for something else, or got to a node: what can change a verdict on the group."""
    if old is None or new is None:
        return True
    if (
        old.metadata.labels != new.metadata.labels
        or old.deleting != new.deleting
        or (old.spec is not new.spec and old.spec != new.spec)
        or old.terminal != new.terminal
    ):
        return True
    return old.metadata.annotations != new.metadata.annotations and (
        relevant(old.metadata) != relevant(new.metadata) or labels.group_of(old) != labels.group_of(new)
    )
