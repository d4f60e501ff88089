"""All of preemption that knows gangs, put together: the guard of the preempt verb, preemption for whole gangs, what they keep.

Hears of pods after the rest of Coscheduling, so that victims are gone from the groups by then.
No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from extender.api import corev1
from extender.crash import guarded, tell_every
from extender.plugins.coscheduling.dependencies import PreemptionDependencies
from extender.plugins.coscheduling.events.gang_scheduler import GangScheduler
from extender.plugins.coscheduling.hints.helpful_events import node_may_help
from extender.plugins.coscheduling.preemption.broken_gangs import BrokenGangs
from extender.plugins.coscheduling.preemption.gang_preemption import GangPreemption
from extender.plugins.coscheduling.preemption.guard import PreemptionGuard
from extender.plugins.coscheduling.preemption.rest_of_gangs import RestOfGangs
from extender.plugins.coscheduling.preemption.terminating_victims import TerminatingVictims
from extender.plugins.coscheduling.preemption.waiting_preemptors import WaitingPreemptors
from extender.plugins.coscheduling.scheduling.topology import GangSetDomains

Observer = Callable[[corev1.Pod | None, corev1.Pod | None], None]


class Preemption:
    """Observes pods as the plugins do."""

    def __init__(self, coscheduling: GangScheduler, dependencies: PreemptionDependencies) -> None:
        self._manager = coscheduling.manager
        self._rounds = coscheduling.rounds
        self._terminating = TerminatingVictims(self._manager, coscheduling.events, coscheduling.dependencies.verdicts)
        self._rest = RestOfGangs(
            self._manager,
            dependencies.evictor,
            self._terminating,
            dependencies.rules,
            coscheduling.dependencies.may_plan,
        )
        self._broken = BrokenGangs(
            self._manager,
            coscheduling.dependencies,
            coscheduling.ended_members,
            dependencies.evictor,
            self._terminating,
            dependencies.pdbs,
        )
        steering = coscheduling.dispatcher.steering
        self._newest_snapshot = coscheduling.dependencies.newest_snapshot
        self._waiting = WaitingPreemptors(
            self._manager, coscheduling.dependencies, steering, self._any_node, self._rest.allowed
        )
        self.gangs = GangPreemption(coscheduling, dependencies, self._terminating)
        self.guard = PreemptionGuard(
            self._manager,
            coscheduling.holds,
            self._rest,
            self._waiting,
            coscheduling.rounds.requests.overlays,
            coscheduling.dependencies.judges.in_tree(),
            newest_snapshot=self._newest_snapshot,
            pdbs=dependencies.pdbs,
            assumed=dependencies.assumed,
            steering=steering,
            gang_victims=dependencies.rules.gang_victims,
            domains=GangSetDomains(self._manager, coscheduling.dependencies.topology),
            member_may_preempt=self.gangs.member_may_preempt,
        )
        coscheduling.rounds.on_no_room(self.gangs.refused)
        changes: Sequence[Observer] = (self._terminating.on_pod, self._rest.on_pod, self._waiting.on_pod)
        self._of_changes = changes
        self._of_ends_and_arrivals: Sequence[Observer] = (
            self._follow_priorities,
            *changes,
            self.gangs.room.on_pod,
            self._give_back_place,
        )

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """An exception sets the pod's gang aside, and the event is brought again (client/deliveries)."""
        pod = new or old
        with self._manager.quarantine.blame(lambda: self._manager.key_of(pod) if pod is not None else ""):
            goes = new is None or new.terminal
            arrives = new is not None and new.node_name and (old is None or not old.node_name)
            tell_every(self._of_ends_and_arrivals if goes or arrives else self._of_changes, old, new)

    def _follow_priorities(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        with self._manager.lock:
            self.gangs.priorities.follow(old, new)

    def _give_back_place(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        pod = new or old
        if pod is not None:
            self._give_back(pod.uid)

    def on_node(self, old: corev1.Node | None, new: corev1.Node | None) -> None:
        """A place on a node that goes is lost as any other; on one that comes victims may be found that there were not."""
        if node_may_help(old, new):
            self.gangs.node_came()

    def tick(self) -> None:
        """About once a second. Each is done though another fails."""
        steps = (
            self._terminating.tick,
            self._rest.tick,
            self._broken.tick,
            self._waiting.tick,
            self.gangs.room.tick,
            self.gangs.tick,
            self._give_back_late,
        )
        for step in steps:
            guarded("preemption-tick", step)

    def _give_back_late(self) -> None:
        now = self._manager.clock()
        with self._manager.lock:
            late = [place.uid for place in self._manager.slots.of_group("") if place.expires <= now]
        for uid in late:
            self._give_back(uid)

    def _give_back(self, uid: str) -> None:
        """The place that the guard has kept for a single pod is needed no more."""
        with self._manager.lock:
            place = self._manager.slots.get(uid)
            if place is None or place.group:
                return
            self._manager.slots.release(uid)
            self._manager.notes.on_capacity_freed()
        self._rounds.schedule_planning()

    def _any_node(self) -> str:
        """That takes pods; empty where there is none."""
        return min((info.name for info in self._newest_snapshot().list() if not info.unschedulable), default="")
