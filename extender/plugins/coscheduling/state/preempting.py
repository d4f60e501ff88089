"""A gang's preemption while it lasts: from the decision until the last of those has gone whose room it needs.

GangPreemption makes it; gates and filter keep the members waiting while it is there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Preempting:
    """waits_for: UIDs of victims, and of pods that go anyway. until: when it is given up, in seconds of the clock.

    victims: their names (`namespace/name`), for users.
    """

    waits_for: set[str]
    victims: tuple[str, ...]
    until: float
