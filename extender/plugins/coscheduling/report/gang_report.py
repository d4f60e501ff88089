"""Reads off the manager's state how each gang is doing: the list, and one gang whole, with what would make it fit.

Asked by the ops listener's pages. The manager's lock is held for some groups at a time; what takes longer, the planner's
answers to relaxed requests and the search for victims, runs after that, where it stalls no call.
No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as dataclass_replace
from datetime import datetime, timedelta
from functools import partial

from msgspec.structs import replace

from extender.plugins.coscheduling import messages
from extender.plugins.coscheduling.dependencies import CoschedulingDependencies
from extender.plugins.coscheduling.report.fit_analyses import FitAnalyses, missing_of
from extender.plugins.coscheduling.report.gang_diagnosis import GangDiagnosis, diagnose, not_asked, would_open
from extender.plugins.coscheduling.report.gang_observer import WAITING_PHASES, GangObserver
from extender.plugins.coscheduling.report.gang_status import (
    GangStatus,
    GangSummary,
    PreemptionView,
    Relaxation,
    ShownState,
    StoryEntry,
)
from extender.plugins.coscheduling.report.gang_story import Note
from extender.plugins.coscheduling.report.group_view import (
    count_members,
    kept_free,
    members_by_name,
    oldest_waiting,
    refuted_places,
    role_counts,
    room_kept,
    starts_with,
)
from extender.plugins.coscheduling.report.largest_gang import Largest
from extender.plugins.coscheduling.scheduling.phases import Phase, count_phases, phase_of
from extender.plugins.coscheduling.scheduling.planning_rounds import PlanningRounds
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.gang_sets import gang_set_of
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.line import Order
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, by_turns, wall_clock

AFTER_THE_RESERVATION = Relaxation(
    "BackfillReservation", "the nodes that are kept free for it, once it has started or its turn is over"
)

UNASKED = frozenset(
    (
        UnschedulableReason.NOT_TRIED,
        UnschedulableReason.ORDERED_AFTER_OTHERS,
        UnschedulableReason.FOREIGN_SCHEDULER,
    )
)

Line = dict[str, int]
"""Group -> its place among those that wait for a plan, from 1, in the order in which they are planned."""

ExplainPreemption = Callable[[str], PreemptionView | None]
"""By a group's key: the victims that it would need, and why it does not preempt them."""


def nothing_to_preempt(key: str) -> None:
    """Where there is no preemption for gangs."""


