"""Reads off the manager's state how each gang is doing: the list, and one gang whole, with what would make it fit.

Asked by the ops listener's pages. State is copied under the manager's lock, some groups at a time; what takes longer (the
planner's answers to relaxed requests) runs after that, where it stalls nobody, for one caller at a time.
No counterpart upstream.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cachetools import TTLCache
from msgspec.structs import replace

from extender.api import corev1
from extender.framework.resource import PODS
from extender.plugins.coscheduling import messages, planner
from extender.plugins.coscheduling.admission import Admission
from extender.plugins.coscheduling.collaborators import Collaborators
from extender.plugins.coscheduling.extra_members import extra_members_wait
from extender.plugins.coscheduling.gang_groups import GROUPS_ANNOTATION
from extender.plugins.coscheduling.gang_observer import UNTOLD, WAITING_PHASES, Seen
from extender.plugins.coscheduling.gang_status import (
    Domain,
    GangStatus,
    GangSummary,
    KeptFree,
    Member,
    MemberState,
    PreemptionView,
    Relaxation,
    RoleCount,
    Shortfall,
    amount_text,
)
from extender.plugins.coscheduling.group import Group
from extender.plugins.coscheduling.phases import phase_of
from extender.plugins.coscheduling.pod_group import GroupSpec, foreign_gates
from extender.plugins.coscheduling.pod_group_manager import PodGroupManager
from extender.plugins.coscheduling.quorum import needs
from extender.plugins.coscheduling.relaxation import Analysis, Question, analyse
from extender.plugins.coscheduling.stops import Reason, Stop
from extender.plugins.coscheduling.units import missing_group, unit_of

AT_ONCE = 50  # groups under one hold of the lock
FRESH_SECONDS = 2.0  # how long an analysis is shown again
KEPT = 100
AFTER_THE_SHADOW = Relaxation("Shadow", "the nodes that are kept free for it, once it has started or its turn is over")


def wall_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _Why:
    """What stops it, in words for the group; told: in words for a pod; since: seconds of the clock."""

    reason: str = ""
    message: str = ""
    told: str = ""
    since: float | None = None
    verdict: planner.Verdict | None = None


ExplainPreemption = Callable[[str], PreemptionView | None]
"""Whose room the group of that key would need."""


def nothing_to_preempt(key: str) -> None:
    """Where there is no preemption for gangs."""


class GangReport:
    """judge: not Admission's own, so that an explanation and a plan do not wait for each other."""

    def __init__(
        self,
        manager: PodGroupManager,
        admission: Admission,
        collaborators: Collaborators,
        judge: planner.Judge,
        explain_preemption: ExplainPreemption,
        *,
        denied_seconds: float,
        wall: Callable[[], datetime] = wall_clock,
    ) -> None:
        self._manager = manager
        self._admission = admission
        self._with = collaborators
        self._judge = judge
        self._denied_seconds = denied_seconds
        self._wall = wall
        self._explain_preemption = explain_preemption
        self._analysing = (
            threading.Lock()
        )  # one analysis at a time; guards _analyses; taken before the manager's, if both
        self._analyses: TTLCache[tuple[str, int], Analysis] = TTLCache(KEPT, FRESH_SECONDS, timer=manager.clock)

    def summaries(self) -> list[GangSummary]:
        """Those that wait in their order, then the others by name."""
        manager = self._manager
        with manager.lock:
            keys = sorted(manager.groups)
        line = self._line(keys)
        places = {key: place for place, key in enumerate(line, 1)}
        found = []
        for some in _parts(keys):
            with manager.lock:
                groups = [group for key in some if (group := manager.groups.get(key)) is not None]
                found += [self._summary(group, self._why(group, places), places) for group in groups]
        return sorted(found, key=lambda gang: (gang.place or len(keys) + 1, gang.key))

    def status(self, key: str) -> GangStatus | None:
        """None for a group that is not there."""
        manager = self._manager
        with manager.lock:
            keys = list(manager.groups)
        line = self._line(keys)
        places = {key: place for place, key in enumerate(line, 1)}
        with manager.lock:
            group = manager.groups.get(key)
            if group is None:
                return None
            why = self._why(group, places)
            status = GangStatus(
                gang=self._summary(group, why, places),
                priority=group.priority,
                in_line=len(line),
                told=why.told,
                member_list=tuple(sorted(self._members(group), key=lambda member: member.name)),
                refuted=self._refuted(group),
                relaxations=self._at_the_gate(group, why.reason),
                standby=not self._with.may_plan(),
                kept_free=self._kept_free(group),
                **self._asked_beyond(group),
            )
            shadow = self._admission.shadows.current
            kept = self._admission.shadows.kept_from_unit(unit_of(manager, group))
            asks = why.reason == Reason.MIN_RESOURCES or why.verdict is not None
            question = self._question(group) if asks and key in places else None
        if shadow is not None and why.reason == Reason.ORDERED_AFTER_OTHERS and kept:
            status = replace(status, reserved_for=(shadow.group,), relaxations=(AFTER_THE_SHADOW,))
        if question is not None:
            status = self._with_analysis(key, status, question, kept)
        if status.standby or status.fits_now or (question is None and why.reason != Reason.PREEMPTING):
            return status
        return replace(status, preemption=self._explain_preemption(key))

    # Under the manager's lock

    def _line(self, keys: Iterable[str]) -> Sequence[str]:
        """The groups that wait for a plan, in the order in which they are planned. Takes the lock, some groups at a time."""
        manager = self._manager
        waiting = []
        for some in _parts(keys):
            with manager.lock:
                for key in some:
                    group = manager.groups.get(key)
                    if group is not None and group.members and phase_of(manager, group) in WAITING_PHASES:
                        waiting.append(manager.order(group))
        return [place[-1] for place in sorted(waiting)]

    def _why(self, group: Group, places: dict[str, int]) -> _Why:
        seen = self._admission.observer.see(group)
        if group.preempting is not None and group.stopped is not None:
            return self._of_stop(group, group.stopped)
        if (extra := extra_members_wait(self._manager, group)) is not None:
            return _Why(extra.reason, extra.cause, since=seen.gate_since)
        if seen.phase not in WAITING_PHASES:
            return _Why(since=seen.since)
        gate = self._admission.observer.gate(group)
        if gate is not None and not (gate.reason in UNTOLD and group.stopped is not None):
            return _Why(gate.reason, gate.cause, gate.refusal, seen.gate_since)
        if group.stopped is not None:
            return self._of_stop(group, group.stopped)
        behind = places.get(group.key, 0) > 1 and group.key in self._manager.queue.active
        reason = Reason.ORDERED_AFTER_OTHERS if behind else Reason.NOT_TRIED
        return _Why(reason, since=seen.since) if group.members else _Why(since=seen.since)

    def _of_stop(self, group: Group, stop: Stop) -> _Why:
        told = messages.denied(group.key, self._denied_seconds, stop.message)
        if group.key not in self._manager.denied and stop.verdict is None:
            told = stop.message
        return _Why(stop.reason, stop.text, told, stop.since, stop.verdict)

    def _summary(self, group: Group, why: _Why, places: dict[str, int]) -> GangSummary:
        seen: Seen = self._admission.observer.see(group)
        spec = self._manager.spec(group)
        states = Counter(self._state(group, uid) for uid in group.members)
        namespace, _, name = group.key.partition("/")
        waiting = seen.phase in WAITING_PHASES and group.members
        return GangSummary(
            namespace=namespace,
            name=name,
            phase=seen.phase.value,
            since=self._at(seen.since if why.since is None else min(why.since, seen.since)),
            reason=str(why.reason),
            message=why.message,
            min_member=spec.min_member if spec is not None else 0,
            members={state.value: states[state] for state in MemberState},
            waiting_since=_oldest(info.pod for info in group.pending()) if waiting else None,
            place=places.get(group.key, 0),
        )

    def _at(self, then: float) -> datetime:
        """A time of the clock that has passed, or is to come."""
        return (self._wall() + timedelta(seconds=then - self._manager.clock())).replace(microsecond=0)

    def _kept_free(self, group: Group) -> KeptFree | None:
        shadow = self._admission.shadows.current
        if shadow is None or group.key not in shadow.keys:
            return None
        return KeptFree(shadow.domain, tuple(sorted(shadow.nodes)), self._at(shadow.since), self._at(shadow.until))

    def _state(self, group: Group, uid: str) -> MemberState:
        info = group.members[uid]
        if info.pod.node_name or uid in group.committed:
            return MemberState.BOUND
        if uid in group.held:
            return MemberState.HELD
        if self._manager.ledger.get(uid) is not None:
            return MemberState.PLANNED
        return MemberState.GATED if info.pod.gated else MemberState.WAITING

    def _members(self, group: Group) -> Iterable[Member]:
        for uid, info in group.members.items():
            place = self._manager.ledger.get(uid)
            node = info.pod.node_name or group.committed.get(uid) or group.held.get(uid)
            yield Member(
                name=info.pod.name,
                state=self._state(group, uid),
                node=node or (place.node_name if place is not None else ""),
                gates=tuple(gate.name for gate in info.pod.spec.scheduling_gates),
            )

    def _at_the_gate(self, group: Group, reason: str) -> tuple[Relaxation, ...]:
        """What would open a gate that is shut; no plan is needed to say it."""
        spec = self._manager.spec(group)
        if spec is None or spec.invalid:
            return ()
        there = len(group.members)
        if reason == Reason.QUORUM_MISSING and not spec.roles.minima and there < spec.min_member:
            return (
                Relaxation("MorePods", f"{_pods(spec.min_member - there)} more of the group"),
                *((Relaxation("MinMember", f"minMember {there} instead of {spec.min_member}"),) if there else ()),
            )
        if reason == Reason.QUORUM_MISSING:
            return tuple(self._role_at_the_gate(group, spec))
        if reason == Reason.GATED:
            gated = [info.pod for info in group.pending() if foreign_gates(info.pod, (self._manager.gate,))]
            gates = sorted({gate.name for pod in gated for gate in pod.spec.scheduling_gates} - {self._manager.gate})
            short = spec.min_member - (there - len(gated))
            return (Relaxation("Gates", f"{_pods(short)} freed of the gates of others: {', '.join(gates)}"),)
        if reason == Reason.COMPANION_NOT_READY:
            others = ", ".join(self._asked_beyond(group)["starts_with"])
            return (Relaxation("Companions", f"what {others} waits for, or without naming it in {GROUPS_ANNOTATION}"),)
        return ()

    def _role_at_the_gate(self, group: Group, spec: GroupSpec) -> Iterable[Relaxation]:
        for role, short in needs(group, spec, group.members.keys()).roles:
            yield Relaxation("MorePods", f"{_pods(short)} more of role {role}")

    def _asked_beyond(self, group: Group) -> dict[str, Any]:
        """What it asks for beyond minMember."""
        spec = self._manager.spec(group)
        if spec is None:
            return {}
        there = Counter(spec.roles.role_of(info.pod) for info in group.members.values())
        missing = missing_group(self._manager, group)
        others = {each.key for each in unit_of(self._manager, group)[1:]} | ({missing} if missing else set())
        return {
            "starts_with": tuple(sorted(others)),
            "roles": tuple(RoleCount(role, minimum, there[role]) for role, minimum in spec.roles.minima),
            "match_policy": str(spec.match_policy),
        }

    def _refuted(self, group: Group) -> tuple[tuple[str, str], ...]:
        now = self._manager.clock()
        return tuple(
            sorted(
                (group.members[uid].pod.name, node) for uid, node in group.refuted.left_out(now) if uid in group.members
            )
        )

    def _question(self, group: Group) -> Question | None:
        manager = self._manager
        spec = manager.spec(group)
        pods = [info.pod for info in group.pending() if self._with.ours(info.pod)]
        if spec is None or spec.invalid or not pods:
            return None
        scheduler_name = min(pods, key=lambda pod: pod.name).spec.scheduler_name
        unit = unit_of(manager, group)
        request = self._admission.requests.request(unit, scheduler_name)
        return Question(request, spec.min_member, frozenset(uid for each in unit for uid in each.members))

    # Beyond it

    def _with_analysis(self, key: str, status: GangStatus, question: Question, kept: frozenset[str]) -> GangStatus:
        """kept: nodes that are another's shadow, where it may not go now."""
        with self._analysing:
            entry = (key, self._manager.epoch)
            analysis = self._analyses.get(entry)
            if analysis is None:
                snapshot = self._with.newest_snapshot()
                if kept:
                    request = self._admission.shadows.without(question.request, kept, snapshot)
                    question = dataclasses.replace(question, request=request)
                found = self._with.offload(analyse, snapshot.list(), question, self._judge, time.monotonic)
                if not isinstance(found, Analysis):
                    raise TypeError(f"no analysis: {found!r}")
                analysis = self._analyses[entry] = found
        if status.gang.reason == Reason.MIN_RESOURCES:
            return replace(status, relaxations=_without_min_resources(question, analysis))
        if analysis.verdict is None:
            return replace(status, fits_now=True)
        return replace(
            status,
            shortfall=_shortfall(analysis.verdict),
            reserved_for=self._holders(question) if status.gang.reason == Reason.RESERVED_FOR_OTHERS else (),
            relaxations=tuple(analysis.relaxations),
        )

    def _holders(self, question: Question) -> tuple[str, ...]:
        """The groups whose places count against this one."""
        with self._manager.lock:
            promised = (pod.pod.uid for _, pod in question.request.promised if pod.pod.uid not in question.own)
            places = [self._manager.ledger.get(uid) for uid in promised]
        return tuple(sorted({place.group for place in places if place is not None}))


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"


