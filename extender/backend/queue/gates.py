"""PreEnqueue: what must hold before a pod is tried at all.

The queue asks at every move to the active or the back-off queue.
kube-scheduler: pkg/scheduler/backend/queue/scheduling_queue.go (runPreEnqueuePlugins)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from extender.backend.queue.queued_pod import QueuedPod
from extender.crash import plugin_crashed
from extender.framework.interface import PreEnqueuePlugin
from extender.framework.status import Code, Status, error

log = logging.getLogger(__name__)


class Gates:
    """Immutable. Asked under the queue's lock: PreEnqueue plugins are quick and never call the queue."""

    def __init__(self, plugins_of: Mapping[str, Sequence[PreEnqueuePlugin]]) -> None:
        """By scheduler name."""
        self._plugins_of = {name: tuple(plugins) for name, plugins in plugins_of.items()}

    def check(self, entry: QueuedPod) -> QueuedPod:
        """The entry with its gating plugin: the first that does not say SUCCESS, or none. The one of last time is asked first."""
        plugins = self._plugins_of.get(entry.pod.spec.scheduler_name, ())
        for plugin in sorted(plugins, key=lambda each: each.name != entry.gating_plugin):
            status = _ask(plugin, entry)
            if not status.success:
                if status.code is Code.ERROR:
                    log.error("PreEnqueue failed plugin=%s pod=%s: %s", plugin.name, entry.key, status.message)
                rejectors = entry.unschedulable_plugins | {plugin.name}
                return replace(entry, gating_plugin=plugin.name, unschedulable_plugins=rejectors)
        return replace(entry, gating_plugin="") if entry.gated else entry


def _ask(plugin: PreEnqueuePlugin, entry: QueuedPod) -> Status:
    try:
        return plugin.pre_enqueue(entry.pod)
    except Exception as exception:
        plugin_crashed(plugin.name, "PreEnqueue")
        return error(str(exception), plugin=plugin.name)