@dataclass(eq=False)
class GangReport:
    """largest: how large a gang still fits. denied_seconds: deniedPGExpirationTimeSeconds, which the texts name. wall: the time
    of day of what is shown. story: what happened to the gang of that key, the oldest first."""

    manager: PodGroupManager
    rounds: PlanningRounds
    observer: GangObserver
    dependencies: CoschedulingDependencies
    explain_preemption: ExplainPreemption
    largest: Callable[[], Largest]
    denied_seconds: float = field(kw_only=True)
    wall: Callable[[], datetime] = field(kw_only=True, default=wall_clock)
    story: Callable[[str], Sequence[Note]] = field(kw_only=True, default=lambda key: ())

    def __post_init__(self) -> None:
        self.analyses = FitAnalyses(self.manager, self.rounds, self.dependencies)

    def phases(self) -> Mapping[Phase, int]:
        """Every phase is there, with 0 where no group is in it."""
        return count_phases(self.manager)

    def quarantined(self) -> int:
        """How many gangs are set aside for a while."""
        return len(self.manager.quarantine)

    def summaries(self) -> list[GangSummary]:
        """Those that wait in their order, then the others by name."""
        manager = self.manager
        with manager.lock:
            keys = sorted(manager.groups)
        line = self._line(keys)
        found = []
        for some in by_turns(keys):
            with manager.lock:
                for key in some:
                    if (group := manager.groups.get(key)) is not None:
                        found.append(self.line_of(group, line))
        return sorted(found, key=lambda gang: (gang.place or len(keys) + 1, gang.key))

    def status(self, key: str) -> GangStatus | None:
        """None for a group that is not there."""
        with self.manager.lock:
            group, keys = self.manager.groups.get(key), list(self.manager.groups)
        if group is None:
            return None
        line = self._line(keys)
        status = self.manager.quarantine.for_gang(key, "page", partial(self._status_of, group, line), None)
        if status is not None:
            return status
        with self.manager.lock:
            summary = self._set_aside(group)
        return GangStatus(
            gang=summary, priority=0, in_line=len(line), told=summary.message, standby=not self.dependencies.may_plan()
        )

    def places(self, key: str) -> Mapping[str, str]:
        """`namespace/name` -> node, of the members that a plan keeps places for: of the group, and of those that start with it."""
        with self.manager.lock:
            group = self.manager.groups.get(key)
            gang_set = gang_set_of(self.manager, group) if group is not None and group.planned else ()
            slots = [slot for each in gang_set for slot in self.manager.slots.of_group(each.key)]
            return {slot.pod.key: slot.node_name for slot in slots}

    def _status_of(self, group: Group, line: Line) -> GangStatus:
        """What takes long comes after the lock is let go."""
        manager, key = self.manager, group.key
        with manager.lock:
            why = self._why(group, line)
            status = self._status(group, why, line)
            reservation = self.rounds.reservations.current
            kept = self.rounds.reservations.kept_from_gang_set(gang_set_of(manager, group))
            asks = why.reason == UnschedulableReason.MIN_RESOURCES or why.verdict is not None
        if reservation is not None and why.reason == UnschedulableReason.ORDERED_AFTER_OTHERS and kept:
            status = replace(status, reserved_for=(reservation.group,), relaxations=(AFTER_THE_RESERVATION,))
        completed = self.analyses.complete(status, group) if asks and key in line else None
        status = completed or status
        if status.standby or status.fits_now or (completed is None and why.reason != UnschedulableReason.PREEMPTING):
            return status
        return replace(status, preemption=self.explain_preemption(key))

    def ahead_of(self, order: Order) -> int:
        """How many gangs that wait are planned before one of this order."""
        with self.manager.lock:
            keys = list(self.manager.groups)
        return sum(each < order for each in self._orders(keys))

    def _line(self, keys: Iterable[str]) -> Line:
        return {order[-1]: place for place, order in enumerate(sorted(self._orders(keys)), 1)}

    def _orders(self, keys: Iterable[str]) -> list[Order]:
        """Of those that wait. Takes the lock, some groups at a time."""
        manager = self.manager
        waiting = []
        for some in by_turns(keys):
            with manager.lock:
                for key in some:
                    group = manager.groups.get(key)
                    if group is not None:
                        order = manager.quarantine.for_gang(key, "page", partial(self.order_of_waiting, group), None)
                        waiting += [order] if order is not None else []
        return waiting

    # Under the manager's lock

    def order_of_waiting(self, group: Group) -> Order | None:
        waits = group.members and phase_of(self.manager, group) in WAITING_PHASES
        return self.manager.line.order(group) if waits else None

    def line_of(self, group: Group, line: Line) -> GangSummary:
        """One of the list. Lock held."""
        shown = self.manager.quarantine.for_gang(group.key, "page", partial(self._summary_and_why, group, line), None)
        return shown or self._set_aside(group)

    def _summary_and_why(self, group: Group, line: Line) -> GangSummary:
        return self._summary(group, self._why(group, line), line)

    def _set_aside(self, group: Group) -> GangSummary:
        """Only what cannot raise."""
        since = self.manager.quarantine.since(group.key)
        namespace, _, name = group.key.partition("/")
        bound = len(group.assigned)
        return GangSummary(
            namespace=namespace,
            name=name,
            phase=Phase.QUARANTINED.value,
            since=self._at(self.manager.clock() if since is None else since),
            reason=UnschedulableReason.INTERNAL_ERROR.value,
            message=messages.INTERNAL_ERROR,
            min_member=group.pod_group.spec.min_member if group.pod_group is not None else 0,
            members={
                **{state.value: 0 for state in ShownState},
                ShownState.BOUND.value: bound,
                ShownState.WAITING.value: max(0, len(group.members) - bound),
            },
        )

    def _why(self, group: Group, line: Line) -> GangDiagnosis:
        place = line.get(group.key, 0)
        why = diagnose(self.manager, self.observer, group, place, self.denied_seconds)
        text = self._why_not_asked(group, why)
        if foreign := self.dependencies.foreign(group.key):
            message = "; ".join(filter(None, (foreign, text or why.message)))
            return dataclass_replace(why, reason=UnschedulableReason.FOREIGN_SCHEDULER, message=message)
        if text and not all(map(self.dependencies.ours, (each.pod for each in group.members.values()))):
            return GangDiagnosis(UnschedulableReason.FOREIGN_SCHEDULER, text, since=why.since)
        return why

    def _why_not_asked(self, group: Group, why: GangDiagnosis) -> str:
        """Why kube-scheduler asks about no member of it, where that is known: none is left to come to it."""
        if why.reason not in UNASKED:
            return ""
        spec = self.manager.specs.of(group)
        to_come = [info.pod for info in group.pending()]
        if spec is None or any(self.dependencies.ours(pod) for pod in to_come):
            return ""
        pods = (each.pod for each in group.members.values())
        elsewhere = {pod.spec.scheduler_name for pod in pods if not self.dependencies.ours(pod)}
        return not_asked(len(group.assigned), spec.min_member, elsewhere)

    def _summary(self, group: Group, why: GangDiagnosis, line: Line) -> GangSummary:
        seen = self.observer.see(group)
        spec = self.manager.specs.of(group)
        namespace, _, name = group.key.partition("/")
        waiting = seen.phase in WAITING_PHASES and group.members
        return GangSummary(
            namespace=namespace,
            name=name,
            phase=seen.phase.value,
            since=self._at(seen.since if why.since is None else min(why.since, seen.since)),
            reason=str(why.reason),
            message=why.message,
            min_member=spec.asked if spec is not None else 0,
            members=count_members(self.manager, group),
            waiting_since=oldest_waiting(group) if waiting else None,
            place=line.get(group.key, 0),
            missing=missing_of(why.verdict),
        )

    def _status(self, group: Group, why: GangDiagnosis, line: Line) -> GangStatus:
        """What needs no plan to be said."""
        manager = self.manager
        spec = manager.specs.of(group)
        return GangStatus(
            gang=self._summary(group, why, line),
            priority=manager.line.priority_of(group),
            in_line=len(line),
            told=why.told,
            member_list=members_by_name(manager, group),
            refuted=refuted_places(manager, group),
            relaxations=would_open(manager, group, why.reason),
            standby=not self.dependencies.may_plan(),
            kept_free=kept_free(group, self.rounds.reservations.current, self._at),
            starts_with=starts_with(manager, group),
            roles=role_counts(manager, group),
            match_policy=str(spec.match_policy) if spec is not None else "",
            not_asked=self._why_not_asked(group, why),
            not_honoured=spec.ignored if spec is not None else (),
            room_kept=room_kept(manager, group, self._at),
            gave_up=messages.GAVE_UP if group.key in line and manager.line.has_given_up(group) else "",
            story=tuple(
                StoryEntry(self._at(note.at), note.phase, note.reason, note.message) for note in self.story(group.key)
            ),
        )

    def _at(self, then: float) -> datetime:
        """A time of the clock that has passed, or is to come."""
        return (self.wall() + timedelta(seconds=then - self.manager.clock())).replace(microsecond=0)
