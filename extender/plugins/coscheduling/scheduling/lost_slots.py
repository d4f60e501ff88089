"""Slots that are lost: they have no room any more, kube-scheduler did not take them, or no member came in time.

Their members alone are planned again, beside the slots of their gang that are still good; where members did not come in time the whole
plan is given up, and the gang is denied for a while. A member with claims that are not bound yet comes late, since kube-scheduler
binds volumes after our filter and before our bind verb. ReservedRoom asks after a pod came to a node or the node changed, GangSetPlanning
after a gang of higher priority took room, the plugin's tick about once a second; SchedulerFeedback and Admission tell of refusals.
kube-scheduler: pkg/scheduler/framework/preemption (prepareCandidate clears nominations of lower priority likewise), plugins/volumebinding
(PreBind, bindTimeoutSeconds). scheduler-plugins: Permit's timeout alone
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.framework.interface import MIN_FEASIBLE_NODES_TO_FIND
from extender.framework.listers import NodeInfoLister
from extender.framework.node_info import NodeInfo
from extender.framework.pod_info import PodInfo
from extender.framework.resource import PODS, Resource
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.bind_slots import BindSlots
from extender.plugins.coscheduling.planner.room import Amounts, asked_of, free
from extender.plugins.coscheduling.scheduling.topology import places_of
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, has_started
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.refutations import NO_EPOCH, NOWHERE, How
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.node_unschedulable import tolerates_cordon

log = logging.getLogger(__name__)

PRE_BIND_SECONDS = 600.0  # VolumeBinding's bindTimeoutSeconds where no other is configured

HasUnboundClaims = Callable[[corev1.Pod], bool]


# No room any more


def fits_beside(asked: Amounts, node: NodeInfo, coming: Iterable[PodInfo]) -> bool:
    """Whether the node has room for a pod beside these, which are to come."""
    total, count = Resource(), 0
    for info in coming:
        total.add(info.requests)
        count += 1
    return free(node, PODS) > count and all(
        amount + total.amount(name) <= free(node, name) for name, amount in asked.items()
    )


def no_longer_fit(node: NodeInfo, slots: Iterable[Slot]) -> list[Slot]:
    """The slots for which the node has no room left. Firm slots are kept first, then higher priorities, then older slots.

    Slots that never expire are left out: victims have to go before they have room.
    """
    here = {info.pod.uid for info in node.pods}
    kept: list[PodInfo] = []
    lost = []
    for slot in sorted(slots, key=lambda slot: (not slot.firm, -slot.priority)):
        if slot.uid in here or slot.expires == math.inf:
            continue
        closed = node.unschedulable and not tolerates_cordon(slot.pod)
        if closed or not fits_beside(asked_of(slot.pod_info.requests), node, kept):
            lost.append(slot)
        else:
            kept.append(slot.pod_info)
    return lost


def lose_slot(manager: PodGroupManager, slot: Slot) -> bool:
    """Its member is to be planned again, beside the slots of its gang that are still good. The manager's lock is held.

    A gang that is set aside keeps none.
    """
    return manager.quarantine.for_gang(slot.group, "places", partial(_lose_slot, manager, slot), otherwise=True)


def _lose_slot(manager: PodGroupManager, slot: Slot) -> bool:
    group = manager.groups.get(slot.group)
    if group is None or slot.uid in group.held:
        return False
    manager.places.lose(group, [slot.uid])
    group.place_lost(slot.uid)
    return True


def recheck(
    manager: PodGroupManager, node_names: Iterable[str], snapshot: NodeInfoLister, but: Collection[str] = ()
) -> bool:
    """Gives up the slots on these nodes that are good no more. Returns whether there were any.

    but: keys of groups that were just planned together on this snapshot: nodes with slots of these groups alone need no check.
    """
    lost = False
    with manager.lock:
        for name in node_names:
            slots = list(manager.slots.on_node(name))
            if but and all(slot.group in but for slot in slots):
                continue
            try:
                node = snapshot.get(name) if slots else None
            except KeyError:
                continue
            for slot in no_longer_fit(node, slots) if node is not None else ():
                lost = lose_slot(manager, slot) or lost
    return lost


# Not taken by kube-scheduler


def refute(manager: PodGroupManager, group: Group, slot: Slot, how: How, offered: frozenset[str] = NOWHERE) -> None:
    """Notes that kube-scheduler did not take the member on the slot's node. The manager's lock is held.

    REFUSED: its own filters passed no node. No patch requeues such a pod, so another slot is of no use until room comes free.
    NOT_OFFERED: it offers all nodes that pass its filters, unless there are so many that it stopped early. So the member may go to the
    nodes offered, and to those with slots of its siblings, which were judged with the siblings on them.
    """
    group.refuted.add(slot.uid, slot.node_name, how, manager.clock())
    if how is How.REFUSED:
        group.refuted.sleeps(slot.uid, manager.notes.cluster_epoch)
    elif len(offered) < MIN_FEASIBLE_NODES_TO_FIND:
        gang_set = gang_set_of(manager, group)
        taken = {node_name for each in gang_set for node_name in places_of(manager, each, but=slot.uid)}
        group.refuted.confine(slot.uid, slot.node_name, offered | taken, manager.notes.cluster_epoch)


# Expired


def time_for_siblings(
    manager: PodGroupManager, gang_set: Sequence[Group], has_unbound_claims: HasUnboundClaims
) -> float:
    """What a hold may last, in seconds, beyond its own time while members with unbound claims are to come. The manager's lock is held.

    A member that was refused, and has no slot, does not come.
    """
    coming = (
        group.members[uid].pod
        for group in gang_set
        if group.claiming  # for nearly all there is nothing to take those from that are held
        for uid in group.claiming - group.assigned - group.held.keys()
        if uid not in group.refused or manager.slots.get(uid) is not None
    )
    return _pre_bind_seconds(coming, has_unbound_claims)


def _pre_bind_seconds(pods: Iterable[corev1.Pod], has_unbound_claims: HasUnboundClaims) -> float:
    return PRE_BIND_SECONDS if any(map(has_unbound_claims, pods)) else 0.0


class ExpiredSlots:
    """The manager's lock is taken for each step alone. drop_plan: gives up the slots of the group with that key, and of its gang set."""

    def __init__(
        self,
        manager: PodGroupManager,
        drop_plan: Callable[[str], None],
        schedule_planning: Callable[[], None],
        has_unbound_claims: HasUnboundClaims,
        bind_slots: BindSlots,
    ) -> None:
        """bind_slots: the slots of gangs that wait there are kept. schedule_planning: has active gangs planned."""
        self._bind_slots = bind_slots
        self._manager = manager
        self._drop_plan = drop_plan
        self._schedule_planning = schedule_planning
        self._has_unbound_claims = has_unbound_claims

    def tick(self) -> None:
        """About once a second: slots to which no member came in time, and those kept for members that did not come to be."""
        manager = self._manager
        with manager.lock:
            now = manager.clock()
            late = sorted({slot.group for slot in manager.slots if slot.group and slot.expires <= now})
        for key in late:
            manager.quarantine.for_gang(key, "expired", partial(self._look_at, key, now), None)

    def _look_at(self, key: str, now: float) -> None:
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return
            in_vain = [slot.uid for slot in manager.slots.to_come(key) if slot.expires <= now]
            expired = self._has_expired(group, now)
            if in_vain and not expired:
                manager.places.release(group, in_vain)
                manager.notes.on_capacity_freed([key])
        if expired:
            self._end(key)
        elif in_vain:
            self._schedule_planning()

    def _has_expired(self, group: Group, now: float) -> bool:
        """Whether a member did not come for its slot in time: not while one that was given its own is in PreBind. Lock held."""
        if self._bind_slots.waits(group):
            return False
        answered = (group.members[uid].pod for uid in group.claiming & group.admitted)
        grace = _pre_bind_seconds(answered, self._has_unbound_claims)
        slots = self._manager.slots.of_group(group.key)
        return any(slot.expires + grace <= now and not slot.to_come and slot.uid not in group.held for slot in slots)

    def _end(self, key: str) -> None:
        log.info("plan expired group=%s", key)
        self._refute_unused(key)
        self._drop_plan(key)
        with self._manager.lock:  # others have their turn first
            self._deny(key)
        self._schedule_planning()

    def _refute_unused(self, key: str) -> None:
        """Members that took our answer and never came to bind are given another node next time."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return
            for slot in manager.slots.of_group(key):
                member = group.members.get(slot.uid)
                if slot.uid in group.held or member is None:
                    continue
                unasked = member.rejected_in_tree is not None or group.refuted.was_refused(slot.uid)
                if slot.uid in group.admitted and not unasked:
                    group.refuted.add(slot.uid, slot.node_name, How.DID_NOT_COME, manager.clock())
                    continue
                metrics.plan_refuted.labels(How.DID_NOT_COME).inc()
                if unasked:  # there was room, and it was not woken: kept for again when it is
                    group.refuted.sleeps(slot.uid, NO_EPOCH)

    def _deny(self, key: str) -> None:
        """The group, and those that were to start with it; not if they have, and this is an extra member's place. Lock held."""
        manager = self._manager
        group = manager.groups.get(key)
        if group is None:
            return
        gang_set = gang_set_of(manager, group)
        if all(has_started(manager, each) for each in gang_set):
            return
        stop = Diagnosis(UnschedulableReason.MEMBERS_DID_NOT_COME, messages.MEMBERS_DID_NOT_COME, manager.clock())
        for each in gang_set:
            manager.denied[each.key] = stop.message
            each.stop(stop)
