"""One plan of one gang set: asked of the planner, noted as slots and sent out, or noted as denied before any member hears of it.

A gang set is a group, or the groups that start together. PlanningRounds decides which gang set is planned when.
No counterpart upstream.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from extender import metrics
from extender.framework.listers import NodeInfoLister, Nominator
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dependencies import REJECTED, CoschedulingDependencies, Verdict
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher, cannot_be_woken, needs_siblings, waves_of
from extender.plugins.coscheduling.planner.room import Counting
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservations
from extender.plugins.coscheduling.scheduling.checks import note_extra_members
from extender.plugins.coscheduling.scheduling.lost_slots import recheck
from extender.plugins.coscheduling.scheduling.plan_request import PlannedGangSet, PlanQuestion, PlanRequests
from extender.plugins.coscheduling.scheduling.rejected_in_tree import exclude_members_that_will_not_return, lease_of
from extender.plugins.coscheduling.scheduling.room_diagnosis import look_closer
from extender.plugins.coscheduling.state.diagnosis import OF_CAUSE, Diagnosis, UnschedulableReason, diagnosis_of_plan
from extender.plugins.coscheduling.state.gang_sets import chosen_groups, gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.slots import Slot
from extender.plugins.coscheduling.waits_for import ANYTHING, OWN_EVENTS, WaitsFor, kinds_of

log = logging.getLogger(__name__)

EVICTIONS_MAY_CURE = frozenset(
    (planner.Cause.ROOM, planner.Cause.NODES, planner.Cause.AFFINITY, planner.Cause.TOPOLOGY)
)
SAID_BY_THE_CLUSTER = frozenset(OF_CAUSE.values()) - {UnschedulableReason.BUDGET_EXCEEDED} | {
    UnschedulableReason.RESERVED_FOR_OTHERS
}
"""Reasons that hold until the cluster, or the places kept in it, change: kube-scheduler and time have no part in them."""


class GangSetPlanning:
    """One plan at a time: PlanningRounds' lock is held around `plan`. The manager's lock is taken, and not held while planning.

    schedule_planning: has active gangs planned. planning: that lock.
    """

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        nominator: Nominator,
        dispatcher: Dispatcher,
        schedule_planning: Callable[[], None],
        planning: AbstractContextManager[object],
        *,
        denied_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._manager = manager
        self._with = dependencies
        self._dispatcher = dispatcher
        self._schedule_planning = schedule_planning
        self._denied_seconds = denied_seconds
        self._lease_seconds = lease_seconds
        self._counting = Counting()
        self.requests = PlanRequests(manager, nominator, dependencies.topology)
        self.reservations = BackfillReservations(manager, dependencies, self.requests, schedule_planning, planning)
        self.on_no_room: Callable[[Group, str], None] = lambda group, scheduler_name: None
        self.end_holds: Callable[[Group, str], None] = lambda group, cause: None

    def plan(self, group: Group, scheduler_name: str, allowed: Mapping[str, frozenset[str]], *, caller: str) -> Status:
        """Success if there are slots for it now; allowed and caller as the planner's request has them."""
        manager = self._manager
        with manager.lock:
            epoch = manager.epoch  # before the snapshot: what comes free after it voids a denial
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            if manager.spec(group) is None:
                return unresolvable(messages.POD_GROUP_NOT_FOUND)
            gang_set = gang_set_of(manager, group)
            planned = PlannedGangSet.of(manager, gang_set)
            question = self.requests.question(gang_set, scheduler_name, snapshot, allowed, caller=caller)
            request = question.request
            permitted = self.reservations.permitted(gang_set, question)
            gap = {name: None for each in gang_set for name in self._gap(each, request, snapshot)}
        if gap:
            self.on_no_room(group, scheduler_name)
            stop = Diagnosis(UnschedulableReason.MIN_RESOURCES, messages.resource_gap(tuple(gap)))
            return self._deny(gang_set, stop, epoch, WaitsFor((), room_anywhere=True))
        if (known := self._still_short(gang_set, request, snapshot)) is not None:
            self.on_no_room(group, scheduler_name)
            return self._deny(gang_set, known, epoch, self._waits_for(gang_set, request, known))
        result = self._plan(permitted)
        if not isinstance(result, planner.Placement):
            # perhaps the gang fits otherwise than beside the places that it still has
            if not _gave_up(result) and self._let_go(gang_set):
                status = self.plan(group, scheduler_name, allowed, caller=caller)
                if not status.success:
                    self._room_came_free([each.key for each in gang_set])  # for others
                return status
            stop = self._diagnosis_of(gang_set, question, permitted, result)
            log.info("gang refused group=%s reason=%s message=%r", group.key, stop.reason, stop.text)
            anything = self._kept_from_nodes(question, allowed, stop)
            status = self._deny(gang_set, stop, epoch, self._waits_for(gang_set, request, stop, anything=anything))
            if isinstance(result, planner.Verdict) and result.cause in EVICTIONS_MAY_CURE:
                self.on_no_room(group, scheduler_name)
            return status
        if exclude_members_that_will_not_return(
            manager, gang_set, permitted.request, result.nodes, lambda asked: self._fits(permitted.asking(asked))
        ):
            return self.plan(group, scheduler_name, allowed, caller=caller)
        waves = waves_of(result)
        with manager.lock:
            if request.tree is not None:
                gang_set = chosen_groups(manager, gang_set, result.nodes.keys())
                planned = planned.only(gang_set)
            stuck = cannot_be_woken(gang_set, waves, caller)
        if stuck:
            stop = Diagnosis(UnschedulableReason.NEEDS_GATE, messages.needs_gate(manager.gate))
            return self._deny(gang_set, stop, epoch, ANYTHING)
        if not self._note(planned, gang_set, request, result, waves, caller, snapshot):
            return self._changed_meanwhile(gang_set)
        for each in gang_set:
            cause = note_extra_members(manager, self.requests, each, scheduler_name, snapshot, self._plan)
            if cause in EVICTIONS_MAY_CURE:
                self.on_no_room(each, scheduler_name)
        return SUCCESS

    def _diagnosis_of(
        self,
        gang_set: Sequence[Group],
        question: PlanQuestion,
        permitted: PlanQuestion,
        result: object,
    ) -> Diagnosis:
        """permitted: the question without the nodes that are kept free for another gang, which is what was planned."""
        with self._manager.lock:
            spec = self._manager.spec(gang_set[0])
        minimum = spec.min_member if spec is not None else 0
        if permitted is not question and self._fits(question):
            return Diagnosis(UnschedulableReason.ORDERED_AFTER_OTHERS, messages.kept_free(minimum))
        stop = diagnosis_of_plan([each.key for each in gang_set], minimum, result)
        return look_closer(self._manager, self.requests, gang_set, permitted, stop, self._fits)

    def _plan(self, question: PlanQuestion) -> object:
        return self._with.offload(planner.plan, question.cluster, question.request, self._with.judges.plans)

    def _fits(self, question: PlanQuestion) -> bool:
        return isinstance(self._plan(question), planner.Placement)

    def _gap(self, group: Group, request: planner.Request, snapshot: NodeInfoLister) -> tuple[str, ...]:
        spec = self._manager.spec(group)
        if spec is None or group.key in self._manager.permitted or not request.needed:
            return ()
        return self.requests.resource_gap(group, spec, snapshot)

    def _room_came_free(self, but: Sequence[str]) -> None:
        with self._manager.lock:
            self._manager.on_capacity_freed(but)
        self._schedule_planning()

    def _let_go(self, gang_set: Sequence[Group]) -> bool:
        """Gives up the gang set's places but those of held members. Returns whether there were any."""
        with self._manager.lock:
            return bool([group for group in gang_set if self._manager.give_up_places(group)])

    def _short(self, request: planner.Request, stop: Diagnosis, snapshot: NodeInfoLister) -> bool:
        """Whether counting alone shows that it finds no room, for want of what ran out when it was planned last."""
        resource = (
            stop.verdict.resource if stop.verdict is not None and stop.verdict.cause is planner.Cause.ROOM else ""
        )
        return self._counting.too_little(snapshot, request, resource)

    def _still_short(
        self, gang_set: Sequence[Group], request: planner.Request, snapshot: NodeInfoLister
    ) -> Diagnosis | None:
        """Its last stop, where a plan could only come to the same."""
        with self._manager.lock:
            last = gang_set[0].last_diagnosis
            has_places = any(self._manager.slots.of_group(each.key) for each in gang_set)  # it might fit without them
            spec = self._manager.spec(gang_set[0])
        if last is None or last.reason is not UnschedulableReason.INSUFFICIENT_RESOURCES or last.verdict is None:
            return None
        if has_places or not self._short(request, last, snapshot):
            return None
        minimum = spec.min_member if spec is not None else 0
        return diagnosis_of_plan([each.key for each in gang_set], minimum, last.verdict)

    def _kept_from_nodes(self, question: PlanQuestion, offered: Collection[str], stop: Diagnosis) -> bool:
        """Whether it may be for nodes that kube-scheduler has refused, or has not offered, that the gang finds no places. offered: the
        UIDs of members whose filter calls wait for the plan."""
        request = question.request
        confined = {uid: nodes for uid, nodes in request.allowed.items() if uid not in offered}
        if request.excluded or confined or stop.reason not in SAID_BY_THE_CLUSTER:
            return True
        if not offered or self._short(request, stop, question.snapshot):
            return False
        return self._fits(question.asking(replace(request, allowed={})))

    def _waits_for(
        self, gang_set: Sequence[Group], request: planner.Request, stop: Diagnosis, *, anything: bool = False
    ) -> WaitsFor:
        """anything: kube-scheduler's refusals have a part in it; they, time and other gangs' turns may change with any event."""
        topology = request.topology
        keys = frozenset(level.key for level in topology.levels) if topology.required else frozenset[str]()
        with self._manager.lock:
            priority = min(map(self._manager.priority_of, gang_set))
        anything = anything or stop.reason not in SAID_BY_THE_CLUSTER
        return WaitsFor(kinds_of(request.members), priority, keys, anything)

    def _deny(self, gang_set: Sequence[Group], stop: Diagnosis, epoch: int, waits: WaitsFor) -> Status:
        """Noted before any member hears of it; not noted, but looked at again, if something came free meanwhile."""
        manager = self._manager
        refusal = unresolvable(messages.denied(gang_set[0].key, self._denied_seconds, stop.message))
        with manager.lock:
            gang_set = [group for group in gang_set if manager.groups.get(group.key) is group]
            if not gang_set:
                return refusal
            fresh = manager.epoch == epoch
            for group in gang_set:
                group.stop(replace(stop, since=manager.clock()))
                if fresh:
                    manager.queue.add_unschedulable(group.key, waits, self._note_denied(group, stop))
                else:
                    manager.queue.move_to_active((group.key,))
                manager.permitted.pop(group.key, None)
            self.reservations.denied(gang_set[0], stop)
            held = any(group.held for group in gang_set)
        if held:  # they would keep others out, and cannot start
            self.end_holds(gang_set[0], stop.message)
        if not fresh:
            self._schedule_planning()
        metrics.podgroup_schedule_attempts.labels("unschedulable").inc()
        for group in gang_set:
            self._tell_denied(group, stop)
        return refusal

    def _note_denied(self, group: Group, stop: Diagnosis) -> float:
        """Returns when it is planned again though nothing happens: what passes by itself is, a spent budget and places that
        kube-scheduler refused."""
        manager = self._manager
        if stop.reason is UnschedulableReason.BUDGET_EXCEEDED:
            manager.denied[group.key] = stop.message
        else:
            manager.denied.again(group.key, stop.message)
        if stop.reason in (UnschedulableReason.BUDGET_EXCEEDED, UnschedulableReason.REFUTED_BY_SCHEDULER):
            return manager.denied.until(group.key)
        return math.inf

    def _tell_denied(self, group: Group, stop: Diagnosis) -> None:
        verdict = Verdict(False, REJECTED, stop.text, stop.reason)
        with self._manager.lock:
            pod_group = group.pod_group
            gated = [info.pod for uid in group.gated if not needs_siblings(info := group.members[uid].info)]
            self._dispatcher.decide_withdrawal(group)
            if self._with.ungate_refused:
                self._dispatcher.steering.ungate(group.key, gated)
        if pod_group is None and gated:
            self._with.verdicts.decided(None, group.key, verdict, min(gated, key=lambda pod: pod.name))
        else:
            self._with.verdicts.decided(pod_group, group.key, verdict)
        self._dispatcher.steering.carry_out()

    def _changed_meanwhile(self, gang_set: Sequence[Group]) -> Status:
        """The plan is for what is no more: it is made anew, where there is still something to be planned."""
        manager = self._manager
        log.info("plan void group=%s", gang_set[0].key)
        with manager.lock:
            manager.queue.move_to_active(each.key for each in gang_set if manager.groups.get(each.key) is each)
        self._schedule_planning()
        return unresolvable(messages.CHANGED_MEANWHILE)

    def _note(
        self,
        planned: PlannedGangSet,
        gang_set: Sequence[Group],
        request: planner.Request,
        result: planner.Placement,
        waves: list[frozenset[str]],
        caller: str,
        snapshot: NodeInfoLister,
    ) -> bool:
        """Returns whether the gang set may still start by it; else nothing is noted."""
        manager = self._manager
        with manager.lock:
            if not planned.may_start_with(manager, result.nodes.keys()):
                return False
            expires = manager.clock() + lease_of(gang_set, result.nodes, self._lease_seconds)
            note_places(manager, gang_set, request, result, waves, expires)
            for group in gang_set:
                group.last_diagnosis = None
                manager.permitted[group.key] = True
            asking = next((group for group in gang_set if caller in group.members), None)
            if asking is not None and caller in request.allowed:
                self._dispatcher.take_slot(asking, caller, request.allowed[caller])
            self.reservations.planned(gang_set)
        for group in gang_set:
            if result.nodes:  # else it only wanted to know whether extra members fit
                log.info("gang planned group=%s members=%d", group.key, len(result.nodes))
                metrics.podgroup_schedule_attempts.labels("planned").inc()
            self._dispatcher.dispatch(group)
            self._dispatcher.clear_nominations(group)
        if recheck(manager, set(result.nodes.values()), snapshot):  # places of lower priority that were taken
            self._schedule_planning()
        return True

    def drop(self, key: str) -> None:
        """Takes back the places of a gang set that are not held. Our nominations go with the next look, if no plan renews them."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return
            gang_set = gang_set_of(manager, group)
            if self._let_go(gang_set):
                manager.on_capacity_freed()
            for each in gang_set:
                manager.forget_notes(each.key)
                manager.queue.move_to_active((each.key,))
                if manager.queue.backs_off(each.key):
                    self._dispatcher.decide_withdrawal(each)
        self._schedule_planning()
        self._dispatcher.steering.carry_out()


def _gave_up(result: object) -> bool:
    """Whether time ran out: that says nothing about the places that the gang set still has."""
    return isinstance(result, planner.Verdict) and result.cause is planner.Cause.BUDGET


def note_places(
    manager: PodGroupManager,
    gang_set: Sequence[Group],
    request: planner.Request,
    placement: planner.Placement,
    waves: Sequence[frozenset[str]],
    expires: float,
) -> None:
    """The gang set has its places, and is denied no longer; a member that has gone meanwhile gets none. The manager's lock is held.

    Those of members that a start has left behind are firm, whether or not victims have to go from them first.
    """
    if request.tree is not None:
        manager.composites.choose(request.tree.name, [group.key for group in gang_set])
    wave_of = _wave_of(manager, gang_set, waves)
    settled = {uid for each in gang_set for uid in each.assigned()}
    for info in request.members:
        node_name = placement.nodes.get(info.pod.uid)
        group = next((each for each in gang_set if info.pod.uid in each.members), None)
        if node_name is not None and group is not None and info.pod.uid not in settled:
            firm, priority = info.pod.uid in manager.left_behind(group), manager.priority_of(group)
            member = group.members[info.pod.uid]
            wave, member.turn = wave_of(info.pod.uid, member.turn), None
            manager.slots.reserve(Slot(info, group.key, node_name, expires, firm, priority, wave))
    for group in gang_set:
        group.planned = True
        for member in group.members.values():
            member.renominated = False
        manager.denied.pop(group.key, None)
        unplaced = (group.refused | group.gated) - manager.placed(group)
        manager.queue.settle(group.key, ANYTHING if unplaced else OWN_EVENTS)


def _wave_of(
    manager: PodGroupManager, gang_set: Sequence[Group], waves: Sequence[frozenset[str]]
) -> Callable[[str, int | None], int]:
    """The wave of a member's new slot, by its UID and the turn that it had. The waves of a plan come before those that there are; one
    that is planned again alone keeps its turn, and one that had none comes last.
    """
    in_waves = any(manager.slots.in_waves(group.key) for group in gang_set)
    known = [slot.wave for group in gang_set for slot in manager.slots.of_group(group.key)] if in_waves else []
    first, last = min(known, default=len(waves)) - len(waves), max(known, default=-1) + 1
    planned = {uid: first + number for number, wave in enumerate(waves) for uid in wave}

    def wave_of(uid: str, turn: int | None) -> int:
        if uid in planned or not in_waves:
            return planned.get(uid, 0)
        return turn if turn is not None else last

    return wave_of
