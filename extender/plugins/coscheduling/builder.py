"""Builds the parts behind the Coscheduling plugin, each after those that it works with.

The plugin calls it once the scheduler around it exists, whichever that is: behind a kube-scheduler, in-process, or one that only
answers a question. kube-scheduler: pkg/scheduler/scheduler.go (New) does the like for itself
"""

from __future__ import annotations

import threading
from dataclasses import replace

from extender.framework.handle import Handle
from extender.plugins import names
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.bind_slots import BindSlots
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.dispatch.holds import Holds
from extender.plugins.coscheduling.events.ended_members import EndedMembers
from extender.plugins.coscheduling.events.group_events import GroupEvents
from extender.plugins.coscheduling.events.later_phases import LaterPhases
from extender.plugins.coscheduling.events.lead_changes import LeadChanges
from extender.plugins.coscheduling.events.scheduler_feedback import StaleRefusals
from extender.plugins.coscheduling.events.set_aside import SetAside
from extender.plugins.coscheduling.extension_points.admission import Admission
from extender.plugins.coscheduling.extension_points.moved_slots import MovedSlots
from extender.plugins.coscheduling.extension_points.permit import GangPermit
from extender.plugins.coscheduling.extension_points.reserved_room import ReservedRoom
from extender.plugins.coscheduling.extension_points.single_pods import SinglePods
from extender.plugins.coscheduling.hints.wake_ups import WakeUps
from extender.plugins.coscheduling.members_to_come.early_start import EarlyStartLimits, EarlyStarts
from extender.plugins.coscheduling.preemption.preemption import Preemption
from extender.plugins.coscheduling.questions.drain import DrainQuestions
from extender.plugins.coscheduling.questions.one_at_a_time import OneAtATime
from extender.plugins.coscheduling.questions.what_if import WhatIfQuestions
from extender.plugins.coscheduling.report.gang_observer import GangObserver
from extender.plugins.coscheduling.report.gang_report import GangReport, nothing_to_preempt
from extender.plugins.coscheduling.report.gang_story import GangStories
from extender.plugins.coscheduling.report.largest_gang import LargestGang
from extender.plugins.coscheduling.report.priority_remark import RemarkedVerdicts
from extender.plugins.coscheduling.report.waiting_gangs import WaitingGangs
from extender.plugins.coscheduling.scheduling.backfill_reservation import BackfillReservations
from extender.plugins.coscheduling.scheduling.lost_slots import ExpiredSlots
from extender.plugins.coscheduling.scheduling.plan.gang_set_planning import GangSetPlanning
from extender.plugins.coscheduling.scheduling.plan.gang_set_refusals import GangSetRefusals
from extender.plugins.coscheduling.scheduling.plan_request import PlanRequests
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager


