"""Whether a gang that is not there yet would fit: where, or what is missing, what it would evict, what would make it fit.

On the snapshot and the promised places of this moment, by the plan and the search for victims that the gang would get if it came.
Nothing of it is noted: no place, no turn in line, no overlay. The page /whatif asks.
No counterpart upstream; Slurm: sbatch --test-only
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from extender.framework.listers import NodeInfoLister
from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.events.gang_scheduler import GangScheduler
from extender.plugins.coscheduling.planner.request import Cause
from extender.plugins.coscheduling.preemption.victim_search import Looked, VictimSearch
from extender.plugins.coscheduling.questions.asked import AskedGangSet, Question, read
from extender.plugins.coscheduling.questions.one_at_a_time import OneAtATime
from extender.plugins.coscheduling.questions.places import places_by_name
from extender.plugins.coscheduling.report.fit_analyses import shortfall_of
from extender.plugins.coscheduling.report.gang_report import GangReport
from extender.plugins.coscheduling.report.outlook import GangOutlook, WhatIf
from extender.plugins.coscheduling.report.relaxation import Analysis
from extender.plugins.coscheduling.scheduling.plan_request import PlanQuestion
from extender.plugins.coscheduling.state.diagnosis import diagnosis_of_plan
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.line import Order

RESERVATIONS = "Reservations"  # the kind of relaxation that says that only places of others are in the way


@dataclass(frozen=True, slots=True)
class _Taken:
    """What is read of the gangs' state under one lock. gap: the resources that the whole cluster has too little of for minResources.
    holders: keys of the groups whose slots keep room from the gang.
    """

    question: PlanQuestion
    gap: Sequence[str]
    holders: tuple[str, ...]
    order: Order


@dataclass(eq=False)
class WhatIfQuestions:
    """search: None where no pod is evicted for gangs."""

    coscheduling: GangScheduler
    report: GangReport
    search: VictimSearch | None
    one_at_a_time: OneAtATime

    def __post_init__(self) -> None:
        self._manager = self.coscheduling.manager
        self._with = self.coscheduling.dependencies
        self._requests = self.coscheduling.rounds.requests
        self._reservations = self.coscheduling.rounds.reservations

    def ask(self, question: Question) -> WhatIf:
        """Raises QuestionError for what makes no sense, BusyError. Takes as long as some plans, off the event loop."""
        given = self._with
        sets = read(question, self._manager, given.ours, given.scheduler_name)
        with self.one_at_a_time.turn():
            snapshot = given.newest_snapshot()
            return WhatIf(tuple(self._outlook(each, snapshot) for each in sets), standby=not given.may_plan())

    def _outlook(self, asked: AskedGangSet, snapshot: NodeInfoLister) -> GangOutlook:
        outlook = self._described(asked)
        if asked.failed is not None:
            return replace(outlook, reason=asked.failed.cause)
        taken = self._taken(asked, snapshot)
        outlook = replace(outlook, needed=taken.question.request.needed, ahead=self.report.ahead_of(taken.order))
        analysis = self.report.analyses.of_question(taken.question, outlook.min_member)
        if analysis.placement is not None and not taken.gap:
            placement = analysis.placement
            return replace(
                outlook, fits=True, places=places_by_name(asked.groups, placement.nodes), domain=placement.domain
            )
        looked = None if _names_no_level(analysis) else self._victims(asked, snapshot)
        return _refused(outlook, asked, taken, analysis, looked)

    def _described(self, asked: AskedGangSet) -> GangOutlook:
        groups = asked.groups
        specs = [spec for group in groups if (spec := group.spec) is not None]
        return GangOutlook(
            groups=asked.keys,
            min_member=sum(spec.asked for spec in specs),
            members=sum(len(group.members) for group in groups),
            needed=sum(spec.asked for spec in specs),
            priority=self._priority(groups),
            fits=False,
            notes=tuple(self._notes(asked)),
        )

    def _notes(self, asked: AskedGangSet) -> Iterator[str]:
        for name in asked.foreign_names:
            yield f"pods name the scheduler {name}, which is not served here: asked as if it were {self._with.scheduler_name}"
        for group in asked.groups:
            if group.spec is not None and group.spec.ignored:
                yield f"not honoured: {', '.join(group.spec.ignored)}"

    def _priority(self, groups: Sequence[Group]) -> int:
        with self._manager.lock:
            return min(map(self._manager.line.priority_of, groups))

    def _taken(self, asked: AskedGangSet, snapshot: NodeInfoLister) -> _Taken:
        manager, requests, groups = self._manager, self._requests, asked.groups
        with manager.lock, requests.overlays.none_kept():
            question = requests.question(groups, asked.scheduler_name, snapshot)
            gap = {
                name
                for group in groups
                if (spec := group.spec) is not None
                for name in requests.resource_gap(group, spec, snapshot)
            }
            holders = {place.group for place in requests.places_of_others(groups)}
            return _Taken(
                self._reservations.permitted(groups, question),
                sorted(gap),
                tuple(sorted(filter(None, holders))),
                max(map(manager.line.order, groups)),
            )

    def _victims(self, asked: AskedGangSet, snapshot: NodeInfoLister) -> Looked | None:
        if self.search is None:
            return None
        with self._manager.lock, self._requests.overlays.none_kept():
            why_not = self.search.barred(asked.groups)
            situation = self.search.situation(asked.groups, asked.scheduler_name, snapshot)
        return self.search.looked(situation, why_not)


def _names_no_level(analysis: Analysis) -> bool:
    """Whether a level that is asked for is not configured: then it is no room that the gang lacks."""
    verdict = analysis.verdict
    return verdict is not None and verdict.cause is Cause.TOPOLOGY and not verdict.level


def _refused(
    outlook: GangOutlook, asked: AskedGangSet, taken: _Taken, analysis: Analysis, looked: Looked | None
) -> GangOutlook:
    reason = messages.resource_gap(taken.gap)
    if not taken.gap:
        reason = diagnosis_of_plan(asked.keys, outlook.min_member, analysis.verdict).message
    reserved = any(each.kind == RESERVATIONS for each in analysis.relaxations)
    found = replace(
        outlook,
        reason=reason,
        shortfall=shortfall_of(analysis.verdict)
        if analysis.verdict is not None and not _names_no_level(analysis)
        else None,
        reserved_for=taken.holders if reserved else (),
        relaxations=tuple(analysis.relaxations),
    )
    if looked is None:
        return found
    nodes = looked.plan.placement.nodes if looked.plan is not None else {}
    return replace(found, preemption=looked.view, places_then=places_by_name(asked.groups, nodes))
