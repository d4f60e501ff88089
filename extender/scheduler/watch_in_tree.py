"""PodGroups of kube-scheduler's own API, brought to the plugin that counts them: only where that is configured.

The factories call it beside what they watch anyway. A server that does not serve them is one without any.
"""

from __future__ import annotations

from extender.client.informer import InformerFactory
from extender.client.interface import IN_TREE_POD_GROUPS
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.scheduler.event_handlers import ObjectHandlers


def watch_in_tree_groups(informers: InformerFactory, coscheduling: Coscheduling | None) -> None:
    """Before the informers start."""
    if coscheduling is not None and coscheduling.manager.labels.in_tree:
        groups = informers.informer(IN_TREE_POD_GROUPS, optional=True)
        groups.add_handler(ObjectHandlers(coscheduling.on_in_tree_pod_group))
