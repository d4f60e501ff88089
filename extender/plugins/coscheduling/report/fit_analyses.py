"""What would make a gang fit: the planner's answers to relaxed requests, one at a time, shown again while they are fresh.

GangReport completes a gang's status with it. The question is asked of the state under the manager's lock; the answer, which
takes up to relaxation's budget, is computed off the event loop under none but this file's own.
No counterpart upstream.
"""

from __future__ import annotations

import dataclasses
import threading
import time

from cachetools import TTLCache
from msgspec.structs import replace

from extender.framework.resource import PODS
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.report.gang_status import Domain, GangStatus, Relaxation, Shortfall, amount_text
from extender.plugins.coscheduling.report.relaxation import Analysis, Question, analyse
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

FRESH_SECONDS = 2.0  # how long an analysis is shown again
KEPT = 100


class FitAnalyses:
    """judge: not the plans' own, so that an explanation and a plan do not wait for each other."""

    def __init__(
        self,
        manager: PodGroupManager,
        rounds: PlanningRounds,
        dependencies: CoschedulingDependencies,
        judge: planner.Judge,
    ) -> None:
        self._manager = manager
        self._rounds = rounds
        self._with = dependencies
        self._judge = judge
        self._analysing = threading.Lock()  # one at a time; guards _found; taken before the manager's, if both
        self._found: TTLCache[tuple[str, int], Analysis] = TTLCache(KEPT, FRESH_SECONDS, timer=manager.clock)

    def question(self, group: Group) -> Question | None:
        """What the planner would be asked for the group now; None where no member needs a place. Manager's lock held."""
        manager = self._manager
        spec = manager.spec(group)
        pods = [info.pod for info in group.pending() if self._with.ours(info.pod)]
        if spec is None or spec.invalid or not pods:
            return None
        scheduler_name = min(pods, key=lambda pod: pod.name).spec.scheduler_name
        gang_set = gang_set_of(manager, group)
        request = self._rounds.requests.request(gang_set, scheduler_name)
        return Question(request, spec.min_member, frozenset(uid for each in gang_set for uid in each.members))

    def complete(self, status: GangStatus, question: Question, kept: frozenset[str]) -> GangStatus:
        """The status with what is missing and what would help. kept: nodes that are another's shadow, where it may not go now.

        No lock held.
        """
        analysis = self._analysis(status.gang.key, question, kept)
        if status.gang.reason == UnschedulableReason.MIN_RESOURCES:
            return replace(status, relaxations=_without_min_resources(analysis))
        if analysis.verdict is None:
            return replace(status, fits_now=True)
        return replace(
            status,
            shortfall=_shortfall(analysis.verdict),
            reserved_for=self._holders(question)
            if status.gang.reason == UnschedulableReason.RESERVED_FOR_OTHERS
            else (),
            relaxations=tuple(analysis.relaxations),
        )

    def _analysis(self, key: str, question: Question, kept: frozenset[str]) -> Analysis:
        with self._analysing:
            with self._manager.lock:
                entry = (key, self._manager.epoch)
            known = self._found.get(entry)
            if known is not None:
                return known
            snapshot = self._with.newest_snapshot()
            if kept:
                request = self._rounds.reservations.without(question.request, kept, snapshot)
                question = dataclasses.replace(question, request=request)
            found = self._with.offload(analyse, snapshot.list(), question, self._judge, time.monotonic)
            if not isinstance(found, Analysis):
                raise TypeError(f"no analysis: {found!r}")
            self._found[entry] = found
            return found

    def _holders(self, question: Question) -> tuple[str, ...]:
        """The groups whose places count against this one."""
        with self._manager.lock:
            promised = (pod.pod.uid for _, pod in question.request.promised if pod.pod.uid not in question.own)
            places = [self._manager.slots.get(uid) for uid in promised]
        return tuple(sorted({place.group for place in places if place is not None}))


def _without_min_resources(analysis: Analysis) -> tuple[Relaxation, ...]:
    """Whether the members themselves would fit, if minResources did not ask for more."""
    if analysis.verdict is None:
        return (Relaxation("MinResources", "without minResources, or with less: the members themselves fit"),)
    first = Relaxation(
        "MinResources", "less minResources alone does not help: the members themselves do not fit either"
    )
    return (first, *analysis.relaxations)


def _shortfall(verdict: planner.Verdict) -> Shortfall:
    counted = not verdict.resource or verdict.resource == PODS
    return Shortfall(
        placed=verdict.placed,
        needed=verdict.needed,
        resource=verdict.resource,
        missing=str(verdict.missing or "") if counted else amount_text(verdict.resource, verdict.missing),
        level=verdict.level,
        domains=tuple(Domain(fit.name, fit.holds) for fit in verdict.domains),
    )
