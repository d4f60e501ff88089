"""The Coscheduling plugin: a group of pods starts whole or not at all.

PreFilter admits by plan, Filter guards the places promised to others, Permit holds until the quorum is there, PreBind
starts only whole gangs. What it knows of groups is in pod_group_manager, the gates in admission, the holds in barrier.
scheduler-plugins: pkg/coscheduling/coscheduling.go
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Self

from extender.api import corev1
from extender.api.schedulingv1alpha1 import PodGroup
from extender.config.plugin_args import CoschedulingArgs
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.interface import (
    ClusterEventWithHint,
    EnqueueExtensions,
    FilterPlugin,
    NodeToStatus,
    PermitPlugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
)
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.status import SKIP, SUCCESS, Status, unresolvable, unschedulable
from extender.plugins import names
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.admission import Admission
from extender.plugins.coscheduling.barrier import Barrier
from extender.plugins.coscheduling.collaborators import Collaborators
from extender.plugins.coscheduling.gang_report import GangReport
from extender.plugins.coscheduling.hints import GroupHints
from extender.plugins.coscheduling.ledger import Reservation
from extender.plugins.coscheduling.pod_group import GroupLabels
from extender.plugins.coscheduling.pod_group_manager import Group, PodGroupManager
from extender.plugins.coscheduling.stops import Reason, Stop

log = logging.getLogger(__name__)

RESERVATIONS = "Reservations" + names.COSCHEDULING
REJECTION = "Rejection" + names.COSCHEDULING  # the binding cycle leaves why WaitOnPermit ended
DEFAULT_WAIT_SECONDS = 60.0


class Coscheduling(
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    PostBindPlugin,
    EnqueueExtensions,
):
    """Shared by all profiles of a scheduler, since a group is one thing whoever asks."""

    name = names.COSCHEDULING

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._wait_seconds = float(args.permit_waiting_time_seconds or DEFAULT_WAIT_SECONDS)
        self.manager = PodGroupManager(
            GroupLabels(tuple(args.pod_group_labels)),
            denied_seconds=float(args.denied_pg_expiration_time_seconds),
            permitted_seconds=self._wait_seconds,
            clock=handle.clock,
            gate=args.scheduling_gate,
        )
        self._planning = False  # what may_plan last said; the tick's own

    @classmethod
    def create(cls, args: CoschedulingArgs | None, handle: Handle) -> Self:
        return cls(args or CoschedulingArgs(), handle)

    def connect(self, collaborators: Collaborators) -> None:
        """Called once, when the scheduler around the frameworks exists."""
        self.collaborators = collaborators
        self.admission = Admission(
            self.manager,
            collaborators,
            self._handle.nominator,
            denied_seconds=float(self._args.denied_pg_expiration_time_seconds),
            lease_seconds=self._wait_seconds,
        )
        self.barrier = Barrier(self.name, self.manager, collaborators, self._handle.get_waiting_pod)

    def report(self, judge: planner.Judge) -> GangReport:
        """What the pages show; after `connect`. judge: the report's own."""
        seconds = float(self._args.denied_pg_expiration_time_seconds)
        return GangReport(self.manager, self.admission, self.collaborators, judge, denied_seconds=seconds)

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        return GroupHints(self.manager.labels).events_to_register()

    # PreFilter and Filter

    def pre_filter(
        self, state: CycleState, pod: corev1.Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        node_name, status = self.admission.admit(pod, frozenset(node.name for node in nodes))
        if not status.success:
            return None, status
        if node_name is not None:
            return PreFilterResult(frozenset((node_name,))), SUCCESS
        reserved = self._reserved_against(pod)
        if not reserved:
            return None, SKIP
        state.write(RESERVATIONS, reserved)
        return None, SUCCESS

    def _reserved_against(self, pod: corev1.Pod) -> dict[str, list[PodInfo]]:
        """Node -> promised pods of equal or higher priority."""
        reserved: dict[str, list[PodInfo]] = {}
        with self.manager.lock:
            for reservation in self.manager.ledger:
                if reservation.uid != pod.uid and reservation.priority >= pod.priority:
                    reserved.setdefault(reservation.node_name, []).append(reservation.pod_info)
        return reserved

    def filter(self, state: CycleState, pod: corev1.Pod, node: NodeInfo) -> Status:
        reserved: dict[str, list[PodInfo]] | None = state.get(RESERVATIONS, dict)
        promised = reserved.get(node.name) if reserved else None
        if not promised:
            return SUCCESS
        here = {info.pod.uid for info in node.pods}
        coming = [info for info in promised if info.pod.uid not in here]
        if not coming:
            return SUCCESS
        hypothetical = node.clone()
        for info in coming:
            hypothetical.add_pod(info)
        if planner.insufficient(hypothetical, PodInfo(pod).requests):
            return unresolvable(messages.ROOM_RESERVED)
        return SUCCESS

    # PostFilter

    def post_filter(
        self, state: CycleState, pod: corev1.Pod, node_statuses: NodeToStatus
    ) -> tuple[PostFilterResult | None, Status]:
        """A gang of which one member fits nowhere gives up early, unless it is nearly complete."""
        with self.manager.lock:
            group = self.manager.group_of(pod)
            spec = self.manager.spec(group) if group is not None else None
            if group is None or spec is None or spec.invalid:
                return None, unschedulable("can not find pod group")
            assigned = len(group.assigned() | set(group.held))
            if assigned >= spec.min_member:
                return None, unschedulable()
            missing = (spec.min_member - assigned) / spec.min_member
            if missing <= self._args.pod_group_reject_percentage / 100:
                return None, unschedulable()
            self._back_off(group)
            text = messages.rejected_after_post_filter(group.key, pod.name)
            group.stop(Stop(Reason.REFUTED_BY_SCHEDULER, text, self.manager.clock()))
            self.barrier.reject_all(group, messages.OPTIMISTIC_REJECTION)
        self.admission.drop_plan(group.key)
        return None, unschedulable(text)

    def _back_off(self, group: Group) -> None:
        """podGroupBackoffSeconds: a group that was just rejected is not tried for so long."""
        if self._args.pod_group_backoff_seconds > 0:
            self.manager.back_off(group.key, float(self._args.pod_group_backoff_seconds))

    # Reserve, Permit, PreBind, PostBind

    def reserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        """Releases the whole group: none of it can start now."""
        cause = state.get(REJECTION, str) or messages.REJECTION_IN_UNRESERVE
        with self.manager.lock:
            group = self.manager.find(pod)
            if group is None or not self.barrier.leave(pod, cause):
                return
            self._back_off(group)
        self.admission.drop_plan(group.key)

    def permit(self, state: CycleState, pod: corev1.Pod, node_name: str) -> tuple[Status, float]:
        decided = self.barrier.arrive(pod, node_name, self._wait_seconds)
        self.admission.arrivals.settled(pod)
        return decided

    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        return self.barrier.check_commit(pod, node_name)

    def post_bind(self, state: CycleState, pod: corev1.Pod, node_name: str) -> None:
        self.barrier.bound(pod, node_name)
        self.admission.arrivals.settled(pod)

    # What the watch says

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """Keeps the members; a group that gained its quorum, or room that came free, is looked at in the background."""
        manager = self.manager
        freed = old is not None and bool(old.node_name) and (new is None or (new.terminal and not old.terminal))
        with manager.lock:
            before = manager.groups.get(ref.key) if old is not None and (ref := manager.labels.group_of(old)) else None
            group = manager.pod_changed(new) if new is not None else manager.pod_gone(old) if old is not None else None
            if group is not None and _membership_changed(old, new):
                manager.forget_notes(group.key)
            void = [g.key for g in {id(g): g for g in (before, group) if g is not None}.values() if self._void(g)]
            look = group is not None and self._matters(group, old, new)
            if group is not None and look:
                manager.dirty.add(group.key)
        for key in void:
            self.admission.drop_plan(key)
        if new is not None and new.node_name:
            self.admission.arrivals.settled(new)
        if freed or void:
            self._room_came_free()
        elif look or self._lost_nomination(old, new):
            self._look()

    def _matters(self, group: Group, old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
        """Whether a group that waits may have a plan after this: not if the pod has its place or its node already."""
        if not (group.refused or group.gated) or not _membership_changed(old, new):
            return False
        return new is None or (not new.node_name and self.manager.ledger.get(new.uid) is None)

    def _lost_nomination(self, old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
        """Whether the group has to be planned again because the member's nomination was cleared, and not by us."""
        if old is None or new is None or old.uid != new.uid or new.node_name:
            return False
        if not old.status.nominated_node_name or new.status.nominated_node_name:
            return False
        return self.admission.arrivals.lost(old, new)

    def _void(self, group: Group) -> bool:
        """A planned group that lost its quorum."""
        if not group.planned:
            return False
        spec = self.manager.spec(group)
        return spec is None or bool(spec.invalid) or len(group.members) < spec.min_member

    def on_pod_group(self, old: PodGroup | None, new: PodGroup | None) -> None:
        with self.manager.lock:
            if new is None:
                group = self.manager.pod_group_gone(old) if old is not None else None
                if group is None:
                    return
                self.barrier.reject_all(group, messages.GROUP_DELETED)
            else:
                if old is not None and old.spec == new.spec:
                    self.manager.pod_group_changed(new)
                    return
                group = self.manager.pod_group_changed(new)
                self.barrier.recheck(group)
            self.manager.forget_notes(group.key)
            self.manager.dirty.add(group.key)
            parked = [group.members[uid].pod for uid in group.refused - group.gated if uid in group.members]
        if new is None:
            self.admission.drop_plan(group.key)
        self.collaborators.submit("plan", self.admission.plan_waiting)
        self.collaborators.steering.wake(parked)

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        """A node that came or got better may help; one that went takes the plans on it with it."""
        if new is None and old is not None:
            with self.manager.lock:
                for reservation in list(self.manager.ledger.on_node(old.name)):
                    self._lose(reservation)
            self._look()
        elif new is not None and (old is None or _node_may_help(old, new)):
            self._room_came_free()

    def _lose(self, reservation: Reservation) -> None:
        """A member's node is gone: it alone is placed anew. Lock held."""
        group = self.manager.groups.get(reservation.group)
        if group is not None and reservation.uid not in group.held:
            self.manager.lose_places(group, [reservation.uid])
            if reservation.uid not in group.gated:
                group.refused.add(reservation.uid)

    def _room_came_free(self) -> None:
        with self.manager.lock:
            self.manager.room_came_free()
        self._look()

    def _look(self) -> None:
        self.collaborators.submit("plan", self.admission.plan_waiting)

    def tick(self) -> None:
        """About once a second: plans whose members did not come are given up, texts that have become untrue are renewed."""
        with self.manager.lock:
            self.manager.prune()
            due = self.manager.due()
        if due:
            self._look()
        self._follow_leadership()
        self.admission.wake_told_otherwise()
        self.admission.observer.tick()
        for key in self.admission.expired():
            log.info("plan expired group=%s", key)
            self.admission.drop_plan(key)
            with self.manager.lock:  # others have their turn first
                self.manager.denied[key] = messages.MEMBERS_DID_NOT_COME
                if (group := self.manager.groups.get(key)) is not None:
                    group.stop(Stop(Reason.MEMBERS_DID_NOT_COME, messages.MEMBERS_DID_NOT_COME, self.manager.clock()))
                self.manager.look_at[key] = self.manager.clock() + self._args.denied_pg_expiration_time_seconds
            self._look()

    def _follow_leadership(self) -> None:
        """Who begins to lead plans what waits; who leads no more keeps no place for anybody."""
        before, self._planning = self._planning, self.collaborators.may_plan()
        if self._planning and not before:
            self._room_came_free()
        elif before and not self._planning:
            with self.manager.lock:
                planned = {reservation.group for reservation in self.manager.ledger}
            for key in sorted(planned):
                self.admission.drop_plan(key)


def _membership_changed(old: corev1.Pod | None, new: corev1.Pod | None) -> bool:
    """Came, went, is going, lost a gate, or got to a node: what can change a verdict on the group."""
    if old is None or new is None:
        return True
    return (
        old.metadata.labels != new.metadata.labels
        or old.deleting != new.deleting
        or old.spec.scheduling_gates != new.spec.scheduling_gates
        or old.spec.node_name != new.spec.node_name
        or old.terminal != new.terminal
    )


def _node_may_help(old: corev1.Node, new: corev1.Node) -> bool:
    return (
        old.spec != new.spec
        or old.status.allocatable != new.status.allocatable
        or old.metadata.labels != new.metadata.labels
        or old.not_ready != new.not_ready
    )