def _without_min_resources(question: Question, analysis: Analysis) -> tuple[Relaxation, ...]:
    """Whether the members themselves would fit, if minResources did not ask for more."""
    if analysis.verdict is None:
        return (Relaxation("MinResources", "without minResources, or with less: the members themselves fit"),)
    first = Relaxation(
        "MinResources", "less minResources alone does not help: the members themselves do not fit either"
    )
    return (first, *analysis.relaxations)


def _shortfall(verdict: planner.Verdict) -> Shortfall:
    amount = verdict.missing
    return Shortfall(
        placed=verdict.placed,
        needed=verdict.needed,
        resource=verdict.resource,
        missing=amount_text(verdict.resource, amount)
        if verdict.resource and verdict.resource != PODS
        else str(amount or ""),
        level=verdict.level,
        domains=tuple(Domain(fit.name, fit.holds) for fit in verdict.domains),
    )


def _oldest(pods: Iterable[corev1.Pod]) -> datetime | None:
    stamps = [stamp for pod in pods if (stamp := pod.metadata.creation_timestamp) is not None]
    return min(stamps, default=None)


def _parts(keys: Iterable[str]) -> Iterable[list[str]]:
    """Between two parts others have their turn."""
    every = list(keys)
    for start in range(0, len(every), AT_ONCE):
        if start:
            time.sleep(0)
        yield every[start : start + AT_ONCE]
