"""One gang on one state of the cluster: what both ways to place it share, and the verdict where it does not fit.

`planning` chooses the way: `alike` counts, `search` asks the in-tree filters member by member. No counterpart upstream.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Self

from extender.framework.listers import NodeInfoLister
from extender.framework.resource import PODS
from extender.plugins.coscheduling.planner.domains import Scope
from extender.plugins.coscheduling.planner.members import MemberClass, Shape, judged
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
from extender.plugins.coscheduling.planner.room import Refusals, Room

SHOWN_DOMAINS = 10
CLUSTER = "cluster"


@dataclass(eq=False)
class Gang(ABC):
    """snapshot: with what is promised to others in place. classes: the largest first. placed: at best, so far."""

    snapshot: NodeInfoLister
    classes: Sequence[MemberClass]
    request: Request
    judge: Judge
    deadline: Deadline
    refusals: Refusals = field(default_factory=Refusals)
    placed: int = 0

    def __post_init__(self) -> None:
        self.needed = self.request.needed
        self.scope = Scope(self.snapshot, self.request)
        self.room = Room.of(self.snapshot, {name for members in self.classes for name in members.asked})

    @abstractmethod
    def place(self) -> Placement | None: ...

    @abstractmethod
    def fits(self) -> bool:
        """Whether minMember would fit in the scope."""

    @abstractmethod
    def explain(self) -> tuple[str, int]:
        """Notes in `refusals` why the best attempt went no further. (resource that ran out, amount that is missing)."""

    @abstractmethod
    def domains(self) -> Sequence[DomainFit]:
        """Of the required level."""

    def judged(self, members: MemberClass) -> Shape:
        """The class wherever it may go; what refuses it is counted."""
        shape, statuses = judged(members, self.snapshot, self.judge)
        self.deadline.check()
        self.refusals.count(status for status in statuses if not status.success)
        return shape

    def verdict(self) -> Verdict:
        resource, missing = self.explain()
        reason, cause = self.refusals.reason, self.refusals.cause
        required, levels = self.scope.required, self.scope.domains.levels
        if required is None:
            return Verdict(reason, self.placed, self.needed, cause, resource, missing)
        level, fits_at = levels[required].name, self._fits_at(required)
        cause = Cause.TOPOLOGY if fits_at else cause
        best = tuple(sorted(self.domains(), key=lambda fit: (-fit.holds, fit.name))[:SHOWN_DOMAINS])
        reason = f"no single {level} takes it: {reason}"
        return Verdict(reason, self.placed, self.needed, cause, resource, missing, level, best, fits_at)

    def _fits_at(self, required: int) -> str:
        """The narrowest wider level that would do."""
        try:
            for level in range(required - 1, -1, -1):
                if self._requiring(level).fits():
                    return self.scope.domains.levels[level].name
            return CLUSTER if self._requiring(None).fits() else ""
        except OutOfTimeError:
            return ""

    def _requiring(self, level: int | None) -> Self:
        other = copy(self)
        other.scope = self.scope.requiring(level)
        return other

    def missing(self, members: MemberClass) -> tuple[str, int]:
        """(resource that runs out first, how much of it the members without a place ask for)."""
        resource = self.refusals.resource
        short = max(0, self.needed - self.placed)
        if not resource:
            return "", 0
        return resource, short * (1 if resource == PODS else members.asked.get(resource, 0))
