"""One gang on one state of the cluster: what both ways to place it share, and the verdict where it does not fit.

`planning` chooses the way: `alike` counts, `search` asks the in-tree filters member by member. No counterpart upstream.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from extender.framework.listers import NodeInfoLister
from extender.framework.resource import PODS
from extender.plugins.coscheduling.planner.domains import Scope
from extender.plugins.coscheduling.planner.members import MemberClass, Shape, judged
from extender.plugins.coscheduling.planner.request import (
    Cause,
    Deadline,
    DomainFit,
    Judge,
    NoPlacement,
    OutOfTimeError,
    Placement,
    Request,
)
from extender.plugins.coscheduling.planner.room import BoolColumn, IntColumn, Refusals, Room
from extender.plugins.coscheduling.planner.slicing.layout import Layout
from extender.plugins.coscheduling.planner.slicing.parts import Part, choices_of

SHOWN_DOMAINS = 10
CLUSTER = "cluster"


@dataclass(eq=False)
class Gang(ABC):
    """snapshot: with what is promised to others in place. classes: the largest first. placed: at best, so far.

    Each way is the ground that slices are laid out on (slicing.layout); a kind there is the number of a shape.
    """

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

    def slice_up(self, shapes: Sequence[Shape]) -> None:
        """Before anything is placed."""
        self.kinds = {info.pod.metadata.uid: n for n, shape in enumerate(shapes) for info in shape.members.members}
        self.without_place: Part | None = None  # the first slice that found no domain
        ids, reach = self.scope.domains.ids, dict[int, tuple[int, ...]]()
        if any(sliced.sizes for sliced in self.request.sliced) and ids:
            for number, shape in enumerate(shapes):
                reach[number] = tuple(np.unique(ids[-1][shape.but_for_room]).tolist())
        self.choices = choices_of(self.request, self.scope, lambda uid: reach.get(self.kinds[uid], ()))
        self.choose(self.choices[0])

    def choose(self, parts: Sequence[Part]) -> None:
        """Which members are which slices. The layout does not keep the gang alive: all that a plan has made goes with it, and is not
        left to the collector of cycles."""
        ground: Any = weakref.proxy(self)
        self.layout: Layout[Any] = Layout(self.scope.domains, ground, parts, self.kinds, self.deadline)

    @abstractmethod
    def nothing(self) -> Any:
        """The state of the ground before anything is placed."""

    @abstractmethod
    def capacity(self, state: Any, kind: int) -> IntColumn: ...

    @abstractmethod
    def put(self, state: Any, part: Part, at: BoolColumn, *, whole: bool) -> Any: ...

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
        shape, said = judged(members, self.snapshot, self.judge)
        self.deadline.check()
        self.refusals.count(said)
        return shape

    def verdict(self) -> NoPlacement:
        resource, missing = self.explain()
        reason, cause = self.refusals.reason, self.refusals.cause
        required, levels = self.scope.required, self.scope.domains.levels
        if self.without_place is not None:
            return self._of_slices(self.without_place, reason, cause, (resource, missing))
        if required is None:
            return NoPlacement(reason, self.placed, self.needed, cause, resource, missing)
        level, fits_at = levels[required].name, self._fits_at(required)
        cause = Cause.TOPOLOGY if fits_at else cause
        best = tuple(sorted(self.domains(), key=lambda fit: (-fit.holds, fit.name))[:SHOWN_DOMAINS])
        reason = f"no single {level} takes it: {reason}"
        return NoPlacement(reason, self.placed, self.needed, cause, resource, missing, level, best, fits_at)

    def _of_slices(self, part: Part, reason: str, cause: Cause, short: tuple[str, int]) -> NoPlacement:
        """Where one slice finds no domain."""
        domains, parts = self.scope.domains, self.layout.parts
        level = domains.levels[part.level].name
        units = self.layout.fitting(self.nothing(), part, self.scope.mask(self.scope.everywhere))
        what = f"a slice of {part.size}" if part.size else part.name
        found = f"no single {level} takes {what}: {reason}"
        if part.pinned:
            found = f"the {level} that {what} is in has no room for the rest of it: {reason}"
        like = sum(each.size == part.size and each.level == part.level for each in parts)
        told = f"{part.name} finds no {level}"
        if part.size and not part.pinned:
            told += f"; {level}s have room for {min(int(units.sum()), like)} of {like} slices of {part.size}"
        fits = [DomainFit(domains.names[part.level][i], int(units[i]) * len(part.uids)) for i in np.flatnonzero(units)]
        best = tuple(sorted(fits, key=lambda fit: (-fit.holds, fit.name))[:SHOWN_DOMAINS])
        fits_at = self._unsliced()
        cause = Cause.TOPOLOGY if fits_at else cause
        return NoPlacement(found, self.placed, self.needed, cause, *short, level, best, fits_at, slices=told)

    def _unsliced(self) -> str:
        """CLUSTER where the gang would fit with its members in any domain."""
        other = copy(self)
        other.choose(())
        try:
            return CLUSTER if other.fits() else ""
        except OutOfTimeError:
            return ""

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
        other.choose(self.layout.parts)
        return other

    def missing(self, members: MemberClass) -> tuple[str, int]:
        """(resource that runs out first, how much of it the members without a place ask for)."""
        resource = self.refusals.resource
        short = max(0, self.needed - self.placed)
        if not resource:
            return "", 0
        return resource, short * (1 if resource == PODS else members.asked.get(resource, 0))
