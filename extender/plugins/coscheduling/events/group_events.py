"""What the watch says of pods, groups and nodes: which members count, which plans are void, which gangs are planned again.

The Coscheduling plugin hands every event on to here; what follows runs in the background. Each informer calls from its own
thread. scheduler-plugins has queueing hints in this place: here a group that an event can help is planned by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
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
from extender.plugins.coscheduling.spec.sources.foreign import ForeignPodGroup, kind_of
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, missing_group, update_once_satisfied
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts

T = TypeVar("T")


class GroupEvents:
    """The manager's lock is taken for the bookkeeping of each event, and let go before anything is planned or patched."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        dispatcher: Dispatcher,
        holds: Holds,
        dependencies: CoschedulingDependencies,
    ) -> None:
        self._manager = manager
        self._rounds = rounds
        self._dispatcher = dispatcher
        self._feedback = SchedulerFeedback(manager, dispatcher)
        self._holds = holds
        self._claims: frozenset[str] | None = (
            frozenset()
        )  # changed since gangs were last looked through; None: any may have
        self._with = dependencies

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Keeps the members; a group that gained its quorum, or room that came free, is looked at in the background.

        That room is free whatever is raised about the pod's own gang.
        """
        happened = of_pod(old, new)
        void: list[str] = []
        try:
            void, look = self._follow(old, new)
            self._drop(void)
            if new is not None and new.node_name:
                self._for_gang_of(new, partial(self._dispatcher.on_waiting_or_bound, new), None)
            elif new is not None and (old is None or old.metadata.labels != new.metadata.labels):
                self._for_gang_of(new, partial(self._dispatcher.on_joined, new), None)
        finally:
            if void:
                self.on_capacity_freed()
            if happened is not None:
                self._rounds.happened(happened)
        lost = partial(self._lost_nomination, old, new)
        if not void and (look or (new is not None and self._for_gang_of(new, lost, otherwise=False))):
            self._rounds.schedule_planning()

    def _follow(self, old: corev1.Pod | None, new: corev1.Pod | None) -> tuple[list[str], bool]:
        """Keeps the members. Returns the groups whose plan is void, and whether groups that wait are to be looked at."""
        manager = self._manager
        with manager.lock:
            before = manager.groups.get(ref.key) if old is not None and (ref := manager.labels.group_of(old)) else None
            concerned = self._gang_sets([before])
            group = manager.pod_changed(new) if new is not None else manager.pod_gone(old) if old is not None else None
            if before is not None and new is not None and not new.deleting and new.uid not in before.members:
                self._holds.reject(before, new.uid, messages.MEMBER_GONE)
            if group is None:
                return self._void(concerned), False
            concerned |= self._gang_sets([group])
            step = partial(self._look_at_change, group, concerned, old, new)
            nothing: tuple[list[str], bool] = [], False
            return manager.quarantine.for_gang(group.key, "events", step, nothing)

    def _look_at_change(
        self, group: Group, concerned: set[str], old: corev1.Pod | None, new: corev1.Pod | None
    ) -> tuple[list[str], bool]:
        """What follows for the pod's group, and those that it starts with (concerned: their keys). Lock held.

        Not done while it is set aside: it has no plan then, and SetAside makes up for the rest.
        """
        manager = self._manager
        membership = _membership_changed(manager.labels, old, new)
        if membership:
            if _on_a_node(old) or _on_a_node(new) or group.start is not None:
                update_once_satisfied(manager, group)
            for key in concerned:
                manager.forget_notes(key)
        look = membership and self._matters(group, new)
        if membership and give_back(manager, group):
            look = True
        look = self._parked_unasked(group, old, new) or look
        if look:
            manager.queue.move_to_active(key for key in concerned & manager.groups.keys() if key not in manager.denied)
        return self._void(concerned), look

    def tick(self) -> None:
        """About once a second: members that calls have shown, and for too long no watch, count no longer. One that comes after
        all is taken in as any other. Groups that were kept out of a full set are taken in when it has room."""
        manager = self._manager
        with manager.lock:
            unseen = manager.unseen()
            fitting = manager.gang_set_index.fitting()
        for pod in unseen:
            self._for_gang_of(pod, partial(self._forget_unseen, pod), None)
        for key in fitting:
            change = partial(self._object_changed, key, partial(manager.try_names_again, key), gone=False)
            manager.quarantine.for_gang(key, "events", change, None)

    def _forget_unseen(self, pod: corev1.Pod) -> None:
        self.on_pod(pod, None)
        with self._manager.lock:
            self._manager.comes_back(pod.uid)

    def on_pod_group(self, old: OwnPodGroup | None, new: OwnPodGroup | None) -> None:
        """Of the CRD, or kube-scheduler's own where that is watched. Our own conditions are no news."""
        manager = self._manager
        if new is not None and old is not None and asks_for(old) == asks_for(new):
            with manager.lock:
                manager.pod_group_changed(new)
        elif new is not None:
            self._object_changed(new.key, lambda: manager.pod_group_changed(new), gone=False)
        elif old is not None:
            self._object_changed(old.key, lambda: manager.pod_group_gone(old), gone=True)

    def on_foreign_pod_group(self, old: ForeignPodGroup | None, new: ForeignPodGroup | None) -> None:
        """Another system's object; its status is that system's."""
        manager = self._manager
        if new is not None and old is not None and asks_for(old) == asks_for(new):
            with manager.lock:
                manager.foreign[kind_of(new)][new.key] = new
        elif new is not None:
            self._object_changed(new.key, lambda: manager.foreign_changed(new), gone=False)
        elif old is not None:
            self._object_changed(old.key, lambda: manager.foreign_gone(old), gone=True)

    def on_composite_pod_group(self, old: CompositePodGroup | None, new: CompositePodGroup | None) -> None:
        """All groups below it ask for something else."""
        manager = self._manager
        before, after = (spec_of_composite(each) if each is not None else None for each in (old, new))
        known = after or before
        if known is None or before == after:
            return
        with manager.lock:
            keys = manager.composite_changed(known.key, after)
        for key in keys:
            change = partial(self._object_changed, key, partial(manager.tree_changed, key), gone=False)
            manager.quarantine.for_gang(key, "events", change, None)

    def _object_changed(self, key: str, change: Callable[[], Group | None], *, gone: bool) -> None:
        """What the group was to start with until now, and what it is to start with from now on, is looked at anew."""
        manager = self._manager
        with manager.lock:
            manager.quarantine.try_now(key)
            concerned = self._gang_sets([manager.groups.get(key)])
            group = change()
            if group is None:
                return
            concerned |= self._gang_sets([group])
            groups = [group, *(manager.groups[each] for each in sorted(concerned - {key}) if each in manager.groups)]
            update_once_satisfied(manager, group)
            for each in groups:
                if gone:
                    self._holds.reject_all(each, messages.GROUP_DELETED)
                else:
                    self._holds.recheck(each)
                manager.forget_notes(each.key)
            manager.queue.move_to_active(each.key for each in groups if each.key in manager.groups)
            void = [key] if gone else self._void(concerned)
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
                waits = self._manager.volumes_changed(some, claims) or waits
            pause()  # other threads have their turn
        if waits:
            self._rounds.schedule_planning()

    def on_capacity_freed(self) -> None:
        with self._manager.lock:
            self._manager.cluster_epoch += 1
            self._manager.on_capacity_freed()
        self._rounds.schedule_planning()

    # Under the manager's lock

    def _gang_sets(self, groups: Sequence[Group | None]) -> set[str]:
        """The keys of these groups, and of those that they start together with."""
        return {each.key for group in groups if group is not None for each in gang_set_of(self._manager, group)}

    def _void(self, keys: Iterable[str]) -> list[str]:
        """Groups whose plan cannot come to a start any more: one of the gang set lost its quorum, or is gone; and those that have
        places left of one."""
        groups, slots = self._manager.groups, self._manager.slots
        known = [group for key in sorted(keys) if (group := groups.get(key)) is not None]
        planned = [group for group in known if group.planned or slots.of_group(group.key)]
        return [group.key for group in planned if not self._may_start(group)]

    def _may_start(self, group: Group) -> bool:
        manager = self._manager
        for each in gang_set_of(manager, group):
            spec = manager.spec(each)
            if spec is None or spec.invalid or manager.lacks(each, each.members.keys()):
                return False
        return not missing_group(manager, group) and not manager.composites.missing(group.key)

    def _matters(self, group: Group, new: corev1.Pod | None) -> bool:
        """Whether a group that waits may have a plan after this: not if the pod has its place or its node already."""
        if not any(each.refused or each.gated for each in gang_set_of(self._manager, group)):
            return False
        return new is None or (not new.node_name and self._manager.slots.get(new.uid) is None)

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
            member.rejected_in_tree = self._manager.cluster_epoch
        return True

    # Beyond it

    def _drop(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._manager.quarantine.for_gang(key, "events", partial(self._rounds.drop_plan, key), None)

    def _for_gang_of(self, pod: corev1.Pod, step: Callable[[], T], otherwise: T) -> T:
        return self._manager.quarantine.for_gang(self._manager.key_of(pod), "events", step, otherwise)

    def _lost_nomination(self, old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
        """Whether the group has to be planned again because the member's nomination was cleared, and not by us."""
        if old is None or new is None or old.uid != new.uid or new.node_name:
            return False
        if old.status.nominated_node_name and not new.status.nominated_node_name:
            return self._feedback.on_nomination_cleared(old, new)
        if old.status.conditions != new.status.conditions:
            return self._feedback.on_unschedulable(old, new)
        return False


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


def _on_a_node(pod: corev1.Pod | None) -> bool:
    return pod is not None and bool(pod.node_name)


def _membership_changed(labels: GroupLabels, old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
    """Came, went, is going, lost a gate, asks for something else, or got to a node: what can change a verdict on the group."""
    if old is None or new is None:
        return True
    return (
        old.metadata.labels != new.metadata.labels
        or relevant(old.metadata) != relevant(new.metadata)
        or labels.group_of(old) != labels.group_of(new)
        or old.deleting != new.deleting
        or (old.spec is not new.spec and old.spec != new.spec)
        or old.terminal != new.terminal
    )
