"""The shadow: nodes that are kept free for the gang that has waited longest in vain, so that smaller pods that go past it do
not keep it waiting for ever.

Younger gangs and single pods may pass a gang that does not fit now. Once it has waited for shadowAfterSeconds it gets a
shadow: on these nodes no pod of equal or lower priority is admitted until it starts or shadowMaxSeconds have passed; then
the next has its turn, one at a time. Turns in vain make the pauses before further ones longer (VainTurns).
ReservedRoom keeps single pods out, GangSetPlanning other gangs; the tick begins and ends.
No counterpart upstream; batch schedulers call the like a reservation for the first job in line (EASY backfill).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.backfill.backfill_nodes import Choice, choose_nodes, is_pinned
from extender.plugins.coscheduling.backfill.vain_turns import Turn, VainTurns, Wish, room_of
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies, Verdict
from extender.plugins.coscheduling.planner.room import Amounts
from extender.plugins.coscheduling.scheduling.checks import failed_check
from extender.plugins.coscheduling.scheduling.phases import Phase, phase_of
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion, PlanRequests
from extender.plugins.coscheduling.state.diagnosis import Diagnosis, UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

log = logging.getLogger(__name__)

NO_NODES: frozenset[str] = frozenset()
SHORT_OF_ROOM = frozenset(
    (
        UnschedulableReason.INSUFFICIENT_RESOURCES,
        UnschedulableReason.MIN_RESOURCES,
        UnschedulableReason.TOPOLOGY_UNSATISFIABLE,
    )
)
"""What room that comes free can change; a node selector that nothing matches is no reason to keep nodes free."""
PAUSE_SECONDS = 15.0
"""Between two shadows: a pod that was refused for one is woken by its end, and tried before the next begins, after kube-scheduler's
longest back-off at the latest. Else a few gangs that never fit would keep the nodes idle for good, in turn."""
AGAIN_SECONDS = 30.0  # until a gang for which no nodes were found is looked at again, at least
SHADOW = "GangShadow"  # the event's reason
STARTS = frozenset((Phase.COMMITTING, Phase.BOUND))
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
    wish: Wish


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
        self._rules = dependencies.shadow
        self._requests = requests
        self._schedule_planning = schedule_planning
        self._planning = planning
        self.current: BackfillReservation | None = None
        self._waits_since: dict[str, float] = {}  # groups that lack room -> since when, or since their last turn
        self._turns: dict[str, int] = {}  # how many shadows groups have had since they last started
        self._vain = VainTurns(self._rules.after_seconds, PAUSE_SECONDS)
        self._room: Amounts = {}  # of the cluster, when it was last looked at
        self._room_known_at = -math.inf
        self._looked_at: Iterator[str] = iter(())  # of those that have had turns, one each tick
        self._not_before: dict[str, float] = {}
        self._ended = False
        self._pause_until = -math.inf
        manager.registry.on_dropped.append(self._forget)

    # What is kept from which pods; under the manager's lock

    def kept_from(self, pod: corev1.Pod) -> frozenset[str]:
        """The nodes where a single pod is not admitted now. A DaemonSet's pod passes: it can run nowhere else."""
        shadow = self.current
        if shadow is None or pod.priority > shadow.priority or is_pinned(pod):
            return NO_NODES
        group = self._manager.find(pod)
        return NO_NODES if group is not None and group.key in shadow.keys else shadow.nodes

    def kept_from_gang_set(self, gang_set: Sequence[Group]) -> frozenset[str]:
        """A gang of which a part runs already is completed, whatever other gang waits."""
        shadow = self.current
        if shadow is None or any(
            group.key in shadow.keys or self._manager.begun.was_cut_short(group) for group in gang_set
        ):
            return NO_NODES
        return shadow.nodes if min(map(self._manager.line.priority_of, gang_set)) <= shadow.priority else NO_NODES

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

    # What GangSetPlanning decides

    def denied(self, group: Group, stop: Diagnosis) -> None:
        """Groups that start together have their turns as one."""
        if self._rules.on and stop.reason in SHORT_OF_ROOM:
            key = min(each.key for each in gang_set_of(self._manager, group))
            self._waits_since.setdefault(key, self._manager.clock())

    def planned(self, gang_set: Iterable[Group]) -> None:
        """The turns that it has had are not forgotten before it starts."""
        for group in gang_set:
            for notes in (self._waits_since, self._not_before):
                notes.pop(group.key, None)

    def _forget(self, key: str) -> None:
        """The group is gone, or has started."""
        for notes in (self._waits_since, self._not_before, self._turns):
            notes.pop(key, None)
        self._vain.forget(key)

    # Beginning and end

    def ended(self) -> bool:
        """Whether a shadow has ended since this was last asked. Lock held."""
        ended, self._ended = self._ended, False
        return ended

    def tick(self) -> None:
        if not self._rules.on:
            return
        manager = self._manager
        with manager.lock:
            room_is_old = self._turns and manager.clock() - self._room_known_at >= PAUSE_SECONDS
        if room_is_old:
            self._know_room(self._with.newest_snapshot())
        with manager.lock:
            self._look_at_one()
            over = self._over(self.current) if self.current is not None else ""
            if over:
                self._end(over)
            pausing = self.current is not None or manager.clock() < self._pause_until
            group = self._next() if not pausing and self._with.may_plan() else None
        if over:
            self._schedule_planning()
        if group is not None:
            manager.quarantine.for_gang(group.key, "shadow", partial(self._begin, group), None)

    def _know_room(self, snapshot: NodeInfoLister) -> None:
        room = room_of(snapshot)
        with self._manager.lock:
            self._room, self._room_known_at = room, self._manager.clock()

    def _look_at_one(self) -> None:
        """One of those that have had turns, each time another: they are forgotten where they say nothing any more. Lock held."""
        key = next(self._looked_at, "")
        if not key:
            self._looked_at = iter(list(self._turns))
            return
        group = self._manager.groups.get(key)
        if group is not None and key in self._turns and (self.current is None or key not in self.current.keys):
            self._manager.quarantine.for_gang(key, "shadow", partial(self._look_at, group), None)

    def _look_at(self, group: Group) -> None:
        phase = phase_of(self._manager, group)
        if phase in STARTS:
            self._forget(group.key)
        elif phase is Phase.DENIED and self._vain.is_over(group.key, self._wish_of(group), self._room):
            log.info("shadow may come again group=%s", group.key)
            self._turns.pop(group.key, None)

    def _wish_of(self, group: Group) -> Wish:
        gang_set = sorted(gang_set_of(self._manager, group), key=lambda each: each.key)
        specs = [spec for spec in map(self._manager.spec, gang_set) if spec is not None]
        return Wish.of(specs, (info for each in gang_set for info in each.pending()))

    def _over(self, shadow: BackfillReservation) -> str:
        """Why it ends now; empty if it does not. Lock held."""
        group = self._manager.groups.get(shadow.group)
        if group is None or not self._with.may_plan():
            return GONE
        return self._manager.quarantine.for_gang(group.key, "shadow", partial(self._over_for, group, shadow), GONE)

    def _over_for(self, group: Group, shadow: BackfillReservation) -> str:
        if phase_of(self._manager, group) in STARTS:
            return STARTED
        pods = self._pending([group])
        gate = failed_check(self._manager, group, pods[0].spec.scheduler_name, pods[0].name) if pods else None
        if not pods or (gate is not None and gate.reason is not UnschedulableReason.BACKING_OFF):
            return GONE
        return EXPIRED if self._manager.clock() >= shadow.until else ""

    def _end(self, why: str) -> None:
        shadow, self.current, self._ended = self.current, None, True
        if shadow is None:
            return
        log.info("shadow ends group=%s domain=%s result=%s", shadow.group, shadow.domain, why)
        metrics.shadows.labels(why).inc()
        metrics.shadow_nodes.set(0)
        now = self._manager.clock()
        if shadow.group in self._waits_since:
            self._waits_since[shadow.group] = now
        self._pause_until = now + PAUSE_SECONDS
        self._note_end(shadow, why, now)
        self._manager.notes.on_capacity_freed()

    def _note_end(self, shadow: BackfillReservation, why: str, now: float) -> None:
        """Whether the turn was in vain. One that ends early, because we lead no more or since victims go first, may not have been."""
        group = self._manager.groups.get(shadow.group)
        if why == STARTED:
            self._vain.started(shadow.group)
            self._turns.pop(shadow.group, None)
        elif why == EXPIRED or (self._with.may_plan() and (group is None or not group.planned)):
            turns = self._turns.get(shadow.group, 1)
            turn = Turn(now - shadow.since, shadow.wish, self._room, shadow.nodes)
            self._vain.ended(shadow.group, turns, now, turn)
        if group is None:
            self._forget(shadow.group)

    def _next(self) -> Group | None:
        """The gang that has its turn now: of the namespace that had the fewest in vain, the one that had the fewest, then the first
        in line. Lock held."""
        manager, now = self._manager, self._manager.clock()
        due = [
            manager.groups[key]
            for key, since in self._waits_since.items()
            if now - since >= self._rules.after_seconds
            and self._not_before.get(key, now) <= now
            and self._vain.may_begin(key, now)
        ]
        waiting = [
            group
            for group in due
            if manager.quarantine.for_gang(group.key, "shadow", partial(phase_of, manager, group), None) is Phase.DENIED
        ]
        return min(manager.line.in_order(waiting), key=self._turns_before, default=None)

    def _turns_before(self, group: Group) -> tuple[int, int]:
        return self._vain.of_namespace(group.key), self._turns.get(group.key, 0)

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
            tried = self._vain.tried(group.key)
        judge, most = self._with.judges.plans, len(snapshot.list()) * self._rules.max_nodes_percent // 100
        for but in dict.fromkeys((tried, NO_NODES)):
            with self._planning:
                choice = self._with.offload(choose_nodes, question.cluster, question.request, judge, max(1, most), but)
            if choice is not None:
                break
        self._know_room(snapshot)
        with manager.lock:
            if manager.groups.get(group.key) is not group:
                return
            if not isinstance(choice, Choice) or phase_of(manager, group) is not Phase.DENIED:
                self._not_before[group.key] = manager.clock() + max(AGAIN_SECONDS, self._rules.after_seconds)
                return
            now = manager.clock()
            priority = min(map(manager.line.priority_of, gang_set))
            keys = frozenset(each.key for each in gang_set)
            until, wish = now + self._rules.max_seconds, self._wish_of(group)
            begun = self.current = BackfillReservation(
                group.key, keys, priority, choice.domain, choice.nodes, now, until, wish
            )
            self._turns[group.key] = self._turns.get(group.key, 0) + 1
        self._tell(group, begun)

    def _tell(self, group: Group, shadow: BackfillReservation) -> None:
        log.info("shadow begins group=%s domain=%s nodes=%d", shadow.group, shadow.domain, len(shadow.nodes))
        metrics.shadows.labels(BEGUN).inc()
        metrics.shadow_nodes.set(len(shadow.nodes))
        with self._manager.lock:
            pod_group = group.object
            gated = [group.members[uid].pod for uid in group.gated if uid in group.members]
        verdict = Verdict(False, SHADOW, messages.shadow_begins(shadow.domain, len(shadow.nodes)), event_only=True)
        member = min(gated, key=lambda pod: pod.name) if gated and pod_group is None else None
        self._with.verdicts.decided(pod_group, group.key, verdict, member)
