"""The planner's door: sorts the members, chooses one of the two ways to place a gang, and words the verdict where neither does.

Members that do not look at each other are placed by counting (`alike`), others by the in-tree filters (`constrained`).
No counterpart upstream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from extender.framework.listers import NodeInfoLister
from extender.framework.resource import PODS
from extender.plugins.coscheduling.planner import alike, constrained
from extender.plugins.coscheduling.planner.alike import AlikePacker, Takes, count_of
from extender.plugins.coscheduling.planner.domains import Scope, UnknownLevelError
from extender.plugins.coscheduling.planner.hypothetical import Cluster, with_pods
from extender.plugins.coscheduling.planner.members import (
    MemberClass,
    classes,
    looks_at_others,
    plan_minima,
    relevant_labels,
)
from extender.plugins.coscheduling.planner.request import (
    Cause,
    Deadline,
    DomainFit,
    Judge,
    OutOfTimeError,
    Placement,
    Request,
    Verdict,
)
from extender.plugins.coscheduling.planner.room import IntColumn, Refusals, Room
from extender.plugins.coscheduling.planner.search import Search
from extender.plugins.coscheduling.planner.trees import plan_tree
from extender.plugins.coscheduling.planner.waves import waves

SHOWN_DOMAINS = 10
CLUSTER = "cluster"


@dataclass(frozen=True)
class Problem:
    """snapshot: with what is promised to others in place. classes: the largest first."""

    snapshot: NodeInfoLister
    classes: Sequence[MemberClass]
    request: Request
    scope: Scope
    room: Room
    judge: Judge
    deadline: Deadline

    @property
    def members(self) -> int:
        return sum(len(members) for members in self.classes)


class Gang(ABC):
    """One gang of one kind on one state of the cluster."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.refusals = Refusals()
        self.placed = 0  # at best, so far

    @abstractmethod
    def place(self) -> Placement | None: ...

    @abstractmethod
    def explain(self) -> tuple[str, int]:
        """Notes in `refusals` why the best attempt went no further. (resource that ran out, amount that is missing)."""

    @abstractmethod
    def fits(self, scope: Scope) -> bool:
        """Whether minMember would fit in another scope."""

    @abstractmethod
    def domains(self) -> Sequence[DomainFit]:
        """Of the required level, the best first."""

    def verdict(self) -> Verdict:
        scope, needed = self.problem.scope, self.problem.request.needed
        resource, missing = self.explain()
        reason, cause = self.refusals.reason, self.refusals.cause
        level, fits_at = "", ""
        if scope.required is not None:
            level = scope.domains.levels[scope.required].name
            reason = f"no single {level} takes it: {reason}"
            fits_at = self._fits_at()
            cause = Cause.TOPOLOGY if fits_at else cause
        return Verdict(
            reason, self.placed, needed, cause, resource, missing, level, tuple(self.domains()[:SHOWN_DOMAINS]), fits_at
        )

    def _fits_at(self) -> str:
        """The narrowest wider level that would do."""
        scope = self.problem.scope
        try:
            for level in range((scope.required or 0) - 1, -1, -1):
                if self.fits(scope.requiring(level)):
                    return scope.domains.levels[level].name
            return CLUSTER if self.fits(scope.requiring(None)) else ""
        except OutOfTimeError:
            return ""

    def _missing(self, members: MemberClass) -> tuple[str, int]:
        """(resource that runs out first, how much of it the members without a place ask for)."""
        resource = self.refusals.resource
        short = max(0, self.problem.request.needed - self.placed)
        if not resource:
            return "", 0
        return resource, short * (1 if resource == PODS else members.asked.get(resource, 0))


class AlikeGang(Gang):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._classes = alike.judged(
            problem.snapshot,
            problem.classes,
            problem.room,
            problem.scope,
            problem.judge,
            self.refusals,
            problem.deadline,
        )
        self._best: Takes = []
        self._best_at: IntColumn = problem.scope.everywhere[:0]
        self._holds: list[DomainFit] = []

    def place(self) -> Placement | None:
        takes = self._packer(self.problem.scope).all()
        if takes is None:
            takes = self._most()
        if count_of(takes) < self.problem.request.needed:
            return None
        names = self.problem.scope.node_names
        nodes = alike.places(takes, self._classes, names)
        domain = self.problem.scope.domains.narrowest_with([node for _, node, _ in takes])
        return Placement(nodes, (frozenset(nodes),) if nodes else (), domain)

    def _packer(self, scope: Scope) -> AlikePacker:
        return AlikePacker(self._classes, self.problem.room, scope, self.problem.deadline)

    def _most(self) -> Takes:
        scope = self.problem.scope
        for at, takes in self._packer(scope).most_in_each():
            count = count_of(takes)
            if not self._holds or count > self.placed:
                self._best, self._best_at, self.placed = takes, at, count
            name = scope.domains.name_of(scope.required, at) if scope.required is not None else CLUSTER
            self._holds.append(DomainFit(name, count))
        return self._best

    def fits(self, scope: Scope) -> bool:
        needed = self.problem.request.needed
        return any(count_of(takes) >= needed for _, takes in self._packer(scope).most_in_each())

    def domains(self) -> Sequence[DomainFit]:
        if self.problem.scope.required is None:
            return ()
        return sorted(self._holds, key=lambda fit: (-fit.holds, fit.name))

    def explain(self) -> tuple[str, int]:
        room = self.problem.room.copy()
        placed = [0] * len(self._classes)
        for number, node, taken in self._best:
            room.take(node, self._classes[number].members.asked, taken)
            placed[number] += taken
        for one, count in zip(self._classes, placed, strict=True):
            if count < len(one.members):
                inside = np.zeros(len(self.problem.scope.everywhere), dtype=np.bool_)
                inside[self._best_at] = True
                self.refusals.short(room.short_of(one.members.asked, one.but_for_room & inside))
                return self._missing(one.members)
        return "", 0


