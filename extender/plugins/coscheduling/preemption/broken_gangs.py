"""Gangs that run with fewer than minMember for longer than they ask for: they are kept, or evicted whole so that they start anew.

The manager notes which gangs are broken (follow_broken); a tick visits those alone. Members that have Succeeded are asked for before
anything is done. Evictions go through the Eviction API, within disruption budgets: where these do not allow all of them at once none
goes, and all is tried again later, unless the gang is whole again by then. A restart that we did not live to finish is known by the
PodGroup's condition. RestOfGangs is for gangs that preemption breaks. No counterpart upstream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from extender import metrics
from extender.api import corev1, policyv1
from extender.client.interface import pod_reference
from extender.config.durations import go_duration
from extender.framework.pod_info import PodInfo
from extender.framework.preemption.disruption_budgets import split_by_violation
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import BROKEN, CoschedulingDependencies, Eviction, Evictor, Verdict
from extender.plugins.coscheduling.events.ended_members import EndedMembers
from extender.plugins.coscheduling.preemption.terminating_victims import TerminatingVictims
from extender.plugins.coscheduling.scheduling.checks import says_broken
from extender.plugins.coscheduling.spec.counts import KEEP, RESTART
from extender.plugins.coscheduling.spec.pod_group import GroupSpec
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.state.quorum import minima_missed
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
    """The manager's lock guards what is noted; evictions are asked for outside it. pdbs: all that there are."""

    manager: PodGroupManager
    dependencies: CoschedulingDependencies
    ended_members: EndedMembers
    evictor: Evictor
    terminating: TerminatingVictims
    pdbs: Callable[[], Sequence[policyv1.PodDisruptionBudget]]
    _told: dict[str, float] = field(default_factory=dict)  # keys of gangs that are kept -> since when each is broken
    _asked: dict[str, float] = field(default_factory=dict)  # keys -> when their ended members are looked up again
    _restarts: dict[str, _Restart] = field(default_factory=dict)  # by key
    _cut_short: set[str] | None = None  # keys of gangs that the leader before us began to restart; None: we do not lead

    def tick(self) -> None:
        """About once a second."""
        if not self.dependencies.may_plan():
            self._cut_short = None
            return
        with self.manager.lock:
            now, broken = self.manager.clock(), self.manager.begun.broken
            self._cut_short = set(filter(self._is_cut_short, self._begun_before()))
            self._told = {key: since for key, since in self._told.items() if broken.get(key) == since}
            self._asked = {key: at for key, at in self._asked.items() if key in broken}
            self._restarts = {key: each for key, each in self._restarts.items() if self._is_left(key, each)}
            known = self._told.keys() | self._restarts.keys()
            due = [key for key in broken if key not in known and self._asked.get(key, now) <= now]
            due = [key for key in due if self._is_due(key)]
            self._asked |= dict.fromkeys(due, now + AGAIN.first_seconds)
            again = [key for key, each in self._restarts.items() if each.at <= now]
        self.ended_members.look_up(due, self._decide)
        for key in again:
            self.manager.quarantine.for_gang(key, "broken", partial(self._go_on, key), None)

    def _is_left(self, key: str, restart: _Restart) -> bool:
        """Whether any of those that are to go has not gone yet. Lock held."""
        group = self.manager.groups.get(key)
        there = group.members.keys() if group is not None else frozenset[str]()
        return not restart.uids.isdisjoint(there) or not restart.uids.isdisjoint(self.manager.terminating)

    def _is_due(self, key: str) -> bool:
        """Lock held."""
        return self.manager.quarantine.for_gang(key, "broken", lambda: self._overdue(key) is not None, otherwise=False)

    def _begun_before(self) -> Iterable[str]:
        """Keys of gangs that their PodGroups already called broken when we began to lead: these are overdue at once. Lock held."""
        if self._cut_short is not None:
            return self._cut_short
        manager = self.manager
        return [
            key
            for key, group in manager.groups.items()
            if manager.quarantine.for_gang(key, "broken", partial(says_broken, group), otherwise=False)
        ]

    def _is_cut_short(self, key: str) -> bool:
        """Not whole by now: it is not known at once of each gang whether it has started, and is broken. Lock held."""
        group = self.manager.groups.get(key)
        step = partial(self._is_whole, group) if group is not None else lambda: True
        return not self.manager.quarantine.for_gang(key, "broken", step, otherwise=True)

    def _overdue(self, key: str) -> tuple[Group, GroupSpec, float] | None:
        """The gang, and for how many seconds it may be broken, if it has been for longer. Lock held."""
        group, since = self.manager.groups.get(key), self.manager.begun.broken.get(key)
        spec = self.manager.specs.of(group) if group is not None else None
        if group is None or spec is None or since is None or spec.patience.broken_after is None:
            return None
        patience = spec.patience.broken_after
        late = since + patience <= self.manager.clock() or (spec.patience.restarts and key in (self._cut_short or ()))
        return (group, spec, patience) if late else None

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
        """Those that were not told after all are told once more. A restart of which none has gone while what was lost has been replaced
        is over."""
        with self.manager.lock:
            group, restart = self.manager.groups.get(key), self._restarts.pop(key)
            uids = restart.uids & (group.members.keys() if group is not None else frozenset())
            if uids == restart.uids and group is not None and self._is_whole(group):
                log.info("broken gang is whole again group=%s", key)
                return
            failures = restart.failures + (1 if uids else 0)
            later = self.manager.clock() + AGAIN.seconds(failures)
            self._restarts[key] = replace(restart, at=later, failures=failures)
            pods = [pod for pod in _on_nodes(group) if pod.uid in uids] if group is not None else []
        if pods:
            self._evict(key, pods, f"the rest of broken gang {key} goes")

    def _is_whole(self, group: Group) -> bool:
        """Lock held."""
        spec = self.manager.specs.of(group)
        return spec is not None and not minima_missed(group, spec, group.assigned, group.ended.values())

    def _evict(self, key: str, pods: list[corev1.Pod], text: str) -> None:
        """They count as gone at once: a pod that is made for one of them starts with the new gang, and joins no rest."""

        def told(failure: str) -> None:
            if failure:
                log.error("broken gang was not evicted group=%s error=%s", key, failure)
                self.terminating.stay([pod.uid for pod in pods])

        forbidden, _ = split_by_violation([PodInfo(pod) for pod in pods], self.pdbs())
        if forbidden:  # the server's dry run counts each by itself, and would let the first ones go
            log.warning("broken gang may not be evicted whole group=%s budgets forbid=%d", key, len(forbidden))
            return
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
