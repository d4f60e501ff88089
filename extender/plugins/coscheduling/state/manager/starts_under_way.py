"""How long gangs take from their quorum to their start: noted where a start is decided, measured once the quorum is on nodes.

PodGroupManager keeps it, under its lock. A start that was decided before this process led is not measured: the watch shows gangs that
run since long as well. No counterpart upstream; kube-scheduler measures pods (pod_scheduling_sli_duration_seconds).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from extender import metrics

BOUND, GONE = "bound", "gone"


class StartsUnderWay:
    """wall: the time of day, as the API server dates pods."""

    def __init__(self, wall: Callable[[], datetime]) -> None:
        self._wall = wall
        self._since: dict[str, datetime] = {}  # key of a group that is to start -> when it had its quorum

    def begins(self, key: str, since: datetime | None) -> None:
        """since: when the gang had its quorum. A start that goes on keeps its time."""
        if since is not None:
            self._since.setdefault(key, since)

    def is_whole(self, key: str) -> None:
        """The quorum is on nodes. Harmless for a group that was not to start."""
        if (since := self._since.pop(key, None)) is not None:
            self.measure(BOUND, since)

    def measure(self, outcome: str, since: datetime) -> None:
        seconds = (self._wall() - since).total_seconds()
        metrics.child(metrics.gang_start_duration, outcome).observe(max(0.0, seconds))

    def forget(self, key: str) -> None:
        """The group is gone."""
        self._since.pop(key, None)
