"""Who of a planned gang is sent to kube-scheduler when: nominated, and freed of our gate, wave after wave.

Admission plans and the ledger keeps the places; this says which members may come now. kube-scheduler judges one pod at a
time, with the siblings that it has assumed in place, so a member that needs another (required affinity, spread) is sent
once that one is held or bound. Alike members own slots, not names: whoever comes takes a place that was offered.
kube-scheduler has no counterpart; its own gang cycle (alpha in 1.36) judges all members in one turn.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from extender.api import corev1
from extender.framework.pod_info import PodInfo
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.collaborators import Collaborators
from extender.plugins.coscheduling.ledger import Reservation
from extender.plugins.coscheduling.pod_group_manager import Group, PodGroupManager, was_refused
from extender.plugins.coscheduling.units import unit_of

log = logging.getLogger(__name__)

EXCLUDED_SECONDS = 2.0  # how long a place that kube-scheduler refused is left out of plans


class Arrivals:
    """Steering is asked outside the manager's lock, and returns at once."""

    def __init__(self, manager: PodGroupManager, collaborators: Collaborators) -> None:
        self._manager = manager
        self._with = collaborators

    def send(self, group: Group, caller: str = "") -> None:
        """Steers the members whose turn it is: those that wait for us, and those whose place has moved.

        caller: who is being answered this moment, and needs no patch.
        """
        with self._manager.lock:
            places = self._due(group, caller)
            for pod, node_name in places:
                group.steered[pod.uid] = node_name
                group.refused.discard(pod.uid)
            group.moved = False
        if places:
            self._with.steering.steer(places)

    def _due(self, group: Group, caller: str) -> list[tuple[corev1.Pod, str]]:
        invited = self._invited(group)
        due = []
        for reservation in self._manager.ledger.of_group(group.key):
            uid = reservation.uid
            info = group.members.get(uid)
            known = group.steered.get(uid)
            if info is None or uid == caller or uid in group.held or known == reservation.node_name:
                continue
            waits = uid in group.gated or uid in group.refused
            if known is not None or (waits and (invited is None or uid in invited)):
                due.append((info.pod, reservation.node_name))
        return due

    def _invited(self, group: Group) -> set[str] | None:
        """The members whose wave has come; None for all."""
        if not group.waves:
            return None
        unit = unit_of(self._manager, group)
        coming = {uid for each in unit for uid in each.members.keys() - each.assigned() - each.held.keys()}
        invited: set[str] = set()
        for wave in group.waves:
            invited |= wave
            if wave & coming:
                return invited
        group.waves.clear()
        return None

    def settled(self, pod: corev1.Pod) -> None:
        """A member is held or bound: the next wave may be due."""
        with self._manager.lock:
            group = self._manager.find(pod)
            if group is None or not group.waves:
                return
            unit = unit_of(self._manager, group)
        for each in unit:
            self.send(each)

    def lost(self, old: corev1.Pod, new: corev1.Pod) -> bool:
        """Our nomination is gone from the API, and we did not take it. Returns whether the group has to be planned again.

        A pod that was refused with it has its place refuted; where it was not (somebody preempts there), the nomination is
        made once more, since it holds room against others.
        """
        with self._manager.lock:
            group = self._manager.find(new)
            if group is None or new.uid in group.held or group.steered.get(new.uid) != old.status.nominated_node_name:
                return False
            del group.steered[new.uid]
            place = self._manager.ledger.get(new.uid)
            if place is None:
                return False
            refused = was_refused(new) and old.status.conditions != new.status.conditions
            if refused and place.node_name == old.status.nominated_node_name:
                log.info("planned place refused by kube-scheduler pod=%s node=%s", new.key, place.node_name)
                group.excluded[new.uid, place.node_name] = self._manager.clock() + EXCLUDED_SECONDS
                group.refused.add(new.uid)
                self._manager.lose_places(group, [new.uid])
                return True
            if not refused and new.uid in group.repatched:
                return False
            group.repatched.add(new.uid)
            group.refused.add(new.uid)
        self.send(group)
        return False

    def withdraw(self, group: Group) -> None:
        """Takes back the nominations that no place stands behind any more."""
        with self._manager.lock:
            uids = [uid for uid in group.steered if self._manager.ledger.get(uid) is None and uid not in group.held]
            pods = [group.members[uid].pod for uid in uids if uid in group.members]
            for uid in uids:
                del group.steered[uid]
        if pods:
            self._with.steering.release(pods)

    def take_slot(self, group: Group, own: Reservation, offered: frozenset[str]) -> str | None:
        """A free place of an alike sibling among the nodes offered, in exchange for the member's own. Lock held."""
        ledger = self._manager.ledger
        shape = planner.shape_of(own.pod_info)
        for other in ledger.of_group(group.key):
            free = other.uid not in group.held and other.uid != own.uid
            if free and other.node_name in offered and planner.shape_of(other.pod_info) == shape:
                ledger.reserve(Reservation(own.pod_info, group.key, other.node_name, own.expires, own.firm))
                ledger.reserve(Reservation(other.pod_info, group.key, own.node_name, other.expires, other.firm))
                group.moved = other.uid in group.steered
                return other.node_name
        return None


def waves_of(placement: planner.Placement) -> list[frozenset[str]]:
    """The order of arrival that comes with a placement; empty where nobody needs a sibling in place."""
    return list(placement.waves) if len(placement.waves) > 1 else []


def needs_siblings(info: PodInfo) -> bool:
    """Whether kube-scheduler's filters look at where its siblings are: required affinity, or a spread that must hold."""
    spread = info.pod.spec.topology_spread_constraints
    return bool(info.required_affinity_terms) or any(
        constraint.when_unsatisfiable == "DoNotSchedule" for constraint in spread
    )


def cannot_be_woken(unit: Sequence[Group], waves: Sequence[frozenset[str]], caller: str) -> bool:
    """Whether a member that is not gated needs another that will only be held: kube-scheduler's own filters refuse it
    until then, and no patch of ours wakes it after. One whose term matches itself passes as the first of its kind; the
    caller has passed.
    """
    late = (uid for wave in waves[1:] for uid in wave)
    return any(
        uid != caller
        and uid not in group.gated
        and not all(term.matches(info.pod, {}) for term in info.required_affinity_terms)
        for uid in late
        for group in unit
        if (info := group.members.get(uid)) is not None
    )