class ConstrainedGang(Gang):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self._shapes = constrained.judged(
            problem.snapshot, problem.classes, problem.scope, problem.judge, self.refusals, problem.deadline
        )
        self._search = self._searching(problem.scope)

    def _searching(self, scope: Scope) -> Search:
        return Search(self.problem.snapshot, self._shapes, self.problem.room, scope, self.problem.deadline)

    def place(self) -> Placement | None:
        try:
            attempt = self._search.run(self.problem.request.needed)
        finally:
            self.placed = len(self._search.best.sequence) if self._search.best is not None else 0
        if attempt is None:
            return None
        names = self.problem.scope.node_names
        return Placement(
            {member.pod.metadata.uid: names[at] for _, member, at in attempt.sequence},
            waves(self.problem.snapshot.list(), self._shapes, attempt.sequence, self.problem.deadline),
            self.problem.scope.domains.narrowest_with([at for _, _, at in attempt.sequence]),
        )

    def fits(self, scope: Scope) -> bool:
        return self._searching(scope).run(self.problem.request.needed) is not None

    def domains(self) -> Sequence[DomainFit]:
        """What room and filters would take at most, if the members did not mind each other."""
        scope = self.problem.scope
        if scope.required is None:
            return ()
        fits = [
            DomainFit(scope.domains.name_of(scope.required, at), self._search.could_place(at)) for at in scope.widest()
        ]
        return sorted(fits, key=lambda fit: (-fit.holds, fit.name))

    def explain(self) -> tuple[str, int]:
        best = self._search.best
        if best is None:  # no region has room enough for it to be tried
            for shape in self._shapes:
                short = self.problem.room.short_of(shape.asked, shape.but_for_room)
                self.refusals.short(short)
            return self._missing(self._shapes[0].members)
        best.explain(self.refusals)
        return self._missing(self._shapes[best.unplaced[0]].members) if best.unplaced else ("", 0)


OUT_OF_TIME = "planning took longer than its time budget"


def plan(cluster: Cluster, request: Request, judge: Judge) -> Placement | Verdict:
    """Places for `needed` members and as many more as fit, or why there are none.

    cluster: a snapshot; one with columns is faster."""
    if request.tree is not None:
        return _of_tree(cluster, request, judge)
    if request.minima:
        return plan_minima(request, lambda part: plan(cluster, part, judge))
    if len(request.members) < request.needed:
        return Verdict("not enough members", len(request.members), request.needed, Cause.MEMBERS)
    if not request.members:
        return Placement({})
    deadline = Deadline.of(request)
    gang: Gang | None = None
    try:
        gang = _gang(with_pods(cluster, request.promised), request, judge, deadline)
        return gang.place() or gang.verdict()
    except UnknownLevelError as error:
        return Verdict(str(error), 0, request.needed, Cause.TOPOLOGY)
    except OutOfTimeError:
        placed = gang.placed if gang is not None else 0
        return Verdict(OUT_OF_TIME, placed, request.needed, Cause.BUDGET)


def _of_tree(cluster: Cluster, request: Request, judge: Judge) -> Placement | Verdict:
    try:
        return plan_tree(with_pods(cluster, ()), request, lambda part: plan(cluster, part, judge))
    except UnknownLevelError as error:
        return Verdict(str(error), 0, request.needed, Cause.TOPOLOGY)
    except OutOfTimeError:
        composite = request.tree.name if request.tree is not None else ""
        return Verdict(OUT_OF_TIME, 0, request.needed, Cause.BUDGET, composite=composite)


def _gang(snapshot: NodeInfoLister, request: Request, judge: Judge, deadline: Deadline) -> Gang:
    sorted_out = classes(request, relevant_labels(request.members, snapshot), judge)
    room = Room.of(snapshot, {name for members in sorted_out for name in members.asked})
    problem = Problem(snapshot, sorted_out, request, Scope(snapshot, request), room, judge, deadline)
    constrained = any(looks_at_others(members.first) for members in sorted_out)
    return ConstrainedGang(problem) if constrained else AlikeGang(problem)