class GangParts:
    """Fulfils GangScheduler. wait_seconds: how long a place is kept for a member that does not come. denied_seconds: how long a
    gang that was refused is not planned again. preemption: None where no pod is evicted for gangs. early_start: None where no gang
    starts before it is complete."""

    def __init__(
        self,
        manager: PodGroupManager,
        handle: Handle,
        given: CoschedulingDependencies,
        *,
        denied_seconds: float,
        wait_seconds: float,
        early_start: EarlyStartLimits | None = None,
    ) -> None:
        self.manager = manager
        self.wait_seconds = wait_seconds
        self._early_start = early_start
        self.stories = GangStories(given.verdicts, manager.quarantine, manager.clock)
        manager.registry.on_dropped.append(self.stories.dropped)
        self.dependencies = replace(given, verdicts=RemarkedVerdicts(self.stories, manager))
        manager.labels = manager.labels.serving(given.ours)
        self._plan(handle, denied_seconds)
        self._pass_pods(denied_seconds)
        self._observe()
        self.preemption = None if given.preemption is None else Preemption(self, given.preemption)
        explain = nothing_to_preempt if self.preemption is None else self.preemption.gangs.search.explain
        largest = LargestGang(manager, self.rounds.requests.overlays, given.newest_snapshot, given.topology)
        self.report = GangReport(
            manager,
            self.rounds,
            self.observer,
            self.dependencies,
            explain,
            largest,
            denied_seconds=denied_seconds,
            story=self.stories.of,
        )
        search = None if self.preemption is None else self.preemption.gangs.search
        one_at_a_time = OneAtATime()
        self.what_if = WhatIfQuestions(self, self.report, search, one_at_a_time)
        self.drain = DrainQuestions(self, self.report, one_at_a_time)

    def _plan(self, handle: Handle, denied_seconds: float) -> None:
        manager, dependencies, schedule, planning = (
            self.manager,
            self.dependencies,
            self._schedule_planning,
            threading.Lock(),
        )
        manager.max_held_binds = dependencies.max_held_binds
        self.bind_slots = BindSlots(manager, dependencies.max_held_binds, self.wait_seconds)
        self.dispatcher = Dispatcher(manager, dependencies, self.bind_slots)
        self.holds = Holds(names.COSCHEDULING, manager, handle.get_waiting_pod)
        self.gang_permit = GangPermit(manager, dependencies, self.holds, lease_seconds=self.wait_seconds)
        self.early_starts = EarlyStarts(manager, self.holds, self._early_start)
        requests = PlanRequests(manager, handle.nominator, dependencies.topology)
        reservations = BackfillReservations(manager, dependencies, requests, schedule, planning)
        refusals = GangSetRefusals(
            manager,
            dependencies,
            self.dispatcher,
            self.holds,
            reservations,
            schedule,
            denied_seconds=denied_seconds,
        )
        gang_sets = GangSetPlanning(
            manager,
            dependencies,
            self.dispatcher,
            requests,
            refusals,
            self.early_starts,
            schedule,
            lease_seconds=self.wait_seconds,
        )
        wake_ups = WakeUps(manager, dependencies.newest_snapshot, dependencies.judges.hint_rows())
        later = LaterPhases(manager, dependencies, self.dispatcher, requests, gang_sets.plan_of, planning)
        self.rounds = PlanningRounds(manager, dependencies, self.dispatcher, gang_sets, planning, wake_ups, later)

    def _schedule_planning(self) -> None:
        """For what the rounds are made of."""
        self.rounds.schedule_planning()

    def _pass_pods(self, denied_seconds: float) -> None:
        """What the extension points ask."""
        manager, dependencies, rounds = self.manager, self.dependencies, self.rounds
        moved_slots = MovedSlots(manager, dependencies, rounds.requests, rounds.reservations)
        self.admission = Admission(manager, rounds, self.dispatcher, moved_slots, denied_seconds=denied_seconds)
        self.single_pods = SinglePods(manager, rounds.requests.overlays, dependencies.topology)
        self.room = ReservedRoom(
            manager, rounds.requests.overlays, dependencies, rounds.reservations, rounds.schedule_planning
        )

    def _observe(self) -> None:
        """What events and time lead to."""
        manager, dependencies, rounds, holds = self.manager, self.dependencies, self.rounds, self.holds
        recheck = self.gang_permit.recheck
        self.ended_members = EndedMembers(
            manager, dependencies, rounds.schedule_planning, self.dispatcher.steering, recheck
        )
        self.observer = GangObserver(manager, dependencies, self.ended_members.is_short, self.stories.came_into)
        self.waiting_gangs = WaitingGangs(manager, self.observer, dependencies.foreign)
        self.stale_refusals = StaleRefusals(manager, self.dispatcher.steering)
        self.set_aside = SetAside(
            manager, dependencies, self.dispatcher, holds, self.observer.forget, rounds.schedule_planning
        )
        self.expired_slots = ExpiredSlots(
            manager, rounds.drop_plan, rounds.schedule_planning, dependencies.has_unbound_claims, self.bind_slots
        )
        self.events = GroupEvents(manager, rounds, self.dispatcher, holds, recheck, dependencies)
        self.lead_changes = LeadChanges(
            manager, rounds, holds, self.observer.tell_anew, dependencies.may_plan, self.events.on_capacity_freed
        )
