"""Permit: members wait in their bind calls until the quorum is there; then the gang starts whole.

scheduler-plugins: pkg/coscheduling/core/core.go (Permit), pkg/coscheduling/coscheduling.go (Unreserve)
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from extender import metrics
from extender.api import corev1
from extender.framework.binding_annotations import annotate_binding
from extender.framework.cycle_state import CycleState
from extender.framework.handle import Handle
from extender.framework.status import SUCCESS, Status, unschedulable, wait
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import (
    PARTLY_BOUND,
    REJECTED,
    TIMED_OUT,
    CoschedulingDependencies,
    Verdict,
)
from extender.plugins.coscheduling.dispatch.holds import Holds, not_ending, waiting
from extender.plugins.coscheduling.extension_points.gang_start import GangStart
from extender.plugins.coscheduling.extension_points.preflight import lacks_room, preflight
from extender.plugins.coscheduling.scheduling.checks import missing_peer_gang
from extender.plugins.coscheduling.scheduling.lost_slots import time_for_siblings
from extender.plugins.coscheduling.scheduling.topology import GangSetDomains
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason, diagnosis_of_hold
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, is_complete, update_once_satisfied
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs, schedules_alone
from extender.retry import Retry

log = logging.getLogger(__name__)

CATCH_UP = Retry(0.005, 0.32, steps=7)


class GangPermit:
    """Everything here runs under the manager's lock; the locks of waiting pods are taken inside it.

    The binding cycle calls Permit and adds the waiting pod in one step that no other Permit interrupts, so every held
    member has its waiting pod when the next one arrives.
    """

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        holds: Holds,
        *,
        lease_seconds: float,
    ) -> None:
        """lease_seconds: how long a place is kept for a member that does not come."""
        self._lease_seconds = lease_seconds
        self._manager = manager
        self._with = dependencies
        self._holds = holds
        self._gang_start = GangStart(manager, dependencies, holds)
        self._domains = GangSetDomains(manager, dependencies.topology)

    def permit(self, pod: corev1.Pod, node_name: str, default_wait: float) -> tuple[Status, float]:
        """Holds the member, or starts the gang if it was the last that was missing. The wait is in seconds."""
        manager = self._manager
        with manager.lock:
            group = manager.group_of(pod)
            if group is None:
                return SUCCESS, 0
            spec = manager.specs.of(group)
            if pod.uid not in group.members:  # it went after its call had been looked at
                return unschedulable(messages.MEMBER_DELETED), 0
            if pod.uid in group.assigned:  # likewise, and it was bound
                return unschedulable(messages.ALREADY_BOUND), 0
            if spec is None:
                return unschedulable(messages.POD_GROUP_NOT_FOUND), 0
            if spec.invalid:
                return unschedulable(spec.invalid), 0
            alone = schedules_alone(group, spec, pod.uid)
            if not alone and (cause := missing_peer_gang(manager, group)):
                return unschedulable(cause), 0  # it went while kube-scheduler bound our volumes
            moved = self._moved(group, spec, pod, node_name)
            if not moved.success:
                return moved, 0
            group.happened(pod.uid, MemberEvent.HELD, node_name)
            if alone:
                return self._gang_start.start([(group, pod.uid)], arriving=pod.uid), 0
            gang_set = gang_set_of(manager, group)
            if not all(is_complete(manager, each) for each in gang_set):
                return wait(), self._hold_seconds(pod, spec, gang_set, default_wait)
            others = [member for member in waiting(gang_set) if member[1] != pod.uid]
            return self._gang_start.start([*others, (group, pod.uid)], arriving=pod.uid), 0

    def _moved(self, group: Group, spec: GroupSpec, pod: corev1.Pod, node_name: str) -> Status:
        """Whether a member that comes to another node than its own may be held there: its place has moved on its way. Held where
        the room went to others it would end the holds of all at the start. Where its gang's early start has ended on its way it would
        be held for members that need not come."""
        place = self._manager.slots.get(pod.uid)
        if place is not None and place.node_name == node_name:
            return SUCCESS
        if place is None and group.gathered_in_vain and not schedules_alone(group, spec, pod.uid):
            there = group.members.keys()
            if needs(group, spec, there):
                return unschedulable(messages.not_enough_siblings(pod.name, len(there), spec.min_member))
        snapshot = self._with.newest_snapshot()
        if level := self._domains.left(group, pod.uid, node_name, snapshot):
            return unschedulable(messages.planned_elsewhere(level))
        status = preflight(pod, node_name, snapshot)
        return status if lacks_room(status) else SUCCESS

    def _hold_seconds(self, pod: corev1.Pod, spec: GroupSpec, gang_set: Sequence[Group], default_wait: float) -> float:
        specs = [self._manager.specs.of(each) for each in gang_set]
        seconds = float(spec.schedule_timeout_seconds or default_wait)
        limit = self._with.hold_limit(sum(each.min_member for each in specs if each is not None))
        if seconds > limit:
            log.warning(
                "wait clamped to the bind timeout group=%s seconds=%g limit=%g", gang_set[0].key, seconds, limit
            )
        late = time_for_siblings(self._manager, gang_set, self._with.has_unbound_claims)
        return min(seconds + late, limit)

    def recheck(self, group: Group) -> None:
        """After fewer members are asked for or waited for, or a group is named no longer: starts the gang if it is complete now."""
        with self._manager.lock:
            spec = self._manager.specs.valid(group)
            if spec is None or missing_peer_gang(self._manager, group):
                return
            gang_set = gang_set_of(self._manager, group)
            if all(is_complete(self._manager, each) for each in gang_set) and (held := waiting(gang_set)):
                self._gang_start.start(held, arriving="")

    def pre_bind(self, state: CycleState, pod: corev1.Pod, node_name: str, handle: Handle) -> Status:
        """A preemptor is here within moments of its victim's end: our watch is given the time to show it as well."""
        status = self.check_commit(state, pod, node_name)
        for pause in CATCH_UP.pauses():
            if not lacks_room(status):
                break
            handle.sleep(pause)
            status = self.check_commit(state, pod, node_name)
        return status

    def check_commit(self, state: CycleState, pod: corev1.Pod, node_name: str) -> Status:
        """PreBind: a member goes on only with its gang, and with the record of its start; a single pod only onto a node that
        still takes it."""
        with self._manager.lock:
            group = self._manager.holder_of(pod)
            if group is not None:
                if group.start is not None and pod.uid in group.start.members:
                    annotate_binding(state, {START: group.start.record.text()})
                return SUCCESS if pod.uid in group.starting else unschedulable(messages.NOT_ENOUGH_LEFT)
        if not self._with.may_commit():
            return unschedulable("not the leader: nothing is committed")
        return preflight(pod, node_name, self._with.newest_snapshot())

    def bound(self, pod: corev1.Pod, node_name: str) -> None:
        """PostBind: counts as assigned from now on, until the watch says so itself."""
        with self._manager.lock:
            group = self._manager.holder_of(pod)
            if group is None:
                return
            group.happened(pod.uid, MemberEvent.BINDING_CONFIRMED, node_name)
            self._manager.hold_is_over(group, pod.uid)
            group.started.discard(pod.uid)
            update_once_satisfied(self._manager, group)
            self._manager.registry.drop_if_empty(group)

    def unreserve(self, pod: corev1.Pod, cause: str) -> bool:
        """Unreserve: the member's hold is over. Without it the rest cannot start, unless another takes its part.

        Returns whether the group's plan is void. A member whose binding failed in mid-commit keeps its place.
        """
        manager = self._manager
        with manager.lock:
            group = manager.holder_of(pod)
            if group is None:
                return False
            node_name, rejected = group.held.get(pod.uid, ""), pod.uid in group.ending
            effects = group.happened(pod.uid, MemberEvent.BIND_FAILED)
            if not node_name:
                return False
            manager.hold_is_over(group, pod.uid)
            try:
                if effects:
                    until = manager.clock() + self._lease_seconds
                    manager.places.carry_out(effects, group, pod.uid, node_name=node_name, until=until)
                    self._tell_not_bound(group, pod, node_name)
                    # where it was the last, and none is bound, nothing has started
                    update_once_satisfied(manager, group)
                    return False
                if group.key in manager.quarantine:  # that is why the holds were ended; SetAside takes the place back
                    return False
                manager.places.follow(group)
                return self._end_of_hold(group, pod, cause, rejected=rejected)
            finally:
                manager.registry.drop_if_empty(group)

    def _end_of_hold(self, group: Group, pod: corev1.Pod, cause: str, *, rejected: bool) -> bool:
        """Before the start. rejected: by us, so that the first hold that has ended by the same cause has told it. Lock held."""
        manager = self._manager
        spec = manager.specs.of(group)
        gone = pod.uid not in group.members
        if spec is not None and schedules_alone(group, spec, pod.uid):
            return False
        siblings = group.siblings(pod.spec.scheduler_name)
        if gone and spec is not None and not needs(group, spec, siblings):
            return False
        if gone:
            cause = messages.MEMBER_DELETED
        gang_set = gang_set_of(manager, group)
        # of an early start that has ended: the check of its siblings says so from now on
        of_gathering = rejected and messages.ENOUGH_SIBLINGS in cause
        if of_gathering or cause == manager.denied.get(group.key):  # that is why the holds were ended, and what is told
            manager.slots.release(pod.uid)
            manager.notes.on_capacity_freed([each.key for each in gang_set])
            return False
        others, stop = not_ending(gang_set), diagnosis_of_hold(cause, manager.clock())
        if others or not rejected or not stop.says_the_same_as(group.last_diagnosis):
            self._tell_end_of_hold(group, stop)
        self._holds.reject_members(others, cause)
        return True

    def _tell_end_of_hold(self, group: Group, stop: Diagnosis) -> None:
        group.stop(stop)
        log.info("gang steps back group=%s reason=%s message=%r", group.key, stop.reason, stop.text)
        reason = TIMED_OUT if stop.reason is UnschedulableReason.HOLD_TIMED_OUT else REJECTED
        self._with.verdicts.decided(group.object, group.key, Verdict(False, reason, stop.text, stop.reason))

    def _tell_not_bound(self, group: Group, pod: corev1.Pod, node_name: str) -> None:
        """It keeps its place; kube-scheduler brings it again, and its start completes the gang and is told as any other."""
        log.warning("member of a starting gang was not bound pod=%s node=%s", pod.key, node_name)
        metrics.partial_commits.inc()
        lacks = not is_complete(self._manager, group)
        text = messages.not_bound(pod.name, node_name)
        verdict = Verdict(False, PARTLY_BOUND, text, UnschedulableReason.PARTLY_BOUND, event_only=not lacks)
        self._with.verdicts.decided(group.object, group.key, verdict, pod)
