"""How long to wait after a failure, and how long after each further one: one value for every retry.

Clients, actions and the gang room each declare one, with their own numbers. kube-scheduler: k8s.io/apimachinery/pkg/util/wait
(Backoff)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

MOST_STEPS = 64  # past every limit, and no number overflows


@dataclass(frozen=True, slots=True)
class Retry:
    """Seconds that grow by a factor up to a limit. steps: how many tries follow the first where there is an end to them."""

    first_seconds: float
    longest_seconds: float
    factor: float = 2.0
    steps: int = 0

    def seconds(self, failures: int) -> float:
        """How long to wait after so many failures in a row; 1 is the first."""
        return min(self.longest_seconds, self.first_seconds * self.factor ** min(max(failures - 1, 0), MOST_STEPS))

    def pauses(self) -> Iterator[float]:
        """The wait before each of `steps` further tries."""
        return map(self.seconds, range(1, self.steps + 1))
