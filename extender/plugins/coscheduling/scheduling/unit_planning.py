"""One plan of one unit: asked of the planner, noted in the ledger and sent out, or noted as denied before anybody hears of it.

A unit is a group, or the groups that start together. PlanningRounds decides which unit is planned when.
No counterpart upstream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

from extender import metrics
from extender.framework.listers import NodeInfoLister, Nominator
from extender.framework.status import SUCCESS, Status, unresolvable
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.collaborators import REJECTED, Collaborators, Verdict
from extender.plugins.coscheduling.planner.counting import Counting
from extender.plugins.coscheduling.planner.waits_for import WaitsFor, kinds_of
from extender.plugins.coscheduling.scheduling.arrivals import Arrivals, cannot_be_woken, needs_siblings, waves_of
from extender.plugins.coscheduling.scheduling.closer_look import look_closer
from extender.plugins.coscheduling.scheduling.extra_members import note_extra_members
from extender.plugins.coscheduling.scheduling.lost_places import recheck
from extender.plugins.coscheduling.scheduling.plan_request import PlanRequests
from extender.plugins.coscheduling.scheduling.planned_unit import PlannedUnit
from extender.plugins.coscheduling.scheduling.refused_unasked import lease_of, put_out
from extender.plugins.coscheduling.scheduling.shadow import Shadows
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.ledger import Reservation
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.stops import OF_CAUSE, Reason, Stop, stop_of_plan
from extender.plugins.coscheduling.state.units import unit_of

log = logging.getLogger(__name__)

EVICTIONS_MAY_CURE = frozenset(
    (planner.Cause.ROOM, planner.Cause.NODES, planner.Cause.AFFINITY, planner.Cause.TOPOLOGY)
)
SAID_BY_THE_CLUSTER = frozenset(OF_CAUSE.values()) - {Reason.BUDGET_EXCEEDED} | {Reason.RESERVED_FOR_OTHERS}
"""Reasons that hold until the cluster, or the places kept in it, change: kube-scheduler and time have no part in them."""


class UnitPlanning:
    """One plan at a time: PlanningRounds' lock is held around `plan`. The manager's lock is taken, and not held while planning.

    look: has the groups looked at that something has happened to, in the background. planning: that lock.
    """

    def __init__(
        self,
        manager: PodGroupManager,
        collaborators: Collaborators,
        nominator: Nominator,
        arrivals: Arrivals,
        look: Callable[[], None],
        planning: AbstractContextManager[object],
        *,
        denied_seconds: float,
        lease_seconds: float,
    ) -> None:
        self._manager = manager
        self._with = collaborators
        self._arrivals = arrivals
        self._look = look
        self._denied_seconds = denied_seconds
        self._lease_seconds = lease_seconds
        self._counting = Counting()
        self.requests = PlanRequests(manager, nominator, collaborators.topology)
        self.shadows = Shadows(manager, collaborators, self.requests, look, planning)
        self.on_no_room: Callable[[Group, str], None] = lambda group, scheduler_name: None
        self.end_holds: Callable[[Group, str], None] = lambda group, cause: None

    def plan(self, group: Group, scheduler_name: str, allowed: Mapping[str, frozenset[str]], *, caller: str) -> Status:
        """Success if there are places in the ledger now; allowed and caller as the planner's request has them."""
        manager = self._manager
        with manager.lock:
            epoch = manager.epoch  # before the snapshot: what comes free after it voids a denial
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            if manager.spec(group) is None:
                return unresolvable(messages.POD_GROUP_NOT_FOUND)
            unit = unit_of(manager, group)
            planned = PlannedUnit.of(manager, unit)
            request = self.requests.request(unit, scheduler_name, allowed, caller=caller)
            laid, beside = self.requests.laid(unit, request, snapshot)
            kept = self.shadows.kept_from_unit(unit)
            gap = {name: None for each in unit for name in self._gap(each, request, snapshot)}
        if gap:
            self.on_no_room(group, scheduler_name)
            stop = Stop(Reason.MIN_RESOURCES, messages.resource_gap(tuple(gap)))
            return self._deny(unit, stop, epoch, WaitsFor((), room_anywhere=True))
        if (known := self._still_short(unit, request, snapshot)) is not None:
            self.on_no_room(group, scheduler_name)
            return self._deny(unit, known, epoch, self._waits_for(unit, request, known))
        permitted = self.shadows.without(request, kept, snapshot) if kept else request
        result = self._plan(replace(permitted, promised=beside), laid)
        if not isinstance(result, planner.Placement):
            # perhaps the gang fits otherwise than beside the places that it still has
            if not _gave_up(result) and self._let_go(unit):
                status = self.plan(group, scheduler_name, allowed, caller=caller)
                if not status.success:
                    self._room_came_free([each.key for each in unit])  # for others
                return status
            stop = self._stop_of(unit, request, permitted, result, snapshot)
            log.info("gang refused group=%s reason=%s message=%r", group.key, stop.reason, stop.text)
            anything = self._kept_from_nodes(request, allowed, stop, snapshot)
            status = self._deny(unit, stop, epoch, self._waits_for(unit, request, stop, anything=anything))
            if isinstance(result, planner.Verdict) and result.cause in EVICTIONS_MAY_CURE:
                self.on_no_room(group, scheduler_name)
            return status
        if put_out(manager, unit, permitted, result.nodes, lambda asked: self._fits(asked, snapshot)):
            return self.plan(group, scheduler_name, allowed, caller=caller)
        waves = waves_of(result)
        with manager.lock:
            stuck = cannot_be_woken(unit, waves, caller)
        if stuck:
            stop = Stop(Reason.NEEDS_GATE, messages.needs_gate(manager.gate))
            return self._deny(unit, stop, epoch, WaitsFor((), anything=True))
        if not self._note(planned, unit, request, result, waves, caller, snapshot):
            return self._changed_meanwhile(unit)
        for each in unit:
            cause = note_extra_members(
                manager, self.requests, each, scheduler_name, lambda asked: self._plan(asked, snapshot)
            )
            if cause in EVICTIONS_MAY_CURE:
                self.on_no_room(each, scheduler_name)
        return SUCCESS

    def _stop_of(
        self,
        unit: Sequence[Group],
        request: planner.Request,
        permitted: planner.Request,
        result: object,
        snapshot: NodeInfoLister,
    ) -> Stop:
        """permitted: the request without the nodes that are kept free for another gang, which is what was planned."""
        with self._manager.lock:
            spec = self._manager.spec(unit[0])
        minimum = spec.min_member if spec is not None else 0
        if permitted is not request and self._fits(request, snapshot):
            return Stop(Reason.ORDERED_AFTER_OTHERS, messages.kept_free(minimum))
        stop = stop_of_plan([each.key for each in unit], minimum, result)
        return look_closer(self._manager, unit, permitted, stop, lambda asked: self._fits(asked, snapshot))

    def _plan(self, request: planner.Request, snapshot: NodeInfoLister) -> object:
        return self._with.offload(planner.plan, snapshot, request, self._with.judge)

    def _fits(self, request: planner.Request, snapshot: NodeInfoLister) -> bool:
        return isinstance(self._plan(request, snapshot), planner.Placement)

    def _gap(self, group: Group, request: planner.Request, snapshot: NodeInfoLister) -> tuple[str, ...]:
        spec = self._manager.spec(group)
        if spec is None or group.key in self._manager.permitted or not request.needed:
            return ()
        return self.requests.resource_gap(group, spec, snapshot)

    def _room_came_free(self, but: Sequence[str]) -> None:
        with self._manager.lock:
            self._manager.room_came_free(but)
        self._look()

    def _let_go(self, unit: Sequence[Group]) -> bool:
        """Gives up the unit's places but those of held members. Returns whether there were any."""
        with self._manager.lock:
            return bool([group for group in unit if self._manager.give_up_places(group)])

    def _short(self, request: planner.Request, stop: Stop, snapshot: NodeInfoLister) -> bool:
        """Whether counting alone shows that it finds no room, for want of what ran out when it was planned last."""
        resource = (
            stop.verdict.resource if stop.verdict is not None and stop.verdict.cause is planner.Cause.ROOM else ""
        )
        return self._counting.too_little(snapshot, request, resource)

    def _still_short(self, unit: Sequence[Group], request: planner.Request, snapshot: NodeInfoLister) -> Stop | None:
        """Its last stop, where a plan could only come to the same."""
        with self._manager.lock:
            last = unit[0].stopped
            has_places = any(self._manager.ledger.of_group(each.key) for each in unit)  # it might fit without them
            spec = self._manager.spec(unit[0])
        if last is None or last.reason is not Reason.INSUFFICIENT_RESOURCES or last.verdict is None:
            return None
        if has_places or not self._short(request, last, snapshot):
            return None
        minimum = spec.min_member if spec is not None else 0
        return stop_of_plan([each.key for each in unit], minimum, last.verdict)

    def _kept_from_nodes(
        self, request: planner.Request, offered: Collection[str], stop: Stop, snapshot: NodeInfoLister
    ) -> bool:
        """Whether it may be for nodes that kube-scheduler has refused, or has not offered, that the gang finds no places. offered: the
        UIDs of members whose filter calls wait for the plan."""
        confined = {uid: nodes for uid, nodes in request.allowed.items() if uid not in offered}
        if request.excluded or confined or stop.reason not in SAID_BY_THE_CLUSTER:
            return True
        if not offered or self._short(request, stop, snapshot):
            return False
        return self._fits(replace(request, allowed={}), snapshot)

    def _waits_for(
        self, unit: Sequence[Group], request: planner.Request, stop: Stop, *, anything: bool = False
    ) -> WaitsFor:
        """anything: kube-scheduler's refusals have a part in it; they, time and other gangs' turns may change with any event."""
        topology = request.topology
        keys = frozenset(level.key for level in topology.levels) if topology.required else frozenset[str]()
        with self._manager.lock:
            priority = min(map(self._manager.priority_of, unit))
        anything = anything or stop.reason not in SAID_BY_THE_CLUSTER
        return WaitsFor(kinds_of(request.members), priority, keys, anything)

    def _deny(self, unit: Sequence[Group], stop: Stop, epoch: int, waits: WaitsFor) -> Status:
        """Noted before anybody hears of it; not noted, but looked at again, if something came free meanwhile."""
        manager = self._manager
        refusal = unresolvable(messages.denied(unit[0].key, self._denied_seconds, stop.message))
        with manager.lock:
            unit = [group for group in unit if manager.groups.get(group.key) is group]
            if not unit:
                return refusal
            fresh = manager.epoch == epoch
            for group in unit:
                group.stop(replace(stop, since=manager.clock()))
                if fresh:
                    self._note_denied(group, stop)
                    manager.queue.unschedulable[group.key] = waits
                else:
                    manager.queue.active.add(group.key)
                manager.permitted.pop(group.key, None)
            self.shadows.denied(unit[0], stop)
            held = any(group.held for group in unit)
        if held:  # they would keep others out, and cannot start
            self.end_holds(unit[0], stop.message)
        if not fresh:
            self._look()
        metrics.podgroup_schedule_attempts.labels("unschedulable").inc()
        for group in unit:
            self._tell_denied(group, stop)
        return refusal

    def _note_denied(self, group: Group, stop: Stop) -> None:
        """What passes by itself, a spent budget and places that kube-scheduler refused, is tried again though nothing happens."""
        manager = self._manager
        if stop.reason is Reason.BUDGET_EXCEEDED:
            manager.denied[group.key] = stop.message
        else:
            manager.denied.again(group.key, stop.message)
        if stop.reason in (Reason.BUDGET_EXCEEDED, Reason.REFUTED_BY_SCHEDULER):
            manager.queue.later[group.key] = manager.denied.until(group.key)

    def _tell_denied(self, group: Group, stop: Stop) -> None:
        verdict = Verdict(False, REJECTED, stop.text, stop.reason)
        with self._manager.lock:
            pod_group = group.pod_group
            gated = [info.pod for uid in group.gated if not needs_siblings(info := group.members[uid].info)]
            self._arrivals.decide_withdrawal(group)
            if self._with.ungate_refused:
                self._arrivals.steering.ungate(group.key, gated)
        if pod_group is None and gated:
            self._with.verdicts.decided(None, group.key, verdict, min(gated, key=lambda pod: pod.name))
        else:
            self._with.verdicts.decided(pod_group, group.key, verdict)
        self._arrivals.steering.carry_out()

    def _changed_meanwhile(self, unit: Sequence[Group]) -> Status:
        """The plan is for what is no more: it is made anew, where there is still something to be planned."""
        manager = self._manager
        log.info("plan void group=%s", unit[0].key)
        with manager.lock:
            manager.queue.active.update(each.key for each in unit if manager.groups.get(each.key) is each)
        self._look()
        return unresolvable(messages.CHANGED_MEANWHILE)

    def _note(
        self,
        planned: PlannedUnit,
        unit: Sequence[Group],
        request: planner.Request,
        result: planner.Placement,
        waves: list[frozenset[str]],
        caller: str,
        snapshot: NodeInfoLister,
    ) -> bool:
        """Returns whether the unit may still start by it; else nothing is noted."""
        manager = self._manager
        with manager.lock:
            if not planned.may_start_with(manager, result.nodes.keys()):
                return False
            expires = manager.clock() + lease_of(unit, result.nodes, self._lease_seconds)
            note_places(manager, unit, request, result, waves, expires)
            for group in unit:
                group.stopped = None
                manager.permitted[group.key] = True
            asking = next((group for group in unit if caller in group.members), None)
            if asking is not None and caller in request.allowed:
                self._arrivals.advance(asking, caller, request.allowed[caller])
            self.shadows.planned(unit)
        for group in unit:
            if result.nodes:  # else it only wanted to know whether extra members fit
                log.info("gang planned group=%s members=%d", group.key, len(result.nodes))
                metrics.podgroup_schedule_attempts.labels("planned").inc()
            self._arrivals.send(group)
            self._arrivals.withdraw(group)
        if recheck(manager, set(result.nodes.values()), snapshot):  # places of lower priority that were taken
            self._look()
        return True

    def drop(self, key: str) -> None:
        """Takes back the places of a unit that are not held. Our nominations go with the next look, if no plan renews them."""
        manager = self._manager
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return
            unit = unit_of(manager, group)
            if self._let_go(unit):
                manager.room_came_free()
            for each in unit:
                manager.forget_notes(each.key)
                manager.queue.active.add(each.key)
        self._look()


