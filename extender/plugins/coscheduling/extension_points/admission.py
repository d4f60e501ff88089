"""PreFilter's checks: whether a gang may start now, and where each member goes.

In order: denied before -> enough siblings -> none held back by a foreign gate -> permitted before -> minResources -> plan.
Nothing is held for a gang that has no plan, so two gangs can never block each other. No gang is planned here: PlanningRounds
makes the plan, which the call waits for with no lock held, and not for long.
scheduler-plugins: pkg/coscheduling/core/core.go (PreFilter)
"""

from __future__ import annotations

from collections.abc import Callable

from extender import metrics
from extender.api import corev1
from extender.framework.interface import MIN_FEASIBLE_NODES_TO_FIND
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.free_to_move import is_free_to_move
from extender.plugins.coscheduling.extension_points.moved_slots import MovedSlots
from extender.plugins.coscheduling.plan_call import PlanCall
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.scheduling.lost_slots import refute
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.member import MemberEvent
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import needs, schedules_alone
from extender.plugins.coscheduling.state.refutations import How

ATTEMPTS = 3  # plans for one call: each leaves out what kube-scheduler has refused so far


Decision = tuple[str | None, Status]
"""The node that is planned for a member, None where any will do; or why it has to wait."""


class Admission:
    """rounds: has the plans made."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        dispatcher: Dispatcher,
        moved_slots: MovedSlots,
        *,
        denied_seconds: float,
    ) -> None:
        self._manager = manager
        self._moved_slots = moved_slots
        self._rounds = rounds
        self._dispatcher = dispatcher
        self._denied_seconds = denied_seconds

    def admit(self, pod: corev1.Pod, offered: frozenset[str]) -> Decision:
        """`decide`, with the plans that it needs made here: where no thread plans beside the verbs.

        offered: the nodes that kube-scheduler has found feasible for this pod.
        """
        decision, call = self.decide(pod, lambda: offered)
        while call is not None:
            self._rounds.plan_for(call)
            decision, call = self.decide(pod, lambda: offered, call)
        return decision

    def decide(
        self, pod: corev1.Pod, offered: Callable[[], frozenset[str]], before: PlanCall | None = None
    ) -> tuple[Decision, PlanCall | None]:
        """By the places that there are. The second is a call to wait for, after which this is asked again with it as `before`;
        None where the decision is the answer.

        offered: computed only where it is needed; most calls end before.
        """
        if before is not None and (refusal := self._as_planned(pod, before)) is not None:
            return (None, refusal), None
        with self._manager.lock:
            group = self._manager.group_of(pod)
            early = self.whatever_offered(group, pod)
            if early is not None or group is None:
                _end(group, pod, before)
                return (None, early or SUCCESS), None
            names = offered()
            decision = self._decide(group, pod, names)
            if decision is None:
                return self._needs_plan(group, pod, names, before)
            _end(group, pod, before)
        if before is not None:
            metrics.filter_plan_waits.labels("in_time").inc()
        self._dispatcher.send_after_answer(group, pod.uid)
        return decision, None

    def _as_planned(self, pod: corev1.Pod, call: PlanCall) -> Status | None:
        """Why the plan that the call has waited for found no places; None if it did not say so. Where there are places by now the
        member is sent as any that is parked."""
        with self._manager.lock:
            group = self._manager.find(pod)
            if group is None or pod.uid not in group.members or call.refusal is None:
                return None
            _end(group, pod, call)
            refusal = self._refuse(group, pod, call.refusal)
        metrics.filter_plan_waits.labels("in_time").inc()
        self._dispatcher.dispatch(group)
        return refusal

    def whatever_offered(self, group: Group | None, pod: corev1.Pod) -> Status | None:
        """What can be said without a look at the nodes: that the pod is of no gang, or that a check fails. Else None."""
        with self._manager.lock:
            if group is None:
                return SUCCESS
            if pod.uid not in group.members:
                return self._refusal_of_the_gone(group, pod)
            if group.members[pod.uid].pod.node_name:
                return SUCCESS  # the call is late: its bind call will be told the pod's node
            member = group.members[pod.uid]
            group.happened(pod.uid, MemberEvent.ASKED)
            member.rejected_in_tree = None
            if group.refuted.came(pod.uid, self._manager.notes.cluster_epoch) and self._enough_are_awake(group):
                self._manager.denied.pop(group.key)  # it may have been decided before this one was awake
            group.errors.came(pod.uid)
            status, member.rejection_facts = self._checks(group, pod)
            return None if status.success else self._refuse(group, pod, status)

    def set_aside(self, pod: corev1.Pod, key: str) -> Status:
        """The refusal of a member while its gang is set aside. StaleRefusals has it tried again once that is over."""
        status = unresolvable(messages.INTERNAL_ERROR)
        with self._manager.lock:
            group = self._manager.groups.get(key)
            if group is None or pod.uid not in group.members:
                return status
            group.members[pod.uid].rejection_facts = messages.INTERNAL_ERROR
            return self._refuse(group, pod, status)

    def _refusal_of_the_gone(self, group: Group, pod: corev1.Pod) -> Status:
        """A call that is late, or ahead of the watch: nothing is noted of the pod. Lock held."""
        status, _ = self._checks(group, pod)
        return status if not status.success else unresolvable(messages.MEMBER_GONE)

    def _enough_are_awake(self, group: Group) -> bool:
        """Whether a plan could be found at all: else each of many that come would be one more plan in vain. Lock held."""
        manager, spec = self._manager, self._manager.specs.of(group)
        asleep = group.refuted.nowhere(manager.clock(), manager.notes.cluster_epoch)
        return spec is not None and not (asleep and needs(group, spec, group.members.keys() - asleep))

    def _decide(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> tuple[str | None, Status] | None:
        """By the places that there are; None if there has to be a plan. Lock held."""
        place = self._place(group, pod, offered)
        if place is None and self._dispatcher.too_early(group, pod.uid):
            return None, self._refuse(group, pod, unresolvable(messages.TURN_NOT_COME))
        if place is None and self._is_sent_to_its_place(group, pod, offered):
            self._dispatcher.send_back(pod.uid)
            return None, self._refuse(group, pod, unresolvable(messages.PLACE_NOT_OFFERED))
        if place is None and self._rounds.requests.needs_plan(group, pod.uid):
            return None
        if not self._dispatcher.bind_slots.lets_in_member(group, pod.uid):
            return None, self._refuse(group, pod, unresolvable(messages.BIND_CALLS_TAKEN))
        group.happened(pod.uid, MemberEvent.PASSED if place is None else MemberEvent.ADMITTED)
        return place, SUCCESS

    def _checks(self, group: Group, pod: corev1.Pod) -> tuple[Status, str]:
        """With what of a refusal may become untrue."""
        manager = self._manager
        cause = manager.denied.get(group.key)
        if cause is not None and not self._schedules_alone(group, pod.uid):
            return unresolvable(messages.denied(group.key, self._denied_seconds, cause)), ""
        failed = failed_check(manager, group, pod.spec.scheduler_name, pod.name, pod.uid)
        return (unresolvable(failed.refusal), failed.told) if failed is not None else (SUCCESS, "")

    def _schedules_alone(self, group: Group, uid: str) -> bool:
        spec = self._manager.specs.of(group)
        return spec is not None and schedules_alone(group, spec, uid)

    def _place(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> str | None:
        """The node of the slot that the member takes, or where it is held still. Where none will do its own is moved, or given up."""
        own = self._manager.slots.get(pod.uid)
        if own is None and pod.uid in group.held:
            node = group.held[pod.uid]
            return node if node in offered else None
        node_name = self._dispatcher.take_slot(group, pod.uid, offered)
        if node_name is not None:
            return node_name
        if own is not None and not self._dispatcher.too_early(group, pod.uid) and not _by_nomination(pod, offered):
            if (moved := self._moved_slots.move(group, pod.uid, offered)) is not None:
                return moved
            if self._is_sent_to_its_place(group, pod, offered):
                return None
            refute(self._manager, group, own, How.NOT_OFFERED, offered)
            self._manager.places.release(group, [pod.uid])
        return None

    def _is_sent_to_its_place(self, group: Group, pod: corev1.Pod, offered: frozenset[str]) -> bool:
        """Whether the member keeps its slot, is refused, and nominated there: the sample that is offered does not hold it, and has no room
        for it to be moved to, or kube-scheduler has not heard of the nomination yet, and its snapshot may be older than the room. The
        plan is good as it is, and other samples are. Lock held."""
        member, slot = group.members[pod.uid], self._manager.slots.get(pod.uid)
        if slot is None:
            return False
        if member.is_nominated_since(pod):
            return True
        if len(offered) < MIN_FEASIBLE_NODES_TO_FIND or member.is_nominated:
            return False
        return member.ungated_without_nomination or is_free_to_move(self._manager, group, slot)

    def _needs_plan(
        self, group: Group, pod: corev1.Pod, offered: frozenset[str], before: PlanCall | None
    ) -> tuple[Decision, PlanCall | None]:
        """Has the gang planned, and says whether the call may wait for it. Lock held."""
        if before is not None and before.done.is_set():
            _end(group, pod, before)
            if before.attempts + 1 >= ATTEMPTS:
                group.stop(
                    Diagnosis(
                        UnschedulableReason.REFUTED_BY_SCHEDULER, messages.PLACE_NOT_OFFERED, self._manager.clock()
                    )
                )
                return (None, self._refuse(group, pod, unresolvable(messages.PLACE_NOT_OFFERED))), None
        pending = unresolvable(messages.PLAN_PENDING)
        allowed = None if _by_nomination(pod, offered) else offered
        call = self._rounds.call(group, pod, allowed, before)
        if call is not None:
            return (None, pending), call
        metrics.filter_plan_waits.labels("late").inc()
        last = group.last_diagnosis
        if (
            last is not None and last.verdict is not None
        ):  # stands until the new plan is there: another text costs a patch
            text = messages.denied(group.key, self._denied_seconds, last.message)
            return (None, self._refuse(group, pod, unresolvable(text))), None
        refusal = self._refuse(group, pod, pending)
        group.members[pod.uid].rejection_facts = messages.PLAN_PENDING
        return (None, refusal), None

    def _refuse(self, group: Group, pod: corev1.Pod, status: Status) -> Status:
        """kube-scheduler parks it, and clears its nomination. Lock held."""
        group.happened(pod.uid, MemberEvent.REFUSED)
        group.errors.refused(pod.uid)
        member = group.members[pod.uid]
        member.last_rejection = status.message
        member.doubt_nomination()
        return status


def _end(group: Group | None, pod: corev1.Pod, call: PlanCall | None) -> None:
    """The filter call is answered. Lock held."""
    if group is not None and call is not None and group.calls.get(pod.uid) is call:
        del group.calls[pod.uid]


def _by_nomination(pod: corev1.Pod, offered: frozenset[str]) -> bool:
    """Whether kube-scheduler has asked about the nominated node alone: where that is refused, it goes on with the others."""
    return offered == {pod.status.nominated_node_name}
