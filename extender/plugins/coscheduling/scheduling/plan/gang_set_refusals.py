"""Gang sets that find no places: why, looked at closely; noted as denied before any member hears of it, and told to their users.

GangSetPlanning brings the planner's verdict, the queue keeps what they wait for until an event or time cures it. The closer look asks
whether it is that kube-scheduler refuses the nodes, or that others have places there; relaxations ask the same questions.
kube-scheduler: pkg/scheduler/schedule_one.go (handleSchedulingFailure)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from extender import metrics
from extender.framework.status import Status, unresolvable
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dependencies import REJECTED, CoschedulingDependencies, Verdict
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher, needs_siblings
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservations
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.scheduling.rejected_in_tree import quote
from extender.plugins.coscheduling.state.diagnosis import OF_CAUSE, Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.refutations import NOWHERE
from extender.plugins.coscheduling.waits_for import WaitsFor, kinds_of

BUDGET_SECONDS = 0.2  # for one question; more may be needed where members constrain each other: then there is no answer
LOOKED_AT = frozenset((planner.Cause.ROOM, planner.Cause.NODES, planner.Cause.AFFINITY, planner.Cause.TOPOLOGY))

Fits = Callable[[PlanQuestion], bool]

SAID_BY_THE_CLUSTER = frozenset(OF_CAUSE.values()) - {UnschedulableReason.BUDGET_EXCEEDED} | {
    UnschedulableReason.RESERVED_FOR_OTHERS
}
"""Reasons that hold until the cluster, or the places kept in it, change: kube-scheduler and time have no part in them."""


class GangSetRefusals:
    """Takes the manager's lock. denied_seconds: how long a gang is not planned again, as its texts say."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        dispatcher: Dispatcher,
        holds: Holds,
        reservations: BackfillReservations,
        schedule_planning: Callable[[], None],
        *,
        denied_seconds: float,
    ) -> None:
        self._manager = manager
        self._with = dependencies
        self._dispatcher = dispatcher
        self._holds = holds
        self.reservations = reservations
        self._schedule_planning = schedule_planning
        self._denied_seconds = denied_seconds

    def deny(
        self, gang_set: Sequence[Group], stop: Diagnosis, epoch: int, waits: WaitsFor, *, passes: bool = False
    ) -> Status:
        """Noted before any member hears of it; not noted, but looked at again, if something came free meanwhile.

        passes: it is for what a filter call was offered, and the call will be over: the gang is planned again though nothing happens.
        """
        manager = self._manager
        refusal = unresolvable(messages.denied(gang_set[0].key, self._denied_seconds, stop.message))
        with manager.lock:
            gang_set = [group for group in gang_set if manager.groups.get(group.key) is group]
            if not gang_set:
                return refusal
            fresh = manager.notes.epoch == epoch
            for group in gang_set:
                group.stop(replace(stop, since=manager.clock()))
                if fresh:
                    manager.queue.add_unschedulable(group.key, waits, self._note_denied(group, stop, passes=passes))
                else:
                    manager.queue.move_to_active((group.key,))
                manager.permitted.pop(group.key, None)
            self.reservations.turns.denied(gang_set[0], stop)
            held = any(group.held for group in gang_set)
        if held:  # they would keep others out, and cannot start
            self._holds.reject_all(gang_set[0], stop.message)
        if not fresh:
            self._schedule_planning()
        metrics.podgroup_schedule_attempts.labels("unschedulable").inc()
        for group in gang_set:
            self._tell_denied(group, stop)
        return refusal

    def _note_denied(self, group: Group, stop: Diagnosis, *, passes: bool = False) -> float:
        """Returns when it is planned again though nothing happens: what passes by itself is, a spent budget, places that
        kube-scheduler refused, and what `deny` is told passes."""
        manager = self._manager
        if stop.reason is UnschedulableReason.BUDGET_EXCEEDED:
            manager.denied[group.key] = stop.message
        else:
            manager.denied.again(group.key, stop.message)
        if passes or stop.reason in (UnschedulableReason.BUDGET_EXCEEDED, UnschedulableReason.REFUTED_BY_SCHEDULER):
            return manager.denied.until(group.key)
        return math.inf

    def _tell_denied(self, group: Group, stop: Diagnosis) -> None:
        verdict = Verdict(False, REJECTED, stop.text, stop.reason)
        with self._manager.lock:
            pod_group = group.object
            gated = [info.pod for uid in group.gated if not needs_siblings(info := group.members[uid].info)]
            self._dispatcher.decide_withdrawal(group)
            if self._with.ungate_refused:
                self._dispatcher.steering.ungate(group.key, gated)
        if pod_group is None and gated:
            self._with.verdicts.decided(None, group.key, verdict, min(gated, key=lambda pod: pod.name))
        else:
            self._with.verdicts.decided(pod_group, group.key, verdict)
        self._dispatcher.steering.carry_out()


