"""What kube-scheduler says of members on their way: a nomination of ours is gone, or its own filters have refused one.

GroupEvents asks with each change of a pod. It is a matter of the member's turn (Arrivals sends it again), or of its place, which is
refuted and planned anew.
kube-scheduler: pkg/scheduler/schedule_one.go (handleSchedulingFailure) writes what is read here
"""

from __future__ import annotations

import logging

from extender.api import corev1
from extender.plugins.coscheduling.scheduling.arrivals import Arrivals
from extender.plugins.coscheduling.scheduling.lost_places import refute
from extender.plugins.coscheduling.scheduling.refused_unasked import note_refused
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.ledger import Reservation
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_conditions import (
    no_candidate_was_left,
    refused_in_tree,
    taken_back,
    was_gated,
)
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.refutations import How

log = logging.getLogger(__name__)


class Rebuffs:
    """Takes the manager's lock, and lets it go before anybody is sent."""

    def __init__(self, manager: PodGroupManager, arrivals: Arrivals) -> None:
        self._manager = manager
        self._arrivals = arrivals

    def lost(self, old: corev1.Pod, new: corev1.Pod) -> bool:
        """Our nomination is gone from the API, and we did not take it. Returns whether the group has to be planned again.

        A pod that kube-scheduler's own filters have refused with it has its place refuted; otherwise (somebody preempts
        there, our filter said no, its binding failed) the nomination is made once more, since it holds room against others.
        """
        with self._manager.lock:
            group = self._manager.find(new)
            member = group.members.get(new.uid) if group is not None else None
            if group is None or member is None or new.uid in group.held:
                return False
            if member.nomination != old.status.nominated_node_name:
                return False
            if taken_back(old, new):
                return False  # by us, before the place was promised again: that patch is to come
            group.happened(new.uid, MemberEvent.NOMINATION_CLEARED)
            member.nomination = None
            place = self._manager.ledger.get(new.uid)
            if place is None:
                return False
            refused = refused_in_tree(old, new, member.last_rejection)
            if self._arrivals.too_early(group, new.uid) or group.preempting is not None:
                group.happened(
                    new.uid, MemberEvent.PARKED
                )  # sent once more when its turn comes: that says nothing about its place
                return False
            if refused and place.node_name == old.status.nominated_node_name:
                self._refute(group, place)
                return True
            if not refused and member.renominated:
                return False
            member.renominated = True
            group.happened(new.uid, MemberEvent.PARKED)
        self._arrivals.send(group)
        return False

    def parked(self, old: corev1.Pod, new: corev1.Pod) -> bool:
        """A planned member of which we have not been asked may have been refused by kube-scheduler's own filters: it came
        before its turn, or before our patch, and is nominated when its turn comes. One that our gate held until it was sent
        has its place refuted instead; and so has one that keeps its nomination, as it does where it might have preempted and
        our verb said no. Nothing follows while the gang preempts. Returns whether the group has to be planned again.
        """
        with self._manager.lock:
            group = self._manager.find(new)
            if group is None or new.uid not in group.members or new.uid in group.held:
                return False
            if not refused_in_tree(old, new, group.members[new.uid].last_rejection):
                return False
            place = self._manager.ledger.get(new.uid)
            nominated = new.status.nominated_node_name
            if place is None or (nominated and not _kept_in_vain(place, old, new)):
                return False
            if group.preempting is not None:  # of course: its room is not free yet, and it is sent once that is
                self._note_parked(group, new.uid)
                return False
            if nominated or (was_gated(old) and not group.waves):
                self._refute(group, place)
                return True
            self._note_parked(group, new.uid)
            if not group.waves:
                note_refused(self._manager, group, place)
        self._arrivals.send(group)
        return False

    def _refute(self, group: Group, place: Reservation) -> None:
        """Lock held."""
        log.info("planned place refused by kube-scheduler pod=%s node=%s", place.pod.key, place.node_name)
        refute(self._manager, group, place, How.REFUSED)
        group.happened(place.uid, MemberEvent.PARKED)
        self._manager.lose_places(group, [place.uid])

    def _note_parked(self, group: Group, uid: str) -> None:
        """Lock held."""
        group.happened(uid, MemberEvent.PARKED)
        group.members[uid].doubt_nomination()


def _kept_in_vain(place: Reservation, old: corev1.Pod, new: corev1.Pod) -> bool:
    """Whether it was refused with the nomination to its place, and is to come no more: not while somebody goes there."""
    kept = old.status.nominated_node_name == new.status.nominated_node_name == place.node_name
    return kept and no_candidate_was_left(new)
