"""Which victims of a whole gang would violate a PodDisruptionBudget; asked of thousands of sets, so matched once.

kube-scheduler: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (filterPodsWithPDBViolation)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from extender.api import policyv1
from extender.framework.preemption.disruption_budgets import budgets_of
from extender.plugins.coscheduling.preemption.evictable import Evictable


class Budgets:
    """The budgets of everybody who may go."""

    def __init__(self, pdbs: Sequence[policyv1.PodDisruptionBudget], everybody: Iterable[Evictable]) -> None:
        self._allowed = [pdb.status.disruptions_allowed for pdb in pdbs]
        self._of = (
            {victim.uid: found for victim in everybody if (found := budgets_of(victim.pod, pdbs))} if pdbs else {}
        )

    def violating(self, victims: Iterable[Evictable], *, important_first: bool = False) -> set[str]:
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