def waits_for(
    manager: PodGroupManager,
    gang_set: Sequence[Group],
    request: planner.Request,
    stop: Diagnosis,
    *,
    anything: bool = False,
) -> WaitsFor:
    """anything: kube-scheduler's refusals have a part in it; they, time and other gangs' turns may change with any event."""
    topology = request.topology
    confined = topology.required or any(sliced.sizes for sliced in request.sliced)
    keys = frozenset(level.key for level in topology.levels) if confined else frozenset[str]()
    with manager.lock:
        priority = min(map(manager.line.priority_of, gang_set))
    anything = anything or stop.reason not in SAID_BY_THE_CLUSTER or request.foreseen is not None
    return WaitsFor(kinds_of(request.members), priority, keys, anything)


def without_refusals(request: planner.Request) -> planner.Request:
    """As if kube-scheduler took every place that we would give."""
    return replace(request, excluded=frozenset(), allowed={})


def look_closer(
    manager: PodGroupManager,
    requests: PlanRequests,
    gang_set: Sequence[Group],
    question: PlanQuestion,
    stop: Diagnosis,
    fits: Fits,
) -> Diagnosis:
    """The stop as it is told. The manager's lock is not held."""
    if stop.verdict is None or stop.verdict.cause not in LOOKED_AT:
        return stop
    request = question.request
    with manager.lock:
        spec = manager.specs.of(gang_set[0])
        refused = bool(request.excluded) or any(group.refuted.times for group in gang_set)
        quoted = next(filter(None, map(quote, gang_set)), "")
    refused = refused or NOWHERE in request.allowed.values()
    asked = question.asking(replace(request, budget_seconds=BUDGET_SECONDS))
    if refused and fits(asked.asking(without_refusals(asked.request))):
        text = messages.refuted(spec.asked if spec is not None else 0)
        return replace(stop, reason=UnschedulableReason.REFUTED_BY_SCHEDULER, message=text, quote=quoted)
    if asked.others and fits(asked.without_others()):
        with manager.lock:
            own = {uid for group in gang_set for uid in group.members}
            places = {place.uid for place in requests.places_of_others(gang_set)}
        others = frozenset(places | {info.pod.uid for _, info in request.promised} - own)
        if others:  # else they have all gone meanwhile
            return replace(stop, reason=UnschedulableReason.RESERVED_FOR_OTHERS, in_the_way=others)
    return stop


def no_longer_reserved(manager: PodGroupManager, group: Group) -> Diagnosis | None:
    """The diagnosis once the members that had slots in the gang's way are bound there, and gave none of them up; None while it still
    holds. Lock held.
    """
    stop = group.last_diagnosis
    if (
        stop is None
        or stop.reason is not UnschedulableReason.RESERVED_FOR_OTHERS
        or stop.verdict is None
        or not stop.in_the_way
    ):
        return None
    if any(manager.slots.get(uid) is not None for uid in stop.in_the_way):
        return None
    return replace(
        stop, reason=OF_CAUSE.get(stop.verdict.cause, UnschedulableReason.INSUFFICIENT_RESOURCES), since=manager.clock()
    )
