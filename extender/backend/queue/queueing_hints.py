"""Which events are worth waking a refused pod for: the events that plugins registered, with their hints.

kube-scheduler: pkg/scheduler/scheduler.go (buildQueueingHintMap), pkg/scheduler/backend/queue (isPodWorthRequeuing)
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

from extender.backend.queue.in_flight_events import HappenedEvent
from extender.backend.queue.queued_pod import QueuedPod
from extender.crash import plugin_crashed
from extender.framework import events
from extender.framework.events import ActionType
from extender.framework.hint_rows import HintRow
from extender.framework.interface import (
    ClusterEvent,
    ClusterEventWithHint,
    EnqueueExtensions,
    Plugin,
    QueueingHint,
)

log = logging.getLogger(__name__)

EXTENDER = "Extender"
"""The name under which HTTP extenders refuse."""


class Strategy(Enum):
    """What becomes of a pod. Go: queueingStrategy."""

    SKIP = "skip"
    AFTER_BACKOFF = "after back-off"
    IMMEDIATELY = "immediately"


_EVERYTHING = tuple(ClusterEventWithHint(ClusterEvent(resource, ActionType.ALL)) for resource in events.ALL_RESOURCES)


def build_hints(plugins: Iterable[Plugin], *, with_extenders: bool = False) -> tuple[HintRow, ...]:
    """Of one profile's plugins. One that registers nothing, as extenders do, is woken by everything."""
    rows: list[HintRow] = []
    for plugin in plugins:
        registered = plugin.events_to_register() if isinstance(plugin, EnqueueExtensions) else _EVERYTHING
        rows.extend(HintRow(each.event, plugin.name, each.hint) for each in registered)
        rows.extend(_node_taint_companion(plugin.name, registered))
    if with_extenders:
        rows.extend(HintRow(each.event, EXTENDER) for each in _EVERYTHING)
    return tuple(rows)


def _node_taint_companion(plugin: str, registered: Sequence[ClusterEventWithHint]) -> Iterable[HintRow]:
    """A new node is announced with a taint first, and may then be seen as changed only: a pod that waits for the addition
    is tried at the change as well."""
    masks = [each.event.action for each in registered if each.event.resource in (events.NODE, events.WILDCARD)]
    added = any(mask & ActionType.ADD for mask in masks)
    tainted = any(mask & ActionType.UPDATE_NODE_TAINT for mask in masks)
    if added and not tainted:
        yield HintRow(ClusterEvent(events.NODE, ActionType.UPDATE_NODE_TAINT), plugin)


class QueueingHints:
    """Immutable but for what it keeps of its answers. Asked under the queue's lock: hint functions are quick and never call the queue."""

    def __init__(self, rows_of: Mapping[str, Sequence[HintRow]]) -> None:
        """By scheduler name."""
        self._rows_of = dict(rows_of)
        self._interest: dict[ClusterEvent, bool] = {}  # what of_interest has found so far

    def events_of(self, scheduler_name: str, plugin: str) -> Sequence[ClusterEvent]:
        return [row.event for row in self._rows_of.get(scheduler_name, ()) if row.plugin == plugin]

    def of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile wants to hear of it. Go: isEventOfInterest."""
        known = self._interest.get(event)
        if known is None:
            known = self._interest[event] = events.is_wildcard(event) or any(
                events.matches(row.event, event) for rows in self._rows_of.values() for row in rows
            )
        return known

    def wanted_events(self) -> Mapping[str, int]:
        """Resource -> all the actions that any plugin of any profile waits for. Go: unionedGVKs."""
        wanted: dict[str, int] = {}
        for rows in self._rows_of.values():
            for row in rows:
                wanted[row.event.resource] = wanted.get(row.event.resource, 0) | row.event.action
        return wanted

    def opens_gate(self, entry: QueuedPod, event: ClusterEvent) -> bool:
        """A gated pod reacts only to what its gating plugin registered."""
        registered = self.events_of(entry.pod.spec.scheduler_name, entry.gating_plugin)
        return any(events.matches(each, event) for each in registered)

    def worth_requeuing(self, entry: QueuedPod, happened: HappenedEvent) -> Strategy:
        """Only hints of the plugins that refused the pod are asked. Go: isPodWorthRequeuing."""
        rejectors = entry.rejector_plugins
        if not rejectors or events.is_wildcard(happened.event):
            return Strategy.AFTER_BACKOFF
        rows = self._rows_of.get(entry.pod.spec.scheduler_name)
        if rows is None:
            log.error("no queueing hints for the pod's profile pod=%s scheduler=%s", entry.key, _scheduler(entry))
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for row in rows:
            if row.plugin not in rejectors or not events.matches(row.event, happened.event):
                continue
            if strategy is Strategy.AFTER_BACKOFF and row.plugin not in entry.pending_plugins:
                continue
            if _ask(row, entry, happened) is QueueingHint.SKIP:
                continue
            if row.plugin in entry.pending_plugins:
                return Strategy.IMMEDIATELY
            strategy = Strategy.AFTER_BACKOFF
        return strategy


def _scheduler(entry: QueuedPod) -> str:
    return entry.pod.spec.scheduler_name


def _ask(row: HintRow, entry: QueuedPod, happened: HappenedEvent) -> QueueingHint:
    """A hint that fails is a yes: better one attempt too many than a pod that is forgotten."""
    if row.hint is None:
        return QueueingHint.QUEUE
    try:
        return row.hint(entry.pod, happened.old, happened.new)
    except Exception:
        plugin_crashed(row.plugin, "QueueingHint")
        return QueueingHint.QUEUE
