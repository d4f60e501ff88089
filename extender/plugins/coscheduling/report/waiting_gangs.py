"""How many gangs wait for what, and for how long the oldest has: counted every few seconds, so that a scrape costs nothing.

Counted from GangObserver's last look, by the plugin's tick. For metrics: their labels have reasons, and never a gang's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from extender.client.short_steps import pause
from extender.plugins.coscheduling.report.gang_observer import WAITING_PHASES, GangObserver, Seen
from extender.plugins.coscheduling.scheduling.phases import Phase
from extender.plugins.coscheduling.state.diagnosis import UnschedulableReason
from extender.plugins.coscheduling.state.manager.starts_under_way import GONE
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, in_parts

LOOK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """counts: of groups by reason, every one. oldest: for how long, in seconds, the group that has waited longest for a reason has: since
    it had its quorum; one that has none, since it came into its phase."""

    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(UnschedulableReason, 0))
    oldest: Mapping[str, float] = field(default_factory=dict)


@dataclass(slots=True)
class _Look:
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(UnschedulableReason, 0))
    oldest: dict[str, float] = field(default_factory=dict)
    complete: dict[str, datetime] = field(default_factory=dict)


class WaitingGangs:
    """One caller at a time has it look: the tick. foreign: what other schedulers do with a group; such a one waits for that."""

    def __init__(self, manager: PodGroupManager, observer: GangObserver, foreign: Callable[[str], str]) -> None:
        self._manager, self._observer, self._foreign = manager, observer, foreign
        self._look_at = 0.0
        self._complete: dict[str, datetime] = {}  # key of a gang that waits and has its quorum -> since when
        self.now = Waiting()

    def tick(self) -> None:
        clock = self._manager.clock()
        if clock < self._look_at:
            return
        self._look_at = clock + LOOK_SECONDS
        look, manager = _Look(), self._manager
        with manager.lock:
            keys = list(manager.groups)
        for some in in_parts(keys):
            with manager.lock:
                for key in some:
                    manager.quarantine.for_gang(key, "observer", partial(self._look, key, look), None)
            pause()
        with manager.lock:
            for key in self._complete.keys() - look.complete.keys():
                manager.quarantine.for_gang(key, "observer", partial(self._measure_if_gone, key), None)
        self._complete = look.complete
        self.now = Waiting(look.counts, look.oldest)

    def _look(self, key: str, look: _Look) -> None:
        """Lock held."""
        group, seen = self._manager.groups.get(key), self._observer.last_seen(key)
        if group is None or seen is None or not group.members:
            return
        if seen.phase not in WAITING_PHASES and seen.phase is not Phase.QUARANTINED:
            return
        reason = UnschedulableReason.FOREIGN_SCHEDULER if self._foreign(key) else reason_of(seen)
        since = self._manager.line.standing(group).since
        age = self._manager.clock() - seen.since
        if since is not None:
            look.complete[key] = since
            age = (self._manager.wall() - since).total_seconds()
        look.counts[reason] += 1
        look.oldest[reason] = max(look.oldest.get(reason, 0.0), age)

    def _measure_if_gone(self, key: str) -> None:
        """Of one that has waited until now: without pods it never starts. Lock held."""
        group = self._manager.groups.get(key)
        if group is None or not (group.members or group.ran):
            self._manager.starts.measure(GONE, self._complete[key])


def reason_of(seen: Seen) -> UnschedulableReason:
    """Why a gang that waits does."""
    if seen.phase is Phase.QUARANTINED:
        return UnschedulableReason.INTERNAL_ERROR
    if seen.failed_check is not None:
        return seen.failed_check[0]
    return seen.last_diagnosis.reason if seen.last_diagnosis is not None else UnschedulableReason.NOT_TRIED