def _gave_up(result: object) -> bool:
    """Whether time ran out: that says nothing about the places that the unit still has."""
    return isinstance(result, planner.Verdict) and result.cause is planner.Cause.BUDGET


def note_places(
    manager: PodGroupManager,
    unit: Sequence[Group],
    request: planner.Request,
    placement: planner.Placement,
    waves: Sequence[frozenset[str]],
    expires: float,
) -> None:
    """The unit has its places, and is denied no longer; a member that has gone meanwhile gets none. The manager's lock is held.

    Those of members that a start has left behind are firm, whether or not victims have to go from them first.
    """
    settled = {uid for each in unit for uid in each.assigned()}
    for info in request.members:
        node_name = placement.nodes.get(info.pod.uid)
        group = next((each for each in unit if info.pod.uid in each.members), None)
        if node_name is not None and group is not None and info.pod.uid not in settled:
            firm, priority = info.pod.uid in manager.left_behind(group), manager.priority_of(group)
            manager.ledger.reserve(Reservation(info, group.key, node_name, expires, firm, priority))
    for group in unit:
        group.planned = True
        group.waves[:0] = waves
        for member in group.members.values():
            member.renominated = False
        manager.denied.pop(group.key, None)
        manager.queue.unschedulable.pop(group.key, None)
