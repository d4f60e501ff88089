"""Preemption for a whole gang: selects victims only if the whole gang then fits; never for a single member.

A gang that was refused for want of room comes here. Its victims are searched for in the background; if there are any, its
places are reserved, the victims are told, and once they have gone (VictimTermination) the members are sent as after any plan.
Nothing of it keeps a verb waiting.
kube-scheduler: pkg/scheduler/framework/preemption/podgrouppreemption.go does the like for its own gangs (alpha)
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.client.interface import pod_group_reference, pod_reference
from extender.framework.preemption.priorities_on_nodes import PrioritiesOnNodes
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.dependencies import PREEMPTING, Eviction, PreemptionDependencies, Verdict
from extender.plugins.coscheduling.dispatch.dispatcher import cannot_be_woken, waves_of
from extender.plugins.coscheduling.events.gang_scheduler import GangScheduler
from extender.plugins.coscheduling.preemption.evictable import releasable
from extender.plugins.coscheduling.preemption.planning import VictimPlan
from extender.plugins.coscheduling.preemption.terminating_victims import TerminatingVictims, VictimTermination
from extender.plugins.coscheduling.preemption.victim_search import (
    GOING_SECONDS,
    VictimQuestion,
    VictimSearch,
    only_where_pods_go,
    pods_on,
    still_holds,
    without,
)
from extender.plugins.coscheduling.preemption.waiting_preemptors import PreemptionQueue
from extender.plugins.coscheduling.scheduling.checks import failed_check, one_extra_member
from extender.plugins.coscheduling.scheduling.lost_slots import lose_slot
from extender.plugins.coscheduling.scheduling.phases import Phase, phase_of
from extender.plugins.coscheduling.scheduling.plan.planned_gang_set import PlannedGangSet, note_places
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import chosen_groups, gang_set_of
from extender.plugins.coscheduling.state.group import Group, Preempting

log = logging.getLogger(__name__)

ANEW_SECONDS = 1.0  # after a plan with victims did not hold any more
BARRED_SECONDS = 5.0  # how often it is asked whether the gang may by now
TURN_SECONDS = 5.0  # after which the background does something else, before it goes on searching
DEFAULT_GRACE_SECONDS = 30


@dataclass(eq=False)
class GangPreemption:
    """Lock order: planning (PlanningRounds': one plan at a time), then the manager's lock. The search itself takes neither."""

    coscheduling: GangScheduler
    dependencies: PreemptionDependencies
    terminating: TerminatingVictims

    def __post_init__(self) -> None:
        self._manager = self.coscheduling.manager
        self._with = self.coscheduling.dependencies
        self._rounds = self.coscheduling.rounds
        self.search = VictimSearch(self.coscheduling, self.dependencies)
        self.priorities = PrioritiesOnNodes()
        self._queue = PreemptionQueue(self._manager.clock, self.dependencies.rules.delay_seconds)
        self.room = VictimTermination(self.coscheduling, self._queue)

    # Which gangs want it

    def refused(self, group: Group, scheduler_name: str) -> None:
        """The gang found no room. Returns at once."""
        with self._manager.lock:
            if not self.dependencies.rules.enabled or not group.members or not self._any_pod_below(group):
                return
            self._queue.add(group, scheduler_name)
        self._with.submit("preempt", self.search_waiting)

    def _any_pod_below(self, group: Group) -> bool:
        """Whether a pod of lower priority may be on a node, or is held, or a gang that counts at a lower one. One that is being bound
        may be: its priority is looked at when victims are searched for. Lock held."""
        manager = self._manager
        priority = manager.line.priority_of(group)
        if (
            self.priorities.any_below(priority)
            or releasable(manager, manager.groups.values(), priority)
            or self.dependencies.assumed()
        ):
            return True
        mixed = (each for each in manager.groups.values() if len(each.priorities) > 1 and each.assigned)
        at = (
            manager.quarantine.for_gang(each.key, "preempt", partial(manager.line.priority_of, each), None)
            for each in mixed
        )
        return any(known is not None and known < priority for known in at)

    def node_came(self) -> None:
        """Or one that is there got better. The gangs that wait are planned again for it, and come back here if that fails."""
        with self._manager.lock:
            self._queue.something_new()

    def tick(self) -> None:
        """About once a second: searches victims for gangs that are due."""
        with self._manager.lock:
            self._queue.prune(self._manager.groups.keys())
            due = self._with.may_plan() and bool(self._queue.due(self._manager.groups))
        if due:
            self._with.submit("preempt", self.search_waiting)

    def search_waiting(self) -> None:
        """In the background: each gang that wants it, in order."""
        manager = self._manager
        if not self._with.may_plan():
            return
        with manager.lock:
            due = manager.line.in_order(self._queue.due(manager.groups))
        until = manager.clock() + TURN_SECONDS
        for group in due:
            if manager.clock() >= until:  # the others have their turn when what else there is to do has had its own
                self._with.submit("preempt", self.search_waiting)
                return
            with manager.lock:
                scheduler_name = self._queue.pop(group)
            if scheduler_name is None:
                continue
            manager.quarantine.for_gang(group.key, "preempt", partial(self._try, group, scheduler_name), None)
            if group.key in manager.quarantine:
                with manager.lock:
                    self._queue.add(group, scheduler_name)
                    self._queue.in_vain([group])

    def _try(self, group: Group, scheduler_name: str) -> None:
        manager, snapshot = self._manager, self._with.newest_snapshot()
        with manager.lock:
            gang_set = gang_set_of(manager, group)
            if any(each.key not in manager.groups for each in gang_set):
                return
            situation = self.search.situation(gang_set, scheduler_name, snapshot)
            question = situation.question
            runs = not question.request.needed and all(phase_of(manager, each) is Phase.BOUND for each in gang_set)
            if any(each.preempting or (each.planned and not runs) for each in gang_set):
                self._queue.add(group, scheduler_name)  # extra members may want it, once their gang runs
                self._queue.pause(gang_set, ANEW_SECONDS)
                return
            if not runs and failed_check(manager, group, scheduler_name, group.key) is not None:
                return  # it may not be planned: once it may it is, and comes back if it finds no room
            if self.search.barred(gang_set):
                self._queue.add(group, scheduler_name)
                self._queue.pause([group], BARRED_SECONDS)
                return
            if runs:
                situation = replace(situation, question=one_extra_member(question, gang_set))
        if not situation.question.request.needed:
            return
        found = self.search.search(situation)
        if isinstance(found, str):
            metrics.gang_preemption_attempts.labels("none").inc()
            again = found == messages.PREEMPTION_OUT_OF_TIME or self.search.may_yet(situation)
            with manager.lock:
                self._queue.in_vain(gang_set)
                if again:
                    self._queue.add(group, scheduler_name)
            return
        if runs:
            self._free(situation)
            return
        with self._rounds.planning:
            begun = self._begin(gang_set, scheduler_name, found)
        if begun is not None:
            self._carry_out(gang_set, scheduler_name, found, begun)

    def _free(self, situation: VictimQuestion) -> None:
        """Extra members come one by one: kube-scheduler preempts for each as for any pod, once our gate does not hold it."""
        pods = [info.pod for info in situation.question.request.members]
        log.info("extra members may preempt group=%s members=%d", situation.gang_set[0].key, len(pods))
        with self._manager.lock:
            self.coscheduling.dispatcher.steering.ungate(situation.gang_set[0].key, pods)
        self.coscheduling.dispatcher.steering.carry_out()

    def member_may_preempt(self, member: corev1.Pod, candidates: frozenset[str]) -> None:
        """kube-scheduler asks where pods may be evicted for one member of a gang that is to start. Returns at once."""
        manager = self._manager
        with manager.lock:
            group = manager.find(member)
            if group is None or member.uid not in group.members:
                return
            opened = group.refuted.may_preempt(member.uid, candidates)
        if opened:
            self.refused(group, member.spec.scheduler_name)

    # The decision

    def _begin(self, gang_set: Sequence[Group], scheduler_name: str, found: VictimPlan) -> dict[str, str] | None:
        """Reserves the places if the plan still holds. Returns the held members that have to let go; None if it does not."""
        manager = self._manager
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            if any(group.planned or group.preempting or group.key not in manager.groups for group in gang_set):
                return None
            situation = self.search.situation(gang_set, scheduler_name, snapshot)
            if self.search.barred(gang_set):
                self._anew(gang_set, scheduler_name)
                return None
            question, planned = situation.question, PlannedGangSet.of(manager, gang_set)
            released = {uid: key for uid, key in situation.released.items() if uid in found.awaited}
        victims = {victim.uid for victim in found.victims}
        asked = only_where_pods_go(question.request, situation.closed, set(found.placement.nodes.values()))
        placement = self._with.offload(planner.plan, without(question.cluster, found), asked, self._with.judges.plans)
        gap = self.search.gap(gang_set, snapshot, found)
        if gap or not isinstance(placement, planner.Placement) or not found.all_needed(placement):
            self._anew(gang_set, scheduler_name)
            return None
        until = max(
            [self._until(info.pod) for info in pods_on(snapshot, victims | found.awaited)],
            default=self.dependencies.wall(),
        )
        with manager.lock:
            waves = waves_of(placement)
            if cannot_be_woken(gang_set, waves, ""):
                for group in gang_set:
                    group.stop(
                        Diagnosis(UnschedulableReason.NEEDS_GATE, messages.needs_gate(manager.gate), manager.clock())
                    )
                return None
            if situation.question.request.tree is not None:
                gang_set = chosen_groups(manager, gang_set, placement.nodes.keys())
                planned = planned.only(gang_set)
            awaited = found.awaited - released.keys()
            priority = min(map(manager.line.priority_of, gang_set))
            if not still_holds(manager, found, awaited, priority) or not planned.may_start_with(
                manager, placement.nodes
            ):
                self._anew(gang_set, scheduler_name)
                return None
            waits_for = victims | awaited
            names = tuple(victim.pod.key for victim in found.victims)
            deadline = manager.clock() + until - self.dependencies.wall() + GOING_SECONDS
            self._note(gang_set, question.request, placement, waves, Preempting(waits_for, names, deadline))
            self._displace(gang_set, placement)
        return released

    def _anew(self, gang_set: Sequence[Group], scheduler_name: str) -> None:
        """Not at once: on the same cluster it would come to the same."""
        with self._manager.lock:
            self._queue.pause(gang_set, ANEW_SECONDS)
        self.refused(gang_set[0], scheduler_name)

    def _displace(self, gang_set: Sequence[Group], placement: planner.Placement) -> None:
        """Gives up other gangs' slots on these nodes that did not hold against the plan; their members are planned again. Lock held."""
        keys = {group.key for group in gang_set}
        priority = min(map(self._manager.line.priority_of, gang_set))
        for name in set(placement.nodes.values()):
            for place in list(self._manager.slots.on_node(name)):
                if place.group not in keys and not place.holds_against(priority):
                    lose_slot(self._manager, place)

    def _until(self, pod: corev1.Pod) -> float:
        """When it should have gone, if it is told now."""
        stamp = pod.metadata.deletion_timestamp
        if stamp is not None:
            return stamp.timestamp()
        seconds = pod.spec.termination_grace_period_seconds
        return self.dependencies.wall() + (DEFAULT_GRACE_SECONDS if seconds is None else seconds)

    def _note(
        self,
        gang_set: Sequence[Group],
        request: planner.Request,
        placement: planner.Placement,
        waves: list[frozenset[str]],
        preempting: Preempting,
    ) -> None:
        """Lock held."""
        manager = self._manager
        note_places(manager, gang_set, request, placement, waves, math.inf)
        self._rounds.reservations.turns.planned(gang_set)
        self.room.wait_for(gang_set, preempting)
        for group in gang_set:
            group.stop(Diagnosis(UnschedulableReason.PREEMPTING, messages.PREEMPTING, manager.clock()))
            self._queue.succeeded(group)

    def _carry_out(
        self, gang_set: Sequence[Group], scheduler_name: str, found: VictimPlan, released: dict[str, str]
    ) -> None:
        with self._manager.lock:
            holders = [each for key in sorted(set(released.values())) if (each := self._manager.groups.get(key))]
            reference = _reference(gang_set)
            pod_groups = [(group.key, group.object) for group in gang_set]
        for holder in holders:
            self.coscheduling.holds.reject_all(holder, messages.PREEMPTED)
        if reference is None:
            return
        key = gang_set[0].key
        log.info("gang preempts group=%s victims=%d", key, len(found.victims))
        metrics.gang_preemption_attempts.labels("victims" if found.victims else "waiting").inc()
        for name, pod_group in pod_groups:
            text = messages.evicts(len(found.victims)) if found.victims else messages.PREEMPTING
            verdict = Verdict(False, PREEMPTING, text, UnschedulableReason.PREEMPTING)
            self._with.verdicts.decided(pod_group, name, verdict)
        if found.victims:
            metrics.gang_preemption_victims.observe(len(found.victims))
            victims = sorted(found.victims, key=lambda victim: victim.importance)
            pods = [victim.pod for victim in victims]
            wanted = partial(self.room.awaited_by, key)
            eviction = Eviction(pods, f"PodGroup {key}", reference, scheduler_name, wanted=wanted)
            self.terminating.go(pods, found.broken_gangs)
            self.dependencies.evictor.evict(eviction, lambda failure: self._told(gang_set, pods, failure))
        else:
            self.room.has_preempted(gang_set)
        self.room.forget_those_gone(gang_set)

    def _told(self, gang_set: Sequence[Group], victims: Sequence[corev1.Pod], failure: str) -> None:
        if not failure:
            self.room.has_preempted(gang_set)
            return
        key = gang_set[0].key
        self.terminating.stay([pod.uid for pod in victims])
        log.warning("gang preempts no pod group=%s error=%s", key, failure)
        metrics.gang_preemption_attempts.labels("failed").inc()
        self.room.give_up(key, messages.preemption_failed(failure))


def _reference(gang_set: Sequence[Group]) -> corev1.ObjectReference | None:
    """The group, or, of one that is labels only, a member; None where all have gone meanwhile. Lock held."""
    if gang_set[0].object is not None:
        return pod_group_reference(gang_set[0].object)
    pods = [info.pod for group in gang_set for info in group.members.values()]
    return pod_reference(min(pods, key=lambda pod: pod.name)) if pods else None
