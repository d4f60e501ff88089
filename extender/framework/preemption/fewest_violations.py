"""Which set of victims violates the fewest PodDisruptionBudgets, asked of thousands of sets: pods and budgets are matched once.

The search for a gang's victims takes protected pods by importance, as kube-scheduler does; where what it found violates a budget, other
sets are tried out here. Nothing of it knows gangs.
kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation)
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations
from math import comb
from typing import Generic, Protocol, TypeVar

from extender.api import corev1, policyv1
from extender.framework.preemption.disruption_budgets import budgets_of


class Candidate(Protocol):
    """A pod that may be evicted. importance: ascending; priority: at which it counts."""

    @property
    def pod(self) -> corev1.Pod: ...

    @property
    def uid(self) -> str: ...

    @property
    def priority(self) -> int: ...

    @property
    def importance(self) -> tuple[int, float]: ...


C = TypeVar("C", bound=Candidate)


class Budgets:
    """The budgets of all pods that may go."""

    def __init__(self, pdbs: Sequence[policyv1.PodDisruptionBudget], all_evictable: Iterable[Candidate]) -> None:
        self._allowed = [pdb.status.disruptions_allowed for pdb in pdbs]
        self._of = (
            {victim.uid: found for victim in all_evictable if (found := budgets_of(victim.pod, pdbs))} if pdbs else {}
        )

    def concern(self, victims: Iterable[Candidate]) -> bool:
        return bool(self._of) and any(victim.uid in self._of for victim in victims)

    def violating(self, victims: Iterable[Candidate], *, important_first: bool = False) -> set[str]:
        """UIDs of those beyond what their budgets allow, if all went.

        The least important use the budgets up, or, as kube-scheduler has it for the pods of one node, the most important.
        """
        if not self._of:
            return set()
        concerned = [victim for victim in victims if victim.uid in self._of]
        concerned.sort(key=lambda each: each.importance, reverse=important_first)
        allowed = list(self._allowed)
        found = set()
        for victim in concerned:
            for index in self._of[victim.uid]:
                allowed[index] -= 1
                if allowed[index] < 0:
                    found.add(victim.uid)
        return found


TRIES = 512
"""Sets of one size that are tried at most; of a size with more sets none is: all are where up to eleven pods are protected."""


class FewestViolations(Generic[C]):
    """Of one region, where all unprotected pods alone do not help.

    fits: whether those that need the room would, with these gone. out_of_time: whether what was found has to do. Exact where
    budgets allow no disruption, within TRIES and the time.
    """

    def __init__(
        self,
        region: Sequence[C],
        budgets: Budgets,
        fits: Callable[[Collection[C]], bool],
        out_of_time: Callable[[], bool],
    ) -> None:
        violating = budgets.violating(region)
        self._protected = sorted((each for each in region if each.uid in violating), key=lambda each: each.importance)
        self._others = [each for each in region if each.uid not in violating]
        self._fits = fits
        self._out_of_time = out_of_time

    def allowed(self, at_most: int) -> list[C] | None:
        """The pods that may go: of protected ones no more than it takes. None if more than `at_most` have to, or it is not found out."""
        for count in range(1, at_most + 1):
            if found := self._with(count, None):
                return self._least_important(count, found)
        return None

    def _least_important(self, count: int, found: list[C]) -> list[C]:
        """With as many protected pods, the set of the kind 'none above this priority' that helps with the lowest."""
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

    def _with(self, count: int, priority: int | None) -> list[C]:
        """The first set that helps of so many protected pods and all others up to the priority; empty if there is none."""
        protected, others = (
            [each for each in pods if priority is None or each.priority <= priority]
            for pods in (self._protected, self._others)
        )
        if comb(len(protected), count) > TRIES:
            return []
        for some in combinations(protected, count):
            if self._out_of_time():
                break
            if self._fits(gone := [*others, *some]):
                return gone
        return []
