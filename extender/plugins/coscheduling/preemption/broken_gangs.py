"""Gangs that run with fewer than minMember for longer than they ask for: they are kept, or evicted whole so that they start anew.

The manager notes which gangs are broken (follow_broken); a tick visits those alone. Members that have Succeeded are asked for before
anything is done. Evictions go through the Eviction API, within disruption budgets: where one member may not go none does, and all is
tried again later. RestOfGangs is for gangs that preemption breaks. No counterpart upstream.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import partial

from extender import metrics
from extender.api import corev1
from extender.client.interface import pod_reference
from extender.config.durations import go_duration
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import BROKEN, CoschedulingDependencies, Eviction, Evictor, Verdict
from extender.plugins.coscheduling.events.ended_members import EndedMembers
from extender.plugins.coscheduling.preemption.terminating_victims import TerminatingVictims
from extender.plugins.coscheduling.spec.counts import KEEP, RESTART
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.retry import Retry

log = logging.getLogger(__name__)

AGAIN = Retry(10.0, 300.0)  # until what could not be listed, or evicted, is tried once more


@dataclass(frozen=True, slots=True)
class _Restart:
    """uids: of the members that are to go. at: when those that are there still are told once more, in seconds of the clock."""

    uids: frozenset[str]
    at: float
    failures: int = 1


@dataclass(eq=False)
class BrokenGangs:
    """The manager's lock guards what is noted; evictions are asked for outside it."""

    manager: PodGroupManager
    dependencies: CoschedulingDependencies
    ended_members: EndedMembers
    evictor: Evictor
    terminating: TerminatingVictims
    _told: dict[str, float] = field(default_factory=dict)  # keys of gangs that are kept -> since when each is broken
    _asked: dict[str, float] = field(default_factory=dict)  # keys -> when their ended members are looked up again
    _restarts: dict[str, _Restart] = field(default_factory=dict)  # by key

    def tick(self) -> None:
        """About once a second."""
        if not self.dependencies.may_plan():
            return
        with self.manager.lock:
            now, broken = self.manager.clock(), self.manager.begun.broken
            self._told = {key: since for key, since in self._told.items() if broken.get(key) == since}
            self._asked = {key: at for key, at in self._asked.items() if key in broken}
            due = [key for key in broken if key not in self._told and self._asked.get(key, now) <= now]
            due = [key for key in due if self._is_due(key)]
            self._asked |= dict.fromkeys(due, now + AGAIN.first_seconds)
            again = [key for key, each in self._restarts.items() if each.at <= now]
        self.ended_members.look_up(due, self._decide)
        for key in again:
            self.manager.quarantine.for_gang(key, "broken", partial(self._go_on, key), None)

    def _is_due(self, key: str) -> bool:
        """Lock held."""
        return self.manager.quarantine.for_gang(key, "broken", lambda: self._overdue(key) is not None, otherwise=False)

    def _overdue(self, key: str) -> tuple[Group, GroupSpec, float] | None:
        """The gang, and for how many seconds it may be broken, if it has been for longer. Lock held."""
        group, since = self.manager.groups.get(key), self.manager.begun.broken.get(key)
        spec = self.manager.spec(group) if group is not None else None
        if group is None or spec is None or since is None or spec.patience.broken_after is None:
            return None
        patience = spec.patience.broken_after
        return (group, spec, patience) if since + patience <= self.manager.clock() else None

    def _decide(self, keys: Collection[str]) -> None:
        """Their ended members are known by now."""
        for key in sorted(keys):
            self.manager.quarantine.for_gang(key, "broken", partial(self._end_patience, key), None)

    def _end_patience(self, key: str) -> None:
        with self.manager.lock:
            overdue = self._overdue(key)
            if overdue is None:
                return
            group, spec, patience = overdue
            restarts = spec.patience.restarts
            text = messages.broken(spec.min_member, go_duration(patience), restarts)
            pod_group, pods = group.object, _on_nodes(group)
            if restarts:
                uids = frozenset(pod.uid for pod in pods)
                self._restarts[key] = _Restart(uids, self.manager.clock() + AGAIN.first_seconds)
            else:
                self._told[key] = self.manager.begun.broken[key]
        metrics.broken_gangs.labels(RESTART if restarts else KEEP).inc()
        verdict = Verdict(False, BROKEN, text, event_only=not restarts)
        self.dependencies.verdicts.decided(pod_group, key, verdict, min(pods, key=_name))
        log.warning("gang is broken group=%s restarts=%s pods=%d", key, restarts, len(pods))
        if restarts:
            self._evict(key, pods, text)

    def _go_on(self, key: str) -> None:
        """Those that were not told after all are told once more; a restart of which none is left is over."""
        with self.manager.lock:
            group, restart = self.manager.groups.get(key), self._restarts.pop(key)
            uids = restart.uids & (group.members.keys() if group is not None else frozenset())
            on_their_way = restart.uids & self.manager.terminating.keys()
            if not uids and not on_their_way:
                return
            failures = restart.failures + (1 if uids else 0)
            later = self.manager.clock() + AGAIN.seconds(failures)
            self._restarts[key] = replace(restart, at=later, failures=failures)
            pods = [pod for pod in _on_nodes(group) if pod.uid in uids] if group is not None else []
        if pods:
            self._evict(key, pods, f"the rest of broken gang {key} goes")

    def _evict(self, key: str, pods: list[corev1.Pod], text: str) -> None:
        """They count as gone at once: a pod that is made for one of them starts with the new gang, and joins no rest."""

        def told(failure: str) -> None:
            if failure:
                log.error("broken gang was not evicted group=%s error=%s", key, failure)
                self.terminating.stay([pod.uid for pod in pods])

        by = pods[0]
        self.terminating.go(pods)
        eviction = Eviction(
            pods,
            f"broken gang {key}",
            pod_reference(by),
            by.spec.scheduler_name,
            within_budgets=True,
            event="GangRestarted",
            note=text,
        )
        self.evictor.evict(eviction, told)


def _on_nodes(group: Group) -> list[corev1.Pod]:
    """By name. Lock held."""
    return sorted((group.members[uid].pod for uid in group.assigned), key=_name)


def _name(pod: corev1.Pod) -> str:
    return pod.name
