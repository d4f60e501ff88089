"""One plan of one gang set: asked of the planner, noted as slots and sent out, or refused (gang_set_refusals).

A gang set is a group, or the groups that start together. PlanningRounds decides which gang set is planned when.
No counterpart upstream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from extender import failpoints, metrics
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher, cannot_be_woken, waves_of
from extender.plugins.coscheduling.members_to_come.early_start import EarlyStarts
from extender.plugins.coscheduling.members_to_come.likenesses import with_room_to_come
from extender.plugins.coscheduling.planner.room import Room, asked_of
from extender.plugins.coscheduling.scheduling.checks import failed_check, note_extra_members
from extender.plugins.coscheduling.scheduling.lost_slots import recheck
from extender.plugins.coscheduling.scheduling.plan.attempt import Attempt, Attempts
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import (
    GangSetRefusals,
    waits_for,
)
from extender.plugins.coscheduling.scheduling.plan.planned_gang_set import note_places
from extender.plugins.coscheduling.scheduling.plan.shortages import Shortages
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.scheduling.rejected_in_tree import exclude_members_that_will_not_return, lease_of
from extender.plugins.coscheduling.spec.sources.ended_phase import size_of
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import chosen_groups, gang_set_of
from extender.plugins.coscheduling.state.group import Gathering, Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.waits_for import ANYTHING, WaitsFor

log = logging.getLogger(__name__)

EVICTIONS_MAY_CURE = frozenset(
    (planner.Cause.ROOM, planner.Cause.NODES, planner.Cause.AFFINITY, planner.Cause.TOPOLOGY)
)


class GangSetPlanning:
    """One plan at a time: PlanningRounds' lock is held around `plan`. The manager's lock is taken, and not held while planning."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        dispatcher: Dispatcher,
        requests: PlanRequests,
        refusals: GangSetRefusals,
        early_starts: EarlyStarts,
        schedule_planning: Callable[[], None],
        *,
        lease_seconds: float,
    ) -> None:
        """schedule_planning: has active gangs planned. lease_seconds: how long a place is
        kept for a member that does not come."""
        self._manager = manager
        self._with = dependencies
        self._dispatcher = dispatcher
        self._schedule_planning = schedule_planning
        self._lease_seconds = lease_seconds
        self._shortages = Shortages(manager, requests, self._fits)
        self._attempts = Attempts(manager, dependencies, requests, refusals.reservations, self._shortages)
        self._refusals = refusals
        self._early_starts = early_starts
        self.requests = requests
        self.reservations = refusals.reservations
        self.on_no_room: Callable[[Group, str], None] = lambda group, scheduler_name: None

    def plan(self, group: Group, scheduler_name: str, allowed: Mapping[str, frozenset[str]], *, caller: str) -> Status:
        """Success if there are slots for it now; allowed and caller as the planner's request has them.

        1. The question: what the gang set asks for, on the snapshot and beside the places of others.
        2. Counting alone may show that it finds no room.
        3. The plan; where there is none, why, and what it waits for.
        4. Places on nodes that are known to refuse their members are left out, and the rest is planned again.
        5. The places are noted, and members sent to them.
        """
        attempt = self._attempts.ask(group, scheduler_name, allowed, caller)
        if attempt is None:
            return unresolvable(messages.POD_GROUP_NOT_FOUND)
        if attempt.gathering is not None:
            return self._plan_early(attempt, attempt.gathering)
        if (known := self._short_by_count(attempt)) is not None:
            self._evict_for(attempt)
            return known
        result = self.plan_of(attempt.permitted)
        if not isinstance(result, planner.Placement):
            return self._refuse(attempt, result)
        permitted = attempt.permitted
        if exclude_members_that_will_not_return(
            self._manager,
            attempt.gang_set,
            permitted.request,
            result.nodes,
            lambda asked: self._fits(permitted.asking(asked)),
        ):
            return self.plan(group, scheduler_name, allowed, caller=caller)
        return self._place(attempt, result)

    def _plan_early(self, attempt: Attempt, gathering: Gathering) -> Status:
        """A gang that is still being made: it has room for all its members now, or waits for them as any other, without a verdict."""
        manager, group = self._manager, attempt.group
        result = self.plan_of(attempt.permitted) if self._is_small_enough(attempt) else None
        if isinstance(result, planner.Placement) and not waves_of(result):
            return self._place(attempt, with_room_to_come(result, attempt.permitted.request))
        with manager.lock:
            if not gathering.over:
                self._early_starts.end(group, "it does not fit")
            asking = group.members.get(attempt.caller) or next(iter(group.members.values()), None)
            name = asking.pod.name if asking is not None else group.key
            failed = failed_check(manager, group, attempt.scheduler_name, name)
        return unresolvable(failed.refusal if failed is not None else messages.PLAN_PENDING)

    def _is_small_enough(self, attempt: Attempt) -> bool:
        """Where it has no room yet. Not at all where it is to start with others by now."""
        group, request = attempt.group, attempt.permitted.request
        if not request.members or len(attempt.gang_set) > 1:
            return False
        with self._manager.lock:
            if self._manager.slots.of_group(group.key) or group.held:
                return self._manager.specs.of(group) is not None
        asked = asked_of(max(request.members, key=size_of).requests)
        capacity = int(Room.of(attempt.permitted.cluster, asked).capacity(asked).sum())
        with self._manager.lock:
            spec = self._manager.specs.of(group)
            return spec is not None and self._early_starts.is_small_enough(group, spec, capacity)

    def _short_by_count(self, attempt: Attempt) -> Status | None:
        """The refusal, where no plan is needed to know that there is no room."""
        gang_set, request = attempt.gang_set, attempt.question.request
        if attempt.gap:
            stop = Diagnosis(UnschedulableReason.MIN_RESOURCES, messages.resource_gap(attempt.gap))
            return self._refusals.deny(gang_set, stop, attempt.epoch, WaitsFor((), room_anywhere=True))
        if (known := self._shortages.still_short(gang_set, request, attempt.snapshot)) is not None:
            return self._refusals.deny(
                gang_set, known, attempt.epoch, waits_for(self._manager, gang_set, request, known)
            )
        return None

    def _refuse(self, attempt: Attempt, result: object) -> Status:
        """Perhaps the gang fits otherwise than beside the places that it still has: they are given up first."""
        gang_set, question, group = attempt.gang_set, attempt.question, attempt.group
        if not _gave_up(result) and self._let_go(gang_set):
            status = self.plan(group, attempt.scheduler_name, attempt.allowed, caller=attempt.caller)
            if not status.success:
                self._on_capacity_freed([each.key for each in gang_set])  # for others
            return status
        stop = self._shortages.diagnosis_of(gang_set, question, attempt.permitted, result)
        self._log_refusal(group, stop)
        kept = self._shortages.kept_from_nodes(question, attempt.allowed, stop)
        elsewhere = not kept and self._shortages.fits_elsewhere(question, attempt.allowed, stop)
        waits = waits_for(self._manager, gang_set, question.request, stop, anything=kept or elsewhere)
        status = self._refusals.deny(gang_set, stop, attempt.epoch, waits, passes=elsewhere)
        if isinstance(result, planner.NoPlacement) and result.cause in EVICTIONS_MAY_CURE:
            self._evict_for(attempt)
        return status

    def _evict_for(self, attempt: Attempt) -> None:
        """It was refused for room: gangs that only gather give theirs up, and where there are none others may be evicted."""
        manager = self._manager
        with manager.lock:
            if manager.groups.get(attempt.group.key) is not attempt.group:
                return
            request = attempt.question.request
            asking = request.members[: request.needed]
            comes_free = self._early_starts.make_way(manager.line.priority_of(attempt.group), asking)
        if comes_free:
            self._schedule_planning()
        else:
            self.on_no_room(attempt.group, attempt.scheduler_name)

    def _log_refusal(self, group: Group, stop: Diagnosis) -> None:
        """Not what was decided last: a gang that waits is planned with every event that may help it."""
        with self._manager.lock:
            known = stop.says_the_same_as(group.last_diagnosis)
        if not known:
            log.info("gang refused group=%s reason=%s message=%r", group.key, stop.reason, stop.text)

    def _place(self, attempt: Attempt, result: planner.Placement) -> Status:
        """Refused, where kube-scheduler can be brought to try no member; planned again, where the gang set is another by now."""
        manager, gang_set = self._manager, attempt.gang_set
        waves = waves_of(result)
        with manager.lock:
            if attempt.question.request.tree is not None:
                gang_set = chosen_groups(manager, gang_set, result.nodes.keys())
                attempt = replace(attempt, gang_set=gang_set, planned=attempt.planned.only(gang_set))
            stuck = cannot_be_woken(gang_set, waves, attempt.caller)
        if stuck:
            stop = Diagnosis(UnschedulableReason.NEEDS_GATE, messages.needs_gate(manager.gate))
            return self._refusals.deny(gang_set, stop, attempt.epoch, ANYTHING)
        if not self._note(attempt, result, waves):
            return self._changed_meanwhile(gang_set)
        for each in gang_set:
            cause = note_extra_members(
                manager, self.requests, each, attempt.scheduler_name, attempt.snapshot, self.plan_of
            )
            if cause in EVICTIONS_MAY_CURE:
                self.on_no_room(each, attempt.scheduler_name)
        return SUCCESS

    def plan_of(self, question: PlanQuestion) -> object:
        return self._with.offload(planner.plan, question.cluster, question.request, self._with.judges.plans)

    def _fits(self, question: PlanQuestion) -> bool:
        return isinstance(self.plan_of(question), planner.Placement)

    def _on_capacity_freed(self, but: Sequence[str]) -> None:
        with self._manager.lock:
            self._manager.notes.on_capacity_freed(but)
        self._schedule_planning()

    def _let_go(self, gang_set: Sequence[Group]) -> bool:
        """Gives up the gang set's places but those of held members. Returns whether there were any."""
        with self._manager.lock:
            return bool([group for group in gang_set if self._manager.places.give_up(group)])

    def _changed_meanwhile(self, gang_set: Sequence[Group]) -> Status:
        """The plan is for what is no more: it is made anew, where there is still something to be planned."""
        manager = self._manager
        log.info("plan void group=%s", gang_set[0].key)
        with manager.lock:
            manager.queue.move_to_active(each.key for each in gang_set if manager.groups.get(each.key) is each)
        self._schedule_planning()
        return unresolvable(messages.CHANGED_MEANWHILE)

    def _note(self, attempt: Attempt, result: planner.Placement, waves: list[frozenset[str]]) -> bool:
        """Returns whether the gang set may still start by it; else nothing is noted."""
        manager, gang_set, caller = self._manager, attempt.gang_set, attempt.caller
        request = attempt.question.request
        with manager.lock:
            if not self._still_holds(attempt, result):
                return False
            expires = manager.clock() + lease_of(gang_set, result.nodes, self._lease_seconds)
            gathers = attempt.gathering is not None
            note_places(manager, gang_set, request, result, waves, expires, gathers=gathers)
            if gathers:
                self._early_starts.release_surplus(attempt.group)
            for group in gang_set:
                group.last_diagnosis = None
                manager.permitted[group.key] = True
            asking = next((group for group in gang_set if caller in group.members), None)
            if asking is not None and caller in request.allowed:
                self._dispatcher.take_slot(asking, caller, request.allowed[caller])
            self.reservations.turns.planned(gang_set)
        for group in gang_set:
            if result.nodes:  # else it only wanted to know whether extra members fit
                log.info("gang planned group=%s members=%d", group.key, len(result.nodes))
                failpoints.reached("slots-noted")
                metrics.podgroup_schedule_attempts.labels("planned").inc()
            self._dispatcher.dispatch(group)
            self._dispatcher.clear_nominations(group)
        self._recheck(attempt, {*result.nodes.values(), *(name for name, _ in result.kept)})
        return True

    def _recheck(self, attempt: Attempt, node_names: Collection[str]) -> None:
        """There may be slots of lower priority on the nodes of a new plan, or some that have moved there meanwhile. Where the gang set had
        none before, its own were found together."""
        but = () if attempt.question.own else [group.key for group in attempt.gang_set]
        if recheck(self._manager, node_names, attempt.snapshot, but):
            self._schedule_planning()

    def _still_holds(self, attempt: Attempt, result: planner.Placement) -> bool:
        """Whether the gang set may still start by the plan; members that came to a gang that gathers take what was found for others. Lock
        held."""
        if attempt.gathering is None:
            return attempt.planned.may_start_with(self._manager, result.nodes.keys())
        return not attempt.gathering.over and attempt.planned.asks_for_the_same(self._manager)

    def drop(self, key: str) -> None:
        """Takes back the places of a gang set that are not held. Our nominations go with the next look, if no plan renews them."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return
            gang_set = gang_set_of(manager, group)
            if self._let_go(gang_set):
                manager.notes.on_capacity_freed()
            for each in gang_set:
                manager.notes.forget(each.key)
                manager.queue.move_to_active((each.key,))
                if manager.queue.backs_off(each.key):
                    self._dispatcher.decide_withdrawal(each)
        self._schedule_planning()
        self._dispatcher.steering.carry_out()


def _gave_up(result: object) -> bool:
    """Whether time ran out: that says nothing about the places that the gang set still has."""
    return isinstance(result, planner.NoPlacement) and result.cause is planner.Cause.BUDGET
