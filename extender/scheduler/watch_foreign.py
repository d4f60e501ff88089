"""PodGroups of other systems, brought to the plugin that reads them: Koordinator's and Volcano's.

The factories call it beside what they watch anyway. A kind that is not served, or not to us, has no objects; one that is served
later is found by the informer. Nothing is ever written to them.
"""

from __future__ import annotations

from extender.client.informer import InformerFactory
from extender.client.interface import FOREIGN_POD_GROUPS
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.scheduler.event_handlers import ObjectHandlers


def watch_foreign_groups(informers: InformerFactory, coscheduling: Coscheduling | None) -> None:
    """Before the informers start."""
    if coscheduling is None:
        return
    for resource in FOREIGN_POD_GROUPS:
        groups = informers.informer(resource, optional=True, may_be_forbidden=True)
        groups.add_handler(ObjectHandlers(coscheduling.on_foreign_pod_group))
