"""Which gangs are planned when: one plan at a time, in order, and never a gang that nothing has happened to.

The watch's events, the ticks and filter calls say which gangs are to be planned; a thread beside the verbs makes the plans, in
turns, and the calls wait for theirs for a moment. Lock order: planning, then the manager's lock.
kube-scheduler has no counterpart: its queue is one of pods, and each is tried by itself
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from extender import metrics
from extender.api import corev1
from extender.client.short_steps import pause
from extender.framework.status import Status, unresolvable
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.dispatch.dispatcher import Dispatcher
from extender.plugins.coscheduling.hints.helpful_events import Happened
from extender.plugins.coscheduling.hints.wake_ups import WakeUps
from extender.plugins.coscheduling.plan_call import PlanCall, WaitingTime
from extender.plugins.coscheduling.scheduling.begun_gangs import BegunGangs
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.scheduling.plan.gang_set_planning import GangSetPlanning
from extender.plugins.coscheduling.scheduling.planning_order import PlanningLine, PlanningOrder
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import schedules_alone
from extender.plugins.coscheduling.waits_for import OWN_EVENTS

TURN_SECONDS = 0.5  # after which the order is looked at anew, and what else the thread has to do has its turn


class RoomForLaterPhases(Protocol):
    """Plans room for members that are still to be made, of gangs that have begun; takes the lock around plans for each."""

    def keep_rooms(self) -> None:
        """When we begin to lead: of all of them."""
        ...

    def keep_rooms_of(self, groups: Iterable[Group]) -> None: ...


class PlanningRounds:
    """`planning` is held around each plan, and for no two of them in a row."""

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        dispatcher: Dispatcher,
        gang_sets: GangSetPlanning,
        planning: AbstractContextManager[object],
        wake_ups: WakeUps,
        later_phases: RoomForLaterPhases,
    ) -> None:
        """planning: the lock around plans, which others that use the plans' judge take too."""
        self._manager = manager
        self._wake_ups = wake_ups
        self._with = dependencies
        self._dispatcher = dispatcher
        self.planning = planning
        self._gang_sets = gang_sets
        self.requests = gang_sets.requests
        self.reservations = gang_sets.reservations
        self._later_phases = later_phases
        self._order = PlanningOrder(manager)
        self.waiting_time = WaitingTime(manager.clock, dependencies.wait)
        self._now: Sequence[Group] = ()  # the gang set that is being planned; the manager's lock guards it
        self._in_part: list[str] = []  # keys of gangs that were just taken for ones that come in phases; likewise
        self.begun = BegunGangs(manager, dependencies, self, later_phases.keep_rooms, self.waiting_time)

    # Turns

    @property
    def beside_the_verbs(self) -> bool:
        """Whether a thread makes the plans; else the one that needs a plan makes it."""
        return self._with.plan_beside is not None

    def happened(self, happened: Happened) -> None:
        """Has the gangs planned that this may help: in the next turn, or, where no thread plans beside the verbs, at once."""
        if not self._wake_ups.note(happened):
            return
        if self.beside_the_verbs or self._wake_ups.judge(while_planning=False):
            self.schedule_planning()

    def schedule_planning(self) -> None:
        """Has a turn of plans made beside what the caller does."""
        if self._with.plan_beside is not None:
            self._with.plan_beside(self.plan_turn)
        else:
            self._with.submit("plan", self.plan_turn)

    def plan_turn(self) -> None:
        """Some of the gangs that wait and may fit now, in order; the others in the next turn."""
        self.begun.finish()
        with self._manager.lock:
            keys, self._in_part = self._in_part, []
            in_part = [group for key in keys if (group := self._manager.groups.get(key)) is not None]
        self._later_phases.keep_rooms_of(in_part)
        if not self._plan_until(self._manager.clock() + TURN_SECONDS, lambda: False):
            self.schedule_planning()

    def tick(self) -> None:
        """About once a second: plans gangs that are due. Keeps room for the members to come of gangs that by now are taken for gangs in
        phases; after a restart, too.
        """
        with self._manager.lock:
            self._in_part += self._manager.note_in_part()
            active = self._manager.queue.flush()
        if active:
            self.schedule_planning()

    def plan_waiting(self) -> None:
        """Every gang that waits and may fit now, in order."""
        self._plan_until(math.inf, lambda: False)

    def plan_for(self, call: PlanCall) -> None:
        """The gangs that come before the call's own in order, and that one."""
        self._plan_until(math.inf, call.done.is_set)
        call.done.set()

    def _plan_until(self, at: float, done: Callable[[], bool]) -> bool:
        """Only gangs that something has happened to: the others were refused on no worse a cluster.

        at: seconds of the clock, after which no further plan is begun but the first. False if gangs may be left.
        """
        if not self._with.may_plan():
            self._wake_ups.ask_again()
            return True
        self._wake_ups.judge()
        with self._manager.lock:
            line = self._order.line()
        while not done():
            self._wake_ups.judge()
            group = self._next(line)
            if group is None:
                return True
            self.plan_one(group)
            pause()  # a thread that waits for `planning` has its turn
            if self._manager.clock() >= at:
                return False
        return True

    def _next(self, line: PlanningLine) -> Group | None:
        while True:
            with self._manager.lock:
                if line.rank_some():
                    return line.next()
            pause()

    def plan_one(self, group: Group) -> None:
        with self.planning:
            self._manager.quarantine.for_gang(group.key, "plan", partial(self._look_at, group), None)

    def _look_at(self, group: Group) -> None:
        started = self._manager.clock()
        try:
            self._plan_if_it_waits(group)
        finally:
            took = self._manager.clock() - started
            metrics.planning_duration.observe(took)
            with self._manager.lock:
                self._order.planned(group, took)

    def _plan_if_it_waits(self, group: Group) -> None:
        manager = self._manager
        refusal: Status | None = None
        with manager.lock:
            gang_set = self._now = gang_set_of(manager, group)
            self._wake_ups.planning = True
        try:
            with manager.lock:
                scheduler_name = self._waits(group)
                calls = {uid: call.allowed for each in gang_set for uid, call in each.calls.items()}
                if scheduler_name is None:
                    self._put_back(group)
            if scheduler_name is None:
                self._dispatcher.clear_nominations(group)
            else:
                refusal = self._plan(group, scheduler_name, calls)
        finally:
            with manager.lock:
                self._now = ()
                self._wake_ups.planning = False
                self._close_calls(gang_set, refusal)

    def _plan(self, group: Group, scheduler_name: str, calls: dict[str, frozenset[str] | None]) -> Status | None:
        """Why there are no places for it; None if there are. calls: UID of a member that a filter call is for -> `PlanCall.allowed`."""
        allowed = {uid: names for uid, names in calls.items() if names is not None}
        status = self._gang_sets.plan(group, scheduler_name, allowed, caller=next(reversed(calls), ""))
        if group.key in self._manager.quarantine:  # another thread has set it aside: it keeps nothing of the plan
            self.drop_plan(group.key)
            return unresolvable(messages.INTERNAL_ERROR)
        return None if status.success else status

    # Filter calls

    def call(
        self, group: Group, pod: corev1.Pod, allowed: frozenset[str] | None, before: PlanCall | None
    ) -> PlanCall | None:
        """Has the group planned for a filter call. The call, if it may wait for the plan; None if it has to be answered without
        one, and the member is sent when there is one. The manager's lock is held.

        before: what the same filter call has waited for already. allowed: as PlanCall has it.
        """
        gang_set = gang_set_of(self._manager, group)
        self._manager.queue.move_to_active((group.key,))
        if before is not None and not before.done.is_set():
            before.give_up()
        elif all(call.waiting for each in gang_set for call in each.calls.values()):
            attempts = before.attempts + 1 if before is not None else 0
            call = PlanCall(pod.uid, allowed, self.waiting_time, self._others_first(gang_set), attempts=attempts)
            group.calls[pod.uid] = call
            if not self.beside_the_verbs:
                return call
            if self.waiting_time.any_left():
                self.schedule_planning()
                return call
            call.give_up()
        self.schedule_planning()
        return None

    def _others_first(self, gang_set: Sequence[Group]) -> bool:
        """Whether other gangs are, or may be, planned before this one. Lock held."""
        keys = {group.key for group in gang_set}
        return not self._manager.queue.active <= keys or any(group.key not in keys for group in self._now)

    def _close_calls(self, gang_set: Sequence[Group], refusal: Status | None) -> None:
        """Those that wait go on; of those that do not nothing is kept. Lock held."""
        for group in gang_set:
            for call in group.calls.values():
                call.close(refusal)
            group.calls = {uid: call for uid, call in group.calls.items() if call.waiting}

    def _put_back(self, group: Group) -> None:
        """No plan would help it now: its own events may, and time where it was denied, or members serve their back-off. Lock held."""
        manager = self._manager
        if group.key in manager.queue.active or manager.groups.get(group.key) is not group:
            return
        if group.key in manager.denied:
            manager.queue.add_unschedulable(group.key, retry_at=manager.denied.until(group.key))
        else:
            back = group.errors.back_at(manager.clock())
            manager.queue.add_unschedulable(group.key, OWN_EVENTS, back if back is not None else math.inf)

    def _waits(self, group: Group) -> str | None:
        """The scheduler of the members that a plan would help; None where there are none, or the gates are shut. Lock held."""
        manager = self._manager
        spec = manager.specs.of(group)
        if group.key in manager.denied or spec is None:
            return None
        there = len(group.members) + len(group.ended)
        if there < spec.min_member and not (group.whole_of or group.started or group.gathering):
            return None  # by counting alone: members come one by one, and this is asked after each
        sent = set(group.nominated())  # a member that lost its place while its gate went is in no other set
        asked = group.refused | group.gated | group.calls.keys() | sent
        waiting = group.members.keys() if manager.begun.was_cut_short(group) else asked
        unplaced = (waiting & group.members.keys()) - self._manager.places.placed(group)
        concerned = {uid for uid in unplaced if uid in group.gated or not schedules_alone(group, spec, uid)}
        pods = [pod for uid in concerned if self._with.ours(pod := group.members[uid].pod)]
        if not pods:
            return None
        pod = min(pods, key=lambda pod: (pod.uid not in group.calls, pod.name))
        if failed_check(manager, group, pod.spec.scheduler_name, pod.name, pod.uid) is not None:
            return None
        if not self.requests.needs_plan(group, pod.uid) and not unplaced & group.gated:
            return None
        return pod.spec.scheduler_name

    def on_no_room(self, call: Callable[[Group, str], None]) -> None:
        """call: told, with the scheduler's name, of each group that finds no room. It returns at once."""
        self._gang_sets.on_no_room = call

    def drop_plan(self, key: str) -> None:
        """Takes back the places of a group, and of those it is to start with, that are not held."""
        self._gang_sets.drop(key)
