"""Preemptions of gangs that were broken off, as when the process died in the middle: what is left of the gang goes too.

Victims carry the condition DisruptionTarget, with the reason PreemptionByScheduler, before the first of them goes; those that
kube-scheduler evicts show it for as long as they take to end. No counterpart in kube-scheduler: its victims are single pods.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from extender.api import corev1
from extender.client.interface import pod_reference
from extender.plugins.coscheduling.preemption.evictable import GangVictims
from extender.plugins.coscheduling.preemption.eviction import Eviction, Evictor
from extender.plugins.coscheduling.preemption.leaving import Leaving
from extender.plugins.coscheduling.preemption.rules import PreemptionRules
from extender.plugins.coscheduling.preemption.running_gangs import running_gang
from extender.plugins.coscheduling.state.pod_conditions import was_preempted
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

log = logging.getLogger(__name__)

SETTLED_SECONDS = 10.0  # whoever evicts a gang has told all of it by then


class BrokenOff:
    """The manager's lock guards what is noted; evictions are asked for outside it."""

    def __init__(
        self,
        manager: PodGroupManager,
        evictor: Evictor,
        leaving: Leaving,
        rules: PreemptionRules,
        may_plan: Callable[[], bool],
    ) -> None:
        self._manager = manager
        self._evictor = evictor
        self._leaving = leaving
        self._gangs_go_whole = rules.gang_victims is not GangVictims.ANY
        self._may_plan = may_plan
        self._look_at: dict[str, float] = {}  # key of a group with a victim -> when

    def on_pod(self, old: corev1.Pod | None, new: corev1.Pod | None) -> None:
        """A victim that we see for the first time may be all that is left: of the others nothing is known then."""
        if (
            new is None
            or not self._gangs_go_whole
            or not was_preempted(new)
            or (old is not None and was_preempted(old))
        ):
            return
        manager = self._manager
        ref = manager.labels.group_of(new)
        if ref is not None:
            with manager.lock:
                if old is None or self._may_be_told_later(ref.key) or self._left_over(ref.key, without=new.uid):
                    self._look_at[ref.key] = manager.clock() + SETTLED_SECONDS

    def tick(self) -> None:
        """About once a second."""
        manager = self._manager
        with manager.lock:
            noted = bool(self._look_at)
        if not noted or not self._may_plan() or not self._evictor.allowed():
            return
        with manager.lock:
            now = manager.clock()
            due = [key for key, at in self._look_at.items() if at <= now and not self._may_be_told_later(key)]
            left = {key: self._left_over(key) for key in due if not self._may_be_told_later(key)}
            for key in due:
                del self._look_at[key]
        for key, pods in left.items():
            if pods:
                self._finish(key, pods)

    def _may_be_told_later(self, key: str) -> bool:
        """Whether it cannot be said yet which members are left over: its pods are there and its PodGroup is not, as may be when we
        start, or the gang is set aside. Lock held."""
        group, quarantine = self._manager.groups.get(key), self._manager.quarantine
        if group is None or not group.members:
            return False
        return quarantine.for_gang(key, "preempt", lambda: self._manager.spec(group) is None, otherwise=True)

    def _left_over(self, key: str, without: str = "") -> list[corev1.Pod]:
        """Who runs of a gang that cannot run with them alone, and is not on its way to be whole. Lock held."""
        group = self._manager.groups.get(key)
        gang = running_gang(self._manager, group) if group is not None else None
        if group is None or gang is None or gang.whole_with(gang.running.keys() - {without}):
            return []
        if any(place.uid not in gang.running for place in self._manager.ledger.of_group(key)):
            return []
        return [info.pod for info, _ in gang.running.values()]

    def _finish(self, key: str, pods: Sequence[corev1.Pod]) -> None:
        log.warning("preemption was broken off, the rest of the gang goes group=%s pods=%d", key, len(pods))
        self._leaving.go(pods)
        first = pods[0]
        cause, name = "a preemption that was broken off", first.spec.scheduler_name
        eviction = Eviction(pods, cause, pod_reference(first), name, despite_budgets=True)
        self._evictor.evict(eviction, lambda failure: self._told(key, pods, failure))

    def _told(self, key: str, pods: Sequence[corev1.Pod], failure: str) -> None:
        if failure:
            log.error("rest of a gang was not evicted group=%s error=%s", key, failure)
            self._leaving.stay([pod.uid for pod in pods])
            with self._manager.lock:
                self._look_at[key] = self._manager.clock() + SETTLED_SECONDS
