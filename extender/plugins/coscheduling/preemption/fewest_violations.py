"""Which pods may go so that as few budgets as can be are violated, and then the lowest top priority: by trying sets out.

The search for victims asks when what it found violates a budget. Its own steps take protected pods by importance, as
kube-scheduler's do; one large pod in place of two small ones, or one of lower priority in place of another, they may miss.
No counterpart upstream.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from itertools import combinations
from math import comb

from extender.plugins.coscheduling.planner.request import Deadline
from extender.plugins.coscheduling.preemption.budgets import Budgets
from extender.plugins.coscheduling.preemption.evictable import Evictable

TRIES = 512
"""Sets of one size that are tried at most; of a size with more sets none is: all are where up to eleven pods are protected."""
SHARE = 0.2  # of the planner's time budget


class FewestViolations:
    """Of one region, where all unprotected pods alone do not help.

    fits: whether the gang would with these gone. Exact where budgets allow no disruption, within TRIES and the time.
    """

    def __init__(
        self,
        region: Sequence[Evictable],
        budgets: Budgets,
        fits: Callable[[Collection[Evictable]], bool],
        deadline: Deadline,
    ) -> None:
        violating = budgets.violating(region)
        self._protected = sorted((each for each in region if each.uid in violating), key=lambda each: each.importance)
        self._others = [each for each in region if each.uid not in violating]
        self._fits = fits
        self._deadline = deadline

    def allowed(self, at_most: int) -> list[Evictable] | None:
        """Who may go: of protected pods no more than it takes. None if more than `at_most` have to, or it is not found out."""
        for count in range(1, at_most + 1):
            if found := self._with(count, None):
                return self._least_important(count, found)
        return None

    def _least_important(self, count: int, found: list[Evictable]) -> list[Evictable]:
        """With as many protected pods, the set of the kind 'nobody above this priority' that helps with the lowest."""
        top = max(each.priority for each in found)
        lower = sorted({each.priority for each in (*self._protected, *self._others) if each.priority < top})
        best = found

        def helps(priority: int) -> bool:
            nonlocal best
            below = self._with(count, priority)
            best = below or best
            return bool(below)

        bisect_left(lower, True, key=helps)
        return best

    def _with(self, count: int, priority: int | None) -> list[Evictable]:
        """The first set that helps of so many protected pods and all others up to the priority; empty if there is none."""
        protected, others = (
            [each for each in pods if priority is None or each.priority <= priority]
            for pods in (self._protected, self._others)
        )
        if comb(len(protected), count) > TRIES:
            return []
        for some in combinations(protected, count):
            if self._deadline.spent(SHARE):
                break
            if self._fits(gone := [*others, *some]):
                return gone
        return []
