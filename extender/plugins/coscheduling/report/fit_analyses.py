"""What would make a gang fit: the planner's answers to relaxed requests, one at a time, shown again while they are fresh.

GangReport completes a gang's status with it. The question is asked of the state under the manager's lock; the answer, which
takes up to relaxation's budget, is computed off the event loop under none but this file's own.
No counterpart upstream.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from cachetools import TTLCache
from msgspec.structs import replace

from extender.framework.listers import NodeInfoLister
from extender.framework.resource import PODS
from extender.plugins.coscheduling import planner
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.report.gang_status import Domain, GangStatus, Relaxation, Shortfall, amount_text
from extender.plugins.coscheduling.report.relaxation import Analysis, analyse
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager

FRESH_SECONDS = 2.0  # how long an analysis is shown again
KEPT = 100


@dataclass(eq=False)
class FitAnalyses:
    """With a judge of its own: an explanation and a plan do not wait for each other."""

    manager: PodGroupManager
    rounds: PlanningRounds
    dependencies: CoschedulingDependencies

    def __post_init__(self) -> None:
        self._reservations = self.rounds.reservations
        self._judge = self.dependencies.judges.new()
        self._requests = self.rounds.requests
        self._analysing = threading.Lock()  # one at a time; guards _found; taken before the manager's, if both
        self._found: TTLCache[tuple[str, int], Analysis] = TTLCache(KEPT, FRESH_SECONDS, timer=self.manager.clock)

    def complete(self, status: GangStatus, group: Group) -> GangStatus | None:
        """The status with what is missing and what would help; None where no member needs a place. No lock held."""
        analysis = self._analysis(group)
        if analysis is None:
            return None
        if status.gang.reason == UnschedulableReason.MIN_RESOURCES:
            return replace(status, relaxations=_without_min_resources(analysis))
        if analysis.verdict is None:
            return replace(status, fits_now=True)
        reserved = status.gang.reason == UnschedulableReason.RESERVED_FOR_OTHERS
        return replace(
            status,
            shortfall=shortfall_of(analysis.verdict),
            reserved_for=self._holders(group) if reserved else (),
            relaxations=tuple(analysis.relaxations),
        )

    def _analysis(self, group: Group) -> Analysis | None:
        manager = self.manager
        with self._analysing:
            with manager.lock:
                entry = (group.key, manager.notes.epoch)
            known = self._found.get(entry)
            if known is not None:
                return known
            snapshot = self.dependencies.newest_snapshot()
            with manager.lock:
                asked = self._question(group, snapshot)
            if asked is None:
                return None
            found = self._analysed(*asked)
            self._found[entry] = found
            return found

    def of_question(self, question: PlanQuestion, min_member: int) -> Analysis:
        """Of a gang that is not there: nothing of the answer is kept. No lock held."""
        with self._analysing:
            return self._analysed(question, min_member)

    def plan(self, question: PlanQuestion) -> planner.Placement | planner.NoPlacement:
        """Likewise, where only the places are asked for."""
        with self._analysing:
            found: planner.Placement | planner.NoPlacement = self.dependencies.offload(
                planner.plan, question.cluster, question.request, self._judge
            )
            return found

    def _analysed(self, question: PlanQuestion, min_member: int) -> Analysis:
        found: Analysis = self.dependencies.offload(analyse, question, min_member, self._judge, time.monotonic)
        return found

    def _question(self, group: Group, snapshot: NodeInfoLister) -> tuple[PlanQuestion, int] | None:
        """What the planner would be asked for the group now, without nodes reserved for another, and its minMember. Lock held."""
        manager = self.manager
        spec = manager.specs.valid(group)
        pods = [info.pod for info in group.pending() if self.dependencies.ours(info.pod)]
        if spec is None or not pods:
            return None
        scheduler_name = min(pods, key=lambda pod: pod.name).spec.scheduler_name
        gang_set = gang_set_of(manager, group)
        question = self._requests.question(gang_set, scheduler_name, snapshot)
        return self._reservations.permitted(gang_set, question), spec.min_member

    def _holders(self, group: Group) -> tuple[str, ...]:
        """Keys of the groups whose slots keep room from this one."""
        with self.manager.lock:
            places = self._requests.places_of_others(gang_set_of(self.manager, group))
            return tuple(sorted({place.group for place in places}))


def _without_min_resources(analysis: Analysis) -> tuple[Relaxation, ...]:
    """Whether the members themselves would fit, if minResources did not ask for more."""
    if analysis.verdict is None:
        return (Relaxation("MinResources", "without minResources, or with less: the members themselves fit"),)
    first = Relaxation(
        "MinResources", "less minResources alone does not help: the members themselves do not fit either"
    )
    return (first, *analysis.relaxations)


def missing_of(verdict: planner.NoPlacement | None) -> dict[str, str]:
    """Resource -> what there is too little of; empty where that is not what a plan has failed for."""
    if verdict is None or not verdict.resource or not verdict.missing:
        return {}
    return {verdict.resource: _amount(verdict)}


def _amount(verdict: planner.NoPlacement) -> str:
    counted = not verdict.resource or verdict.resource == PODS
    return str(verdict.missing or "") if counted else amount_text(verdict.resource, verdict.missing)


def shortfall_of(verdict: planner.NoPlacement) -> Shortfall:
    return Shortfall(
        placed=verdict.placed,
        needed=verdict.needed,
        resource=verdict.resource,
        missing=_amount(verdict),
        level=verdict.level,
        domains=tuple(Domain(fit.name, fit.holds) for fit in verdict.domains),
        slices=verdict.slices,
    )
