"""What plugins registered with their queueing hints, as rows of a table: which event, which plugin, and its hint.

The in-process queue asks them for a single pod, the planning of gangs for the members of a gang.
kube-scheduler: pkg/scheduler/backend/queue/scheduling_queue.go (QueueingHintFunction), pkg/scheduler/scheduler.go
(buildQueueingHintMap)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from extender.framework.interface import ClusterEvent, EnqueueExtensions, Plugin, QueueingHintFn


@dataclass(frozen=True, slots=True)
class HintRow:
    """A plugin's wish to hear of an event; without a function every such event is worth a try."""

    event: ClusterEvent
    plugin: str
    hint: QueueingHintFn | None = None


def registered_rows(plugins: Iterable[Plugin]) -> tuple[HintRow, ...]:
    """Of those of the plugins that register events."""
    return tuple(
        HintRow(each.event, plugin.name, each.hint)
        for plugin in plugins
        if isinstance(plugin, EnqueueExtensions)
        for each in plugin.events_to_register()
    )
