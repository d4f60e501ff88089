"""PreFilter's gates: whether a gang may start now, and where each member goes.

In order: denied before -> enough siblings -> none held back by a foreign gate -> permitted before -> minResources -> plan.
Nothing is held for a gang that has no plan, so two gangs can never block each other.
scheduler-plugins: pkg/coscheduling/core/core.go (PreFilter)
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial

from extender.api import corev1
from extender.crash import guarded
from extender.framework.listers import Nominator
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.arrivals import Arrivals
from extender.plugins.coscheduling.batches import recall_batches
from extender.plugins.coscheduling.collaborators import Collaborators
from extender.plugins.coscheduling.gang_observer import GangObserver
from extender.plugins.coscheduling.gates import shut_gate
from extender.plugins.coscheduling.group import Group
from extender.plugins.coscheduling.lost_places import refute
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.quorum import is_free, needs
from extender.plugins.coscheduling.refused_unasked import refusals_stand
from extender.plugins.coscheduling.refutations import How
from extender.plugins.coscheduling.stale_refusals import StaleRefusals
from extender.plugins.coscheduling.stops import Reason, Stop
from extender.plugins.coscheduling.unit_planning import UnitPlanning
from extender.plugins.coscheduling.units import unit_of

log = logging.getLogger(__name__)

BEGUN_SECONDS = 2.0  # after which no further plan is made before the first answer
TURN_SECONDS = 5.0  # after which the background does something else, before it goes on planning
ATTEMPTS = 3  # plans for one call: each leaves out what kube-scheduler has refused so far


class Admission:
    """Lock order: planning, then the manager's lock. Planning itself runs under `planning` only, one plan at a time."""

    def __init__(
        self,
        manager: PodGroupManager,
        collaborators: Collaborators,
        nominator: Nominator,
        *,
        denied_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._manager = manager
        self._with = collaborators
        self._denied_seconds = denied_seconds
        self.planning = threading.Lock()
        self.arrivals = Arrivals(manager, collaborators)
        self._units = UnitPlanning(
            manager,
            collaborators,
            nominator,
            self.arrivals,
            self.look,
            denied_seconds=denied_seconds,
            lease_seconds=lease_seconds,
        )
        self.requests = self._units.requests
        self.shadows = self._units.shadows
        self._begun_finished = threading.Event()
        self.observer = GangObserver(manager, collaborators)
        self.stale_refusals = StaleRefusals(manager, collaborators.steering)

    def admit(self, pod: corev1.Pod, offered: frozenset[str]) -> tuple[str | None, Status]:
        """The node that is planned for a member, None where any will do; or why it has to wait.

        offered: the nodes that kube-scheduler has found feasible for this pod.
        """
        with self._manager.lock:
            early = self.whatever_offered(pod)
            group = self._manager.group_of(pod)
            if early is not None or group is None:
                return None, early or SUCCESS
            decided = self._decide(group, pod, offered)
        if decided is None:
            decided = self._plan_for(group, pod, offered)
        self.arrivals.send_after_answer(group, pod.uid)
        return decided

    def whatever_offered(self, pod: corev1.Pod) -> Status | None:
        """What can be said without a look at the nodes: that the pod is of no gang, or that a gate is shut. Else None."""
        with self._manager.lock:
            group = self._manager.group_of(pod)
            if group is None:
                return SUCCESS
            group.unasked.pop(pod.uid, None)
            if group.refuted.came(pod.uid, self._manager.cluster_epoch) and self._enough_are_awake(group):
                self._manager.denied.pop(group.key)  # it may have been decided before this one was awake
            group.errors.came(pod.uid)
            status, told = self._gates(group, pod)
            if told:
                group.told[pod.uid] = told
            else:
                group.told.pop(pod.uid, None)
            return None if status.success else self._refuse(group, pod, status)

    def _enough_are_awake(self, group: Group) -> bool:
        """Whether a plan could be found at all: else each of many that come would be one more plan in vain. Lock held."""
        manager, spec = self._manager, self._manager.spec(group)
        asleep = group.refuted.nowhere(manager.clock(), manager.cluster_epoch)
        return spec is not None and not (asleep and needs(group, spec, group.members.keys() - asleep))

    def _decide(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> tuple[str | None, Status] | None:
        """By the places that there are; None if there has to be a plan. Lock held."""
        group.answered.discard(pod.uid)
        place = self._place(group, pod, offered)
        if place is None and self.arrivals.too_early(group, pod.uid):
            return None, self._refuse(group, pod, unresolvable(messages.TURN_NOT_COME))
        if place is None and self._needs_plan(group, pod):
            return None
        group.refused.discard(pod.uid)
        if place is not None:
            group.answered.add(pod.uid)
        return place, SUCCESS

    def _gates(self, group: Group, pod: corev1.Pod) -> tuple[Status, str]:
        """With what of a refusal may become untrue."""
        manager = self._manager
        cause = manager.denied.get(group.key)
        spec = manager.spec(group)
        if cause is not None and (spec is None or not is_free(group, spec, pod.uid)):
            return unresolvable(messages.denied(group.key, self._denied_seconds, cause)), ""
        gate = shut_gate(manager, group, pod.spec.scheduler_name, pod.name, pod.uid)
        return (unresolvable(gate.refusal), gate.told) if gate is not None else (SUCCESS, "")

    def _place(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> str | None:
        """The member's own place, or, where that is not offered, the free one of an alike sibling."""
        ledger = self._manager.ledger
        own = ledger.get(pod.uid)
        if own is None:
            node = group.held.get(pod.uid)
            return node if node in offered else None
        early = self.arrivals.too_early(group, pod.uid)
        if own.node_name in offered and not early:
            return own.node_name
        slot = self.arrivals.take_slot(group, own, offered)
        if slot is not None:
            return slot
        if not early and not _by_nomination(pod, offered):
            refute(self._manager, group, own, How.NOT_OFFERED, offered)
            ledger.release(pod.uid)
        return None

    def waits_for_plan(self, pod: corev1.Pod) -> bool:
        """Whether the pod is of a gang that has to have a plan before this member may go anywhere."""
        with self._manager.lock:
            group = self._manager.group_of(pod)
            if group is None:
                return False
            spec = self._manager.spec(group)
            return spec is None or bool(spec.invalid) or self._needs_plan(group, pod)

    def _needs_plan(self, group: Group, pod: corev1.Pod) -> bool:
        """An extra member of a gang that has its quorum passes as a single pod."""
        spec = self._manager.spec(group)
        if spec is None or is_free(group, spec, pod.uid):
            return False
        return any(self.requests.lacks(each, pod.uid) for each in unit_of(self._manager, group))

    def _plan_for(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> tuple[str | None, Status]:
        """Plans those that come first, then the pod's own group, until the pod has a place that was offered."""
        manager = self._manager
        allowed = {} if _by_nomination(pod, offered) else {pod.uid: offered}
        with self.planning:
            self._plan_waiting(before=group)
            for _ in range(ATTEMPTS):
                status = self._plan(group, pod.spec.scheduler_name, allowed, caller=pod.uid)
                with manager.lock:
                    if not status.success:
                        return None, self._refuse(group, pod, status)
                    decided = self._decide(group, pod, offered)
                    if decided is not None:
                        return decided
            with manager.lock:
                group.stop(Stop(Reason.REFUTED_BY_SCHEDULER, messages.PLACE_NOT_OFFERED, manager.clock()))
                return None, self._refuse(group, pod, unresolvable(messages.PLACE_NOT_OFFERED))

    def _refuse(self, group: Group, pod: corev1.Pod, status: Status) -> Status:
        """kube-scheduler parks it, and clears its nomination. Lock held."""
        group.refused.add(pod.uid)
        group.errors.refused(pod.uid)
        group.answered.discard(pod.uid)
        group.said[pod.uid] = status.message
        if pod.uid in group.steered:
            group.steered[pod.uid] = ""
        return status

    def finish_begun(self) -> None:
        """Once since we lead: the gangs of which a part runs are planned before anybody is answered, whatever their priority.

        They began to start before a restart, and nobody else may have the room that their missing members need.
        """
        if self._begun_finished.is_set() or not self._with.may_plan():
            return
        manager = self._manager
        with self.planning:
            if self._begun_finished.is_set():
                return
            until = manager.clock() + BEGUN_SECONDS
            with manager.lock:
                refusals_stand(manager)
                recall_batches(manager)
                begun = sorted(filter(manager.begun, manager.groups.values()), key=manager.order)
                manager.queue.active.update(group.key for group in begun)
            for group in begun:
                if manager.clock() >= until:
                    self.look()  # the others follow in the background
                    break
                guarded("plan", partial(self._plan_if_it_waits, group))
            self._begun_finished.set()

    def begin_anew(self) -> None:
        """We lead no more: what others begin meanwhile is to be finished when we do again."""
        self._begun_finished.clear()

    def look(self) -> None:
        """Has `plan_waiting` run in the background."""
        self._with.submit("plan", self.plan_waiting)

    def plan_waiting(self) -> None:
        """Plans every group that waits and may fit now, in order, and steers the members that are parked."""
        with self.planning:
            self._plan_waiting(before=None)

    def _plan_waiting(self, before: Group | None) -> None:
        """Only groups that something has happened to: the others were refused on no worse a cluster."""
        manager = self._manager
        if not self._with.may_plan():
            return
        with manager.lock:
            limit = manager.order(before) if before is not None else None
            own = unit_of(manager, before) if before is not None else ()
            touched = [group for key in manager.queue.active if (group := manager.groups.get(key)) and group not in own]
            touched.sort(key=manager.order)
        until = manager.clock() + TURN_SECONDS
        for group in touched:
            if before is None and manager.clock() >= until:
                self.look()  # the others, when what else there is to do has had its turn
                return
            with manager.lock:
                if limit is not None and manager.order(group) > limit:
                    return
            guarded("plan", partial(self._plan_if_it_waits, group))  # one gang's fault is not to stop the others

    def _plan(self, group: Group, scheduler_name: str, allowed: Mapping[str, frozenset[str]], *, caller: str) -> Status:
        """Whatever it raises, nothing is left half planned, and the gang is looked at again."""
        try:
            status = self._units.plan(group, scheduler_name, allowed, caller=caller)
        except Exception:
            self._units.abandon(group)
            raise
        group.faults = 0
        return status

    def _plan_if_it_waits(self, group: Group) -> None:
        try:
            with self._manager.lock:
                self._manager.queue.active.discard(group.key)
                scheduler_name = self._waits(group)
            if scheduler_name is None:
                self.arrivals.withdraw(group)
        except Exception:
            self._units.abandon(group)
            raise
        if scheduler_name is not None:
            self._plan(group, scheduler_name, {}, caller="")

    def _waits(self, group: Group) -> str | None:
        """The scheduler of the members that a plan would help; None where there are none, or the gates are shut. Lock held."""
        manager = self._manager
        spec = manager.spec(group)
        if group.key in manager.denied or spec is None:
            return None
        if len(group.members) < spec.min_member and not (group.once_whole or group.started):
            return None  # by counting alone: members come one by one, and this is asked after each
        sent = group.steered.keys()  # who lost its place while its gate went is in no other set
        waiting = group.members.keys() if manager.begun(group) else group.refused | group.gated | sent
        unplaced = (waiting & group.members.keys()) - self._manager.placed(group)
        concerned = {uid for uid in unplaced if uid in group.gated or not is_free(group, spec, uid)}
        pods = [pod for uid in concerned if self._with.ours(pod := group.members[uid].pod)]
        if not pods:
            return None
        pod = min(pods, key=lambda pod: pod.name)
        if not self._gates(group, pod)[0].success:
            return None
        if not self._needs_plan(group, pod) and not unplaced & group.gated:
            return None
        return pod.spec.scheduler_name

    def on_no_room(self, call: Callable[[Group, str], None]) -> None:
        """call: told, with the scheduler's name, of each group that finds no room. It returns at once."""
        self._units.on_no_room = call

    def on_denied(self, end_holds: Callable[[Group, str], None]) -> None:
        """end_holds: lets go all members of a unit that are held, when there is no plan for the rest of it; with the cause."""
        self._units.end_holds = end_holds

    def drop_plan(self, key: str) -> None:
        """Takes back the places of a group, and of those it is to start with, that are not held."""
        self._units.drop(key)


def _by_nomination(pod: corev1.Pod, offered: frozenset[str]) -> bool:
    """Whether kube-scheduler has asked about the nominated node alone: where that is refused, it goes on with the others."""
    return offered == {pod.status.nominated_node_name}
