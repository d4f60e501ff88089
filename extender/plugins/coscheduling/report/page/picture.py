"""The cluster with its gangs as the page shows it, and each change of it as one message.

ClusterFeed has one while a page is open. The messages are read by server/ui/page.js, and by nothing else.
No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct
from msgspec.structs import replace

from extender.plugins.coscheduling.report.gang_report import GangReport
from extender.plugins.coscheduling.report.gang_status import GangSummary
from extender.plugins.coscheduling.report.page.stopwatch import Stopwatch
from extender.plugins.coscheduling.report.page.watched_gangs import WatchedGangs
from extender.plugins.coscheduling.report.page.watched_nodes import NodeRow, WatchedNodes

NONE: frozenset[str] = frozenset()


class Change(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What differs. whole: nothing that was told before holds any more.

    levels, resources: what the columns of a NodeRow are, given with all rows of nodes. places: of the gangs that wait in line, from 1, all
    of them; None where the line is as before. in_line: how many those are in the whole cluster. standby: this replica does not lead, and
    plans nothing.
    """

    whole: bool = False
    levels: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    nodes: Sequence[NodeRow] = ()
    gone_nodes: Sequence[str] = ()
    gangs: Sequence[GangSummary] = ()
    gone_gangs: Sequence[str] = ()
    places: Mapping[str, int] | None = None
    in_line: int | None = None
    standby: bool | None = None

    def of_namespace(self, namespace: str) -> Change:
        """What a user of one namespace is shown of it: its gangs, and no nodes."""
        prefix = f"{namespace}/"
        places = self.places
        return replace(
            self,
            levels=None,
            resources=None,
            nodes=(),
            gone_nodes=(),
            gangs=[gang for gang in self.gangs if gang.namespace == namespace],
            gone_gangs=[key for key in self.gone_gangs if key.startswith(prefix)],
            places=None if places is None else {key: at for key, at in places.items() if key.startswith(prefix)},
        )

    @property
    def says_nothing(self) -> bool:
        told = self.nodes or self.gone_nodes or self.gangs or self.gone_gangs
        given = (self.levels, self.resources, self.places, self.in_line, self.standby)
        return not (self.whole or told or any(each is not None for each in given))


class Picture:
    """Belongs to one thread. Ends with `close`. watch: its own work."""

    def __init__(self, report: GangReport, may_plan: Callable[[], bool]) -> None:
        self.watch = Stopwatch()
        self._may_plan = may_plan
        self._standby = False
        self._levels = report.dependencies.topology.levels

        def kept_free() -> AbstractSet[str]:
            kept = report.rounds.reservations.current
            return kept.nodes if kept is not None else NONE

        newest_snapshot = report.dependencies.newest_snapshot
        self._gangs = WatchedGangs(report, self.watch, report.manager.clock)
        self._nodes = WatchedNodes(report.manager, newest_snapshot, self._levels, kept_free, self.watch)

    def close(self) -> None:
        self._nodes.stop()

    def update(self) -> Change:
        """What differs from the last update."""
        gangs = self._gangs.update()
        nodes = self._nodes.update(self._gangs.held, gangs.nodes)
        standby = not self._may_plan()
        changed = standby != self._standby
        self._standby = standby
        return Change(
            levels=self._level_names() if nodes.anew else None,
            resources=tuple(self._nodes.resources) if nodes.anew else None,
            nodes=nodes.rows,
            gone_nodes=nodes.gone,
            gangs=gangs.changed,
            gone_gangs=gangs.gone,
            places=None if gangs.line is None else _places(gangs.line),
            in_line=None if gangs.line is None else len(gangs.line),
            standby=standby if changed else None,
        )

    def whole(self) -> Change:
        """As of the last update."""
        with self.watch.running():
            return Change(
                whole=True,
                levels=self._level_names(),
                resources=tuple(self._nodes.resources),
                nodes=list(self._nodes.rows.values()),
                gangs=self._gangs.summaries(),
                places=_places(self._gangs.line),
                in_line=len(self._gangs.line),
                standby=self._standby,
            )

    def _level_names(self) -> tuple[str, ...]:
        return tuple(level.name for level in self._levels)


def _places(line: Sequence[str]) -> Mapping[str, int]:
    return {key: place for place, key in enumerate(line, 1)}
