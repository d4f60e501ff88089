"""What the watch says of pods: which members there are, which plans are void by it, and which members may be sent.

GroupEvents hands each event on. scheduler-plugins has queueing hints in this place: here a group that an event can help is planned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.events.scheduler_feedback import SchedulerFeedback
from extender.plugins.coscheduling.events.void_plans import VoidPlans
from extender.plugins.coscheduling.hints.helpful_events import of_pod
from extender.plugins.coscheduling.members_to_come.foreseen import give_back
from extender.plugins.coscheduling.pod_conditions import same_refusal, was_refused
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.scheduling.rejected_in_tree import refused_unasked
from extender.plugins.coscheduling.spec.group_annotations import relevant
from extender.plugins.coscheduling.spec.membership import GroupLabels
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, update_once_satisfied
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.group_members import counts_alike
from extender.plugins.coscheduling.state.member import Member, MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Consequences:
    """What one event of a pod leads to. void: keys of groups whose plan is void. look: whether waiting groups are to be planned. due:
    groups with members to dispatch. only: the UID of the one member to dispatch, where a gang gathers.
    """

    void: Sequence[str] = ()
    look: bool = False
    due: Sequence[Group] = ()
    only: str | None = None


NOTHING = Consequences()


class PodEvents:
    """The manager's lock is taken for the bookkeeping of each event, and let go before anything is planned or patched."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        dispatcher: Dispatcher,
        holds: Holds,
        void_plans: VoidPlans,
        on_capacity_freed: Callable[[], None],
        recheck: Callable[[Group], None],
    ) -> None:
        """recheck: starts a gang that is complete now without another bind call."""
        self._manager = manager
        self._rounds = rounds
        self._dispatcher = dispatcher
        self._feedback = SchedulerFeedback(manager, dispatcher)
        self._holds = holds
        self._void_plans = void_plans
        self._on_capacity_freed = on_capacity_freed
        self._recheck = recheck

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Keeps the members; a group that gained its quorum, or room that came free, is looked at in the background.

        That room is free whatever is raised about the pod's own gang.
        """
        happened = of_pod(old, new)
        found = NOTHING
        try:
            found = self._follow(old, new)
            if found.void:
                self._void_plans.drop(found.void)
            for group in found.due:
                self._for_gang(group.key, partial(self._dispatcher.dispatch, group, only=found.only), None)
        finally:
            if found.void:
                self._on_capacity_freed()
            if happened is not None:
                self._rounds.happened(happened)
        if not found.void and (found.look or self._is_refused(old, new)):
            self._rounds.schedule_planning()

    def _follow(self, old: corev1.Pod | None, new: corev1.Pod | None) -> Consequences:
        """Keeps the members, and says what follows."""
        manager = self._manager
        with manager.lock:
            before = manager.group_known_of(old) if old is not None else None
            if before is not None and old is not None and new is not None and self._stays_as_it_was(before, new):
                return self._follow_status(before, old, new)
            spec = before.spec if before is not None else None
            slot = manager.slots.get(old.uid) if old is not None else None
            concerned = gang_set_of(manager, before) if before is not None else ()
            group = manager.pod_changed(new) if new is not None else manager.pod_gone(old) if old is not None else None
            if before is not None and new is not None and not new.deleting and new.uid not in before.members:
                self._holds.reject(before, new.uid, messages.MEMBER_GONE)
            if group is None:
                return Consequences(self._void_plans.void(concerned)) if concerned else NOTHING
            freed = slot is not None and (new is None or not new.node_name) and manager.slots.get(slot.uid) is None
            if freed:  # its gang may keep its plan, where it has members enough
                manager.notes.on_capacity_freed([group.key])
            if group is not before or group.spec is None or group.spec is not spec:  # it may start with others now
                concerned = self._void_plans.together(group, concerned)
            step = partial(self._look_at_change, group, concerned, old, new)
            found = manager.quarantine.for_gang(group.key, "events", step, NOTHING)
            return replace(found, look=True) if freed else found

    def _stays_as_it_was(self, group: Group, new: corev1.Pod) -> bool:
        """Whether a member has changed in its status alone, or by a binding that PostBind has noted: nearly every event of the watch is of
        that kind, and changes nothing of its gang. Lock held."""
        member = group.members.get(new.uid)
        if member is None or new.deleting or new.terminal or new.uid in self._manager.terminating:
            return False
        known = member.pod
        if known.spec is not new.spec and known.spec != new.spec and not _is_confirmed(group, member, new):
            return False
        return counts_alike(known, new)

    def _follow_status(self, group: Group, old: corev1.Pod, new: corev1.Pod) -> Consequences:
        """Of a member that stays as it was. Lock held."""
        confirmed = new.uid in group.unconfirmed and bool(new.node_name)
        self._manager.member_stays(group, new)
        if new.node_name and not confirmed:
            return NOTHING
        step = partial(self._look_at_confirmed, group) if confirmed else partial(self._look_at_status, group, old, new)
        return self._manager.quarantine.for_gang(group.key, "events", step, NOTHING)

    def _look_at_confirmed(self, group: Group) -> Consequences:
        """What follows from the binding has followed with PostBind; the next wave is sent once more, if it is not on its way. Lock held."""
        return Consequences(due=self._in_waves(group))

    def _look_at_status(self, group: Group, old: corev1.Pod | None, new: corev1.Pod) -> Consequences:
        """Of a member that is on no node. Lock held."""
        if not self._parked_unasked(group, old, new):
            return NOTHING
        self._move_to_active(gang_set_of(self._manager, group))
        return Consequences(look=True)

    def _look_at_change(
        self, group: Group, concerned: Sequence[Group], old: corev1.Pod | None, new: corev1.Pod | None
    ) -> Consequences:
        """What follows for the pod's group, and those that it starts with (concerned). Lock held.

        Not done while it is set aside: it has no plan then, and SetAside makes up for the rest.
        """
        manager = self._manager
        membership = _membership_changed(manager.labels, old, new)
        look = membership and self._look_at_membership(group, concerned, old, new)
        if new is not None and not new.node_name:
            look = self._parked_unasked(group, old, new) or look
        if look:
            self._move_to_active(concerned)
        void = self._void_plans.void(concerned) if membership else ()
        due = self._due(group, old, new) if new is not None else ()
        return Consequences(void, look, due, new.uid if new is not None and group.gathering is not None else None)

    def _look_at_membership(
        self, group: Group, concerned: Sequence[Group], old: corev1.Pod | None, new: corev1.Pod | None
    ) -> bool:
        """What was found out of the gang is void. Returns whether it may have a plan now. Lock held."""
        manager = self._manager
        on_node = (old is not None and old.node_name) or (new is not None and new.node_name)
        if on_node or group.start is not None:
            update_once_satisfied(manager, group)
        for each in concerned:
            manager.notes.forget(each.key)
            # another was bound elsewhere, is waited for no longer, or fewer are asked for: no call comes that would start them
            if each.in_permit and each.gathering is None:
                self._recheck(each)
        gave_back = bool(manager.slots.to_come(group.key)) and give_back(manager, group)
        return gave_back or self._matters(group, new)

    def _move_to_active(self, groups: Sequence[Group]) -> None:
        manager = self._manager
        manager.queue.move_to_active(
            each.key for each in groups if each.key in manager.groups and each.key not in manager.denied
        )

    def _in_waves(self, group: Group) -> Sequence[Group]:
        """The groups of its gang set where members of it are sent in waves; none elsewhere. Lock held."""
        manager = self._manager
        return gang_set_of(manager, group) if manager.slots.waves and self._dispatcher.in_waves(group) else ()

    def _due(self, group: Group, old: corev1.Pod | None, new: corev1.Pod) -> Sequence[Group]:
        """Groups of which members may be sent now: the next wave, or one that has come and that a slot was kept for. Lock held."""
        manager, slots = self._manager, self._manager.slots
        if new.node_name:
            return self._in_waves(group)
        came = old is None or old.metadata.labels != new.metadata.labels
        if not (came and group.waits_for_room() and slots.get(new.uid) is not None):
            return ()
        spec = manager.specs.of(group)
        waits = spec is None or (group.gathering is None and needs(group, spec, group.members.keys()))
        return () if waits else (group,)  # with those that have waited for it

    def tick(self) -> None:
        """About once a second: members that calls have shown, and for too long no watch, count no longer. One that comes after
        all is taken in as any other."""
        with self._manager.lock:
            unseen = self._manager.unseen()
        for pod in unseen:
            self._for_gang(self._manager.key_of(pod), partial(self._forget_unseen, pod), None)

    def _forget_unseen(self, pod: corev1.Pod) -> None:
        self.on_pod(pod, None)
        with self._manager.lock:
            self._manager.comes_back(pod.uid)

    def _matters(self, group: Group, new: corev1.Pod | None) -> bool:
        """Whether a group that waits may have a plan after this: not if the pod has its place or its node already."""
        if new is not None and (new.node_name or self._manager.slots.get(new.uid) is not None):
            return False
        return any(each.waits_for_room() for each in gang_set_of(self._manager, group))

    def _parked_unasked(self, group: Group, old: corev1.Pod | None, new: corev1.Pod) -> bool:
        """Whether kube-scheduler has refused a member before it asked us, by its own filters: its gang gets its verdict
        all the same. Once, for each time that the pod becomes refused, and when we see it first."""
        if not was_refused(new):
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


def _is_confirmed(group: Group, member: Member, new: corev1.Pod) -> bool:
    """Whether the watch shows the binding that PostBind has noted, on that node."""
    return new.uid in group.unconfirmed and bool(new.node_name) and member.node == new.node_name


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
