"""The list of gangs as the page follows it: each update costs what has changed since the last one.

ClusterFeed asks while a page is open. The list of GangReport looks at each gang anew; here a gang is looked at again when its situation
differs, and one that other gangs have a part in every few seconds as well. In a large cluster most updates compare little more than a count
for most gangs: to compare all that a situation is read off, for a thousand of them, takes some 5 ms.
No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from msgspec.structs import replace

from extender.client.short_steps import pause
from extender.plugins.coscheduling.report.gang_report import GangReport
from extender.plugins.coscheduling.report.gang_status import GangSummary
from extender.plugins.coscheduling.report.page.stopwatch import Stopwatch
from extender.plugins.coscheduling.scheduling.phases import others_count, own_situation
from extender.plugins.coscheduling.state.group import Group
from extender.plugins.coscheduling.state.manager.line import Order
from extender.plugins.coscheduling.state.pod_group_manager import PodGroupManager, by_turns

TURNS = 10  # of that many updates one looks at a gang closely
OTHERS_SECONDS = 5.0  # how soon a gang is looked at again that others have a part in
AT_ONCE = 50  # under one hold of the lock
OTHERS_AT_ONCE = 25  # of those in one update
UNKNOWN = object()  # the situation of a gang that it cannot be read off


@dataclass(frozen=True, slots=True)
class GangChanges:
    """changed: without their places. gone: keys. line: the keys of the gangs that wait, in their order; None where it is as before.
    nodes: those on which other members are held than before."""

    changed: Sequence[GangSummary]
    gone: Sequence[str]
    line: Sequence[str] | None
    nodes: AbstractSet[str]


@dataclass(slots=True)
class _Entry:
    """marks: what nearly every change shows in. due: when it is looked at again though it is as it was; None where only its own changes
    count."""

    group: Group
    marks: tuple[object, ...]
    situation: object
    order: Order | None
    due: float | None
    behind: bool = False
    summary: GangSummary | None = None
    held: Mapping[str, str] = field(default_factory=dict)


class WatchedGangs:
    """Belongs to one thread. Takes the manager's lock for some groups at a time. held: UID -> node, of members that Permit holds."""

    def __init__(self, report: GangReport, watch: Stopwatch, clock: Callable[[], float]) -> None:
        self._report = report
        self._manager = report.manager
        self._watch = watch
        self._clock = clock
        self._entries: dict[str, _Entry] = {}
        self._line: Sequence[str] = ()
        self._turn = 0
        self.held: dict[str, dict[str, str]] = {}  # by key, of gangs that have such members

    def update(self) -> GangChanges:
        """What differs from the last update; the first one tells of all gangs."""
        with self._watch.running(), self._manager.lock:
            keys = list(self._manager.groups)
        stale = self._compare(keys)
        with self._watch.running():
            gone = self._entries.keys() - set(keys)
            nodes = {node for key in gone for node in self._entries[key].held.values()}
            for key in gone:
                del self._entries[key]
                self.held.pop(key, None)
            line = self._sorted_line() if stale or gone else self._line
            moved = line != self._line
            self._line = line
            if moved:
                stale += self._now_behind(stale)
        changed, touched = self._look(stale)
        return GangChanges(changed, sorted(gone), line if moved else None, nodes | touched)

    def summaries(self) -> Sequence[GangSummary]:
        """Of the last update, without their places."""
        return [entry.summary for entry in self._entries.values() if entry.summary is not None]

    @property
    def line(self) -> Sequence[str]:
        return self._line

    def _compare(self, keys: Sequence[str]) -> list[str]:
        """The keys of gangs that are not as they were. All are looked at; in each update some of them closely, others in the next."""
        stale: list[str] = []
        parts = [keys[first : first + AT_ONCE] for first in range(0, len(keys), AT_ONCE)]
        turns = min(TURNS, len(parts))
        self._turn += 1
        may_be_due = OTHERS_AT_ONCE
        for number, some in enumerate(parts):
            if number:
                pause()
            with self._watch.running(), self._manager.lock:
                found = self._differ(some, may_be_due, closely=(number + self._turn) % turns == 0)
                stale += found
                may_be_due = max(0, may_be_due - len(found))
        return stale

    def _differ(self, keys: Sequence[str], may_be_due: int, *, closely: bool) -> list[str]:
        """Lock held. may_be_due: how many may be looked at for others' sake."""
        manager, groups, entries, now = self._manager, self._manager.groups, self._entries, self._clock()
        found: list[str] = []
        for key in keys:
            group, entry = groups.get(key), entries.get(key)
            if group is None:
                continue
            due = entry is not None and entry.due is not None and entry.due <= now and len(found) < may_be_due
            known = entry is not None and entry.group is group
            if entry is not None and known and not closely and not due and entry.marks == _marks_of(group):
                continue
            situation = manager.quarantine.for_gang(key, "page", partial(_situation_of, manager, group), UNKNOWN)
            if entry is not None and known and not due and entry.situation == situation:
                entry.marks = _marks_of(group)
                continue
            found.append(key)
            self._enter(group, entry, situation)
        return found

    def _enter(self, group: Group, entry: _Entry | None, situation: object) -> None:
        """Lock held."""
        quarantine = self._manager.quarantine
        order = quarantine.for_gang(group.key, "page", partial(self._report.order_of_waiting, group), None)
        others = quarantine.for_gang(group.key, "page", partial(others_count, self._manager, group), otherwise=True)
        due = self._clock() + OTHERS_SECONDS if others else None
        fresh = self._entries[group.key] = _Entry(group, _marks_of(group), situation, order, due)
        if entry is not None:
            fresh.summary, fresh.held, fresh.behind = entry.summary, entry.held, entry.behind

    def _sorted_line(self) -> Sequence[str]:
        return [order[-1] for order in sorted(entry.order for entry in self._entries.values() if entry.order)]

    def _now_behind(self, stale: Sequence[str]) -> list[str]:
        """The first in line, and what was first: the others wait behind a gang as before."""
        known, first = set(stale), self._line[:1]
        return [
            key
            for key, entry in self._entries.items()
            if key not in known and entry.order is not None and entry.behind == (key in first)
        ]

    def _look(self, keys: Sequence[str]) -> tuple[list[GangSummary], set[str]]:
        """The summaries that differ from those known, and the nodes with other members that are held."""
        changed, nodes = [], set()
        places = {key: place for place, key in enumerate(self._line, 1)}
        for some in by_turns(keys):
            with self._watch.running(), self._manager.lock:
                for key in some:
                    entry = self._entries[key]
                    entry.behind = places.get(key, 0) > 1
                    summary = replace(self._report.line_of(entry.group, places), place=0)
                    if entry.summary != summary:
                        entry.summary = summary
                        changed.append(summary)
                    nodes |= self._follow_held(entry)
        return changed, nodes

    def _follow_held(self, entry: _Entry) -> set[str]:
        """Lock held."""
        held = dict(entry.group.held)
        if held == entry.held:
            return set()
        differ = {node for _, node in held.items() ^ entry.held.items()}
        entry.held = held
        if held:
            self.held[entry.group.key] = held
        else:
            self.held.pop(entry.group.key, None)
        return differ


def _marks_of(group: Group) -> tuple[object, ...]:
    """Read off in a tenth of the time that the situation takes. Lock held."""
    counts = group.changes, len(group.held), len(group.started)
    return *counts, group.last_diagnosis, group.planned, group.preempting is None


def _situation_of(manager: PodGroupManager, group: Group) -> object:
    """All that its own line of the list is read off, but for its place. Lock held."""
    return own_situation(manager, group), group.key in manager.queue.active
