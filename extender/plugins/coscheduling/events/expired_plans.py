"""Plans whose members did not come to bind in time: they are given up, and the gang is denied for a while.

The plugin's tick has it look about once a second; a gang that is given up is looked at again when its denial is over. A member with
claims that are not bound yet comes late, since kube-scheduler binds volumes after our filter and before our bind verb.
scheduler-plugins: Permit's timeout alone. kube-scheduler: plugins/volumebinding (PreBind, bindTimeoutSeconds)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.bind_slots import BindSlots
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of, has_started
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.refutations import NO_EPOCH, How
from extender.plugins.coscheduling.state.slots import Slots

log = logging.getLogger(__name__)

PRE_BIND_SECONDS = 600.0  # VolumeBinding's bindTimeoutSeconds where no other is configured

HasUnboundClaims = Callable[[corev1.Pod], bool]


def time_for_siblings(
    gang_set: Sequence[Group], arriving: str, slots: Slots, has_unbound_claims: HasUnboundClaims
) -> float:
    """What a hold may last beyond its own time while members with unbound claims are to come. The manager's lock is held.

    A member that was refused, and has no place, does not come.
    """
    coming = (
        group.members[uid].pod
        for group in gang_set
        for uid in group.claiming - group.assigned() - group.held.keys() - {arriving}
        if uid not in group.refused or slots.get(uid) is not None
    )
    return _seconds(coming, has_unbound_claims)


def time_for_place(group: Group, has_unbound_claims: HasUnboundClaims) -> float:
    """What the group's leases last longer while one that was given its place is in PreBind. The manager's lock is held."""
    answered = (group.members[uid].pod for uid in group.claiming & group.answered)
    return _seconds(answered, has_unbound_claims)


def _seconds(pods: Iterable[corev1.Pod], has_unbound_claims: HasUnboundClaims) -> float:
    return PRE_BIND_SECONDS if any(map(has_unbound_claims, pods)) else 0.0


class ExpiredPlans:
    """The manager's lock is taken for each step alone."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        has_unbound_claims: HasUnboundClaims,
        bind_slots: BindSlots,
    ) -> None:
        """bind_slots: the places of gangs that wait there are kept."""
        self._bind_slots = bind_slots
        self._manager = manager
        self._rounds = rounds
        self._has_unbound_claims = has_unbound_claims

    def tick(self) -> None:
        for key in self._expired():
            self._manager.quarantine.for_gang(key, "expired", partial(self._end, key), None)

    def _expired(self) -> list[str]:
        """Groups of which a member did not come for its place in time."""
        manager = self._manager
        now = manager.clock()
        with manager.lock:
            late = {place.group: manager.groups.get(place.group) for place in manager.slots if place.expires <= now}
            return sorted(
                key
                for key, group in late.items()
                if group is not None
                and manager.quarantine.for_gang(key, "expired", partial(self._has_expired, group, now), otherwise=False)
            )

    def _has_expired(self, group: Group, now: float) -> bool:
        if self._bind_slots.waits(group):
            return False
        grace = time_for_place(group, self._has_unbound_claims)
        places = self._manager.slots.of_group(group.key)
        return any(place.expires + grace <= now and place.uid not in group.held for place in places)

    def _end(self, key: str) -> None:
        log.info("plan expired group=%s", key)
        self._refute_unused(key)
        self._rounds.drop_plan(key)
        with self._manager.lock:  # others have their turn first
            self._deny(key)
        self._rounds.look()

    def _refute_unused(self, key: str) -> None:
        """Members that took our answer and never came to bind are given another node next time."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return
            for place in manager.slots.of_group(key):
                if place.uid in group.held:
                    continue
                member = group.members.get(place.uid)
                unasked = member is not None and member.rejected_in_tree is not None
                if place.uid in group.answered and not unasked:
                    group.refuted.add(place.uid, place.node_name, How.DID_NOT_COME, manager.clock())
                    continue
                metrics.plan_refuted.labels(How.DID_NOT_COME).inc()
                if unasked:  # there was room, and it was not woken: kept for again when it is
                    group.refuted.sleeps(place.uid, NO_EPOCH)

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
            manager.queue.later[each.key] = manager.denied.until(each.key)
