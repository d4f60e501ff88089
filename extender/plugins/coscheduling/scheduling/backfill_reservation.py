"""The backfill reservation: nodes that are kept free for the gang that has waited longest in vain, so that smaller pods that go past it do
not keep it waiting for ever.

Younger gangs and single pods may pass a gang that does not fit now. Once it has waited for shadowAfterSeconds it gets a
reservation: on these nodes no pod of equal or lower priority is admitted until it starts or shadowMaxSeconds have passed; then
the next has its turn, one at a time. Turns in vain make the pauses before further ones longer (VainTurns).
ReservedRoom keeps single pods out, GangSetPlanning other gangs; the tick begins and ends.
No counterpart upstream; batch schedulers call the like a reservation for the first job in line (EASY backfill).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.backfill.backfill_nodes import Choice, choose_nodes, is_pinned
from extender.plugins.coscheduling.backfill.vain_turns import AskedRoom
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies, Verdict
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.scheduling.phases import Phase, phase_of
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.scheduling.reservation_turns import PAUSE_SECONDS, STARTS, End, ReservationTurns
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

log = logging.getLogger(__name__)

NO_NODES: frozenset[str] = frozenset()
RESERVED = "GangShadow"  # the event's reason
BEGUN, STARTED, EXPIRED, GONE = "begun", "started", "expired", "gone"


@dataclass(frozen=True, slots=True)
class BackfillReservation:
    """since, until: seconds of the clock. keys: of the groups that it is for, which start together."""

    group: str
    keys: frozenset[str]
    priority: int
    domain: str
    nodes: frozenset[str]
    since: float
    until: float
    wish: AskedRoom


class BackfillReservations:
    """The manager's lock guards everything here; the nodes are chosen outside of it, by the tick's thread.

    planning: held around that, since the judge serves one plan at a time; taken before the manager's lock.
    """

    def __init__(
        self,
        manager: PodGroupManager,
        dependencies: CoschedulingDependencies,
        requests: PlanRequests,
        schedule_planning: Callable[[], None],
        planning: AbstractContextManager[object],
    ) -> None:
        self._manager = manager
        self._with = dependencies
        self._rules = dependencies.backfill
        self._requests = requests
        self._schedule_planning = schedule_planning
        self._planning = planning
        self.current: BackfillReservation | None = None
        self.turns = ReservationTurns(manager, dependencies.backfill)
        self._ended = False
        self._pause_until = -math.inf

    # What is kept from which pods; under the manager's lock

    def kept_from(self, pod: corev1.Pod) -> frozenset[str]:
        """The nodes where a single pod is not admitted now. A DaemonSet's pod passes: it can run nowhere else."""
        reservation = self.current
        if reservation is None or pod.priority > reservation.priority or is_pinned(pod):
            return NO_NODES
        group = self._manager.find(pod)
        return NO_NODES if group is not None and group.key in reservation.keys else reservation.nodes

    def kept_from_gang_set(self, gang_set: Sequence[Group]) -> frozenset[str]:
        """A gang of which a part runs already is completed, whatever other gang waits."""
        reservation = self.current
        if reservation is None or any(
            group.key in reservation.keys or self._manager.begun.was_cut_short(group) for group in gang_set
        ):
            return NO_NODES
        return (
            reservation.nodes
            if min(map(self._manager.line.priority_of, gang_set)) <= reservation.priority
            else NO_NODES
        )

    def permitted(self, gang_set: Sequence[Group], question: PlanQuestion) -> PlanQuestion:
        """The question without the nodes that are kept from the gang set; the same object where none is."""
        kept = self.kept_from_gang_set(gang_set)
        if not kept:
            return question
        request = question.request
        rest = frozenset(node.name for node in question.snapshot.list()) - kept
        allowed = {
            uid: request.allowed[uid] - kept if uid in request.allowed else rest
            for uid in (info.pod.uid for info in request.members)
        }
        return question.asking(replace(request, allowed=allowed))

    # Beginning and end

    def ended(self) -> bool:
        """Whether a reservation has ended since this was last asked. Lock held."""
        ended, self._ended = self._ended, False
        return ended

    def tick(self) -> None:
        if not self._rules.on:
            return
        manager = self._manager
        with manager.lock:
            room_is_old = self.turns.room_is_old()
        if room_is_old:
            self.turns.know_room(self._with.newest_snapshot())
        with manager.lock:
            self.turns.look_at_one(self.current.keys if self.current is not None else ())
            over = self._over(self.current) if self.current is not None else ""
            if over:
                self._end(over)
            pausing = self.current is not None or manager.clock() < self._pause_until
            group = self.turns.next() if not pausing and self._with.may_plan() else None
        if over:
            self._schedule_planning()
        if group is not None:
            manager.quarantine.for_gang(group.key, "shadow", partial(self._begin, group), None)

    def _over(self, reservation: BackfillReservation) -> str:
        """Why it ends now; empty if it does not. Lock held."""
        group = self._manager.groups.get(reservation.group)
        if group is None or not self._with.may_plan():
            return GONE
        return self._manager.quarantine.for_gang(group.key, "shadow", partial(self._over_for, group, reservation), GONE)

    def _over_for(self, group: Group, reservation: BackfillReservation) -> str:
        if phase_of(self._manager, group) in STARTS:
            return STARTED
        pods = self._pending([group])
        failed = failed_check(self._manager, group, pods[0].spec.scheduler_name, pods[0].name) if pods else None
        if not pods or (failed is not None and failed.reason is not UnschedulableReason.BACKING_OFF):
            return GONE
        return EXPIRED if self._manager.clock() >= reservation.until else ""

    def _end(self, why: str) -> None:
        reservation, self.current, self._ended = self.current, None, True
        if reservation is None:
            return
        log.info("backfill reservation ends group=%s domain=%s result=%s", reservation.group, reservation.domain, why)
        metrics.shadows.labels(why).inc()
        metrics.shadow_nodes.set(0)
        self._pause_until = self._manager.clock() + PAUSE_SECONDS
        self.turns.ended(
            reservation.group,
            reservation.since,
            reservation.wish,
            reservation.nodes,
            self._end_of_turn(reservation, why),
        )
        self._manager.notes.on_capacity_freed()

    def _end_of_turn(self, reservation: BackfillReservation, why: str) -> End:
        """Whether the turn was in vain. One that ends early, because we lead no more or since victims go first, may not have been."""
        group = self._manager.groups.get(reservation.group)
        if why == STARTED:
            return End.STARTED
        in_vain = why == EXPIRED or (self._with.may_plan() and (group is None or not group.planned))
        return End.IN_VAIN if in_vain else End.CUT_SHORT

    def _pending(self, gang_set: Iterable[Group]) -> list[corev1.Pod]:
        pods = [info.pod for group in gang_set for info in group.pending() if self._with.ours(info.pod)]
        return sorted(pods, key=lambda pod: pod.name)

    def _begin(self, group: Group) -> None:
        manager = self._manager
        snapshot = self._with.newest_snapshot()
        with manager.lock:
            gang_set = gang_set_of(manager, group)
            pods = self._pending(gang_set)
            if not pods or manager.groups.get(group.key) is not group:
                return
            question = self._requests.question(gang_set, pods[0].spec.scheduler_name, snapshot)
            tried = self.turns.tried(group.key)
        judge, most = self._with.judges.plans, len(snapshot.list()) * self._rules.max_nodes_percent // 100
        for but in dict.fromkeys((tried, NO_NODES)):
            with self._planning:
                choice = self._with.offload(choose_nodes, question.cluster, question.request, judge, max(1, most), but)
            if choice is not None:
                break
        self.turns.know_room(snapshot)
        with manager.lock:
            if manager.groups.get(group.key) is not group:
                return
            if not isinstance(choice, Choice) or phase_of(manager, group) is not Phase.DENIED:
                self.turns.found_no_nodes(group.key)
                return
            now = manager.clock()
            priority = min(map(manager.line.priority_of, gang_set))
            keys = frozenset(each.key for each in gang_set)
            until, wish = now + self._rules.max_seconds, self.turns.wish_of(group)
            begun = self.current = BackfillReservation(
                group.key, keys, priority, choice.domain, choice.nodes, now, until, wish
            )
            self.turns.begun(group.key)
        self._tell(group, begun)

    def _tell(self, group: Group, reservation: BackfillReservation) -> None:
        log.info(
            "backfill reservation begins group=%s domain=%s nodes=%d",
            reservation.group,
            reservation.domain,
            len(reservation.nodes),
        )
        metrics.shadows.labels(BEGUN).inc()
        metrics.shadow_nodes.set(len(reservation.nodes))
        with self._manager.lock:
            pod_group = group.object
            gated = [group.members[uid].pod for uid in group.gated if uid in group.members]
        verdict = Verdict(
            False, RESERVED, messages.reservation_begins(reservation.domain, len(reservation.nodes)), event_only=True
        )
        member = min(gated, key=lambda pod: pod.name) if gated and pod_group is None else None
        self._with.verdicts.decided(pod_group, group.key, verdict, member)
