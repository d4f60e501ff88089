"""PodGroups of kube-scheduler's own API, brought to the plugin that counts them: only where that is configured.

The factories call it beside what they watch anyway. The API server serves the kind in the version of its release: each version
that is read is asked for, and one that is not served is one without any. A group that two serve counts in the newer.
"""

from __future__ import annotations

from collections.abc import Callable

from extender.api.schedulingv1alpha2 import PodGroup
from extender.client.informer import InformerFactory
from extender.client.interface import COMPOSITE_POD_GROUPS, IN_TREE_POD_GROUPS, IN_TREE_POD_GROUPS_1_36
from extender.plugins.coscheduling.plugin import Coscheduling
from extender.scheduler.event_handlers import ObjectHandlers

Changed = Callable[[PodGroup | None, PodGroup | None], None]
Find = Callable[[str], PodGroup | None]


def watch_in_tree_groups(informers: InformerFactory, coscheduling: Coscheduling | None, *others: Changed) -> None:
    """Before the informers start. A kind that we may not read counts as one that is not served, which is told once. others: are told of
    the groups as well, after the plugin."""
    if coscheduling is None or not coscheduling.manager.labels.in_tree:
        return
    newer = informers.informer(IN_TREE_POD_GROUPS, optional=True, may_be_forbidden=True)
    older = informers.informer(IN_TREE_POD_GROUPS_1_36, optional=True, may_be_forbidden=True)
    composites = informers.informer(COMPOSITE_POD_GROUPS, optional=True, may_be_forbidden=True)
    composites.add_handler(ObjectHandlers(coscheduling.on_composite_pod_group))

    def changed(old: PodGroup | None, new: PodGroup | None) -> None:
        for tell in (coscheduling.on_pod_group, *others):
            tell(old, new)

    newer.add_handler(ObjectHandlers(falling_back(changed, older.store.get)))
    older.add_handler(ObjectHandlers(unless_in(newer.store.get, changed)))


def falling_back(changed: Changed, older: Find) -> Changed:
    """Events of the newer version: where it goes, the older one counts if it is there. older: by key."""

    def on(old: PodGroup | None, new: PodGroup | None) -> None:
        known = old or new
        before = older(known.key) if known is not None else None
        changed(old or before, new or before)

    return on


def unless_in(newer: Find, changed: Changed) -> Changed:
    """Events of the older version, of groups that the newer one does not have. newer: by key."""

    def on(old: PodGroup | None, new: PodGroup | None) -> None:
        known = new or old
        if known is not None and newer(known.key) is None:
            changed(old, new)

    return on
