"""What preemption asks of the evictor, and what the configuration says of preemption by gangs and of gangs.

Behind kube-scheduler and in-process the evictor is scheduler/actions. kube-scheduler: pkg/scheduler/framework/preemption/executor.go
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from extender.api import corev1
from extender.plugins.coscheduling.preemption.evictable import GangVictims


@dataclass(frozen=True, slots=True)
class PreemptionRules:
    """minimum_run_seconds: how long a pod has to have run to be a victim of a gang. delay_seconds: how long a gang has to
    have found no room before it evicts any pod, so that an autoscaler can win."""

    enabled: bool = True
    gang_victims: GangVictims = GangVictims.WHOLE_OR_SURPLUS
    minimum_run_seconds: float = 0.0
    delay_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Eviction:
    """victims: the least important first. on_behalf_of: the gang or pod that needs the room, in words and as an object.

    despite_budgets: as kube-scheduler evicts, for which a budget comes last and forbids nothing: the rest of a gang that it has
    begun to evict.
    """

    victims: Sequence[corev1.Pod]
    on_behalf_of: str
    preemptor: corev1.ObjectReference
    scheduler_name: str
    despite_budgets: bool = False


Done = Callable[[str], None]
"""Called once from another thread: with why no pod was evicted, or empty when all have been told to go."""


class Evictor(Protocol):
    def allowed(self) -> bool:
        """Whether we have the permissions, as far as is known."""
        ...

    def allowed_despite_budgets(self) -> bool:
        """Whether we may delete pods, as kube-scheduler does, however else we evict."""
        ...

    def evict(self, eviction: Eviction, done: Done) -> None:
        """Returns at once. All are tried on the server first: where one may not go, none does."""
        ...
