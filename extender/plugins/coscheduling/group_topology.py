"""Which topology a group asks for: annotations of its PodGroup, on the levels that the configuration names.

Admission puts it into the planner's request. An annotation that names no level is refused by the planner, by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from extender.api.schedulingv1alpha1 import PodGroup
from extender.api.schedulingv1alpha2 import PodGroup as InTreePodGroup
from extender.plugins.coscheduling.planner import Topology

REQUIRED = "gang-extender.dev/topology-required"
PREFERRED = "gang-extender.dev/topology-preferred"

Object = PodGroup | InTreePodGroup


def topology_of(configured: Topology, objects: Iterable[Object | None]) -> Topology:
    """Groups that start together share one answer, whichever asks: the narrowest level that any of them names.

    A group that is labels only asks for nothing.
    """
    annotations = [known.metadata.annotations for known in objects if known is not None]
    required = _narrowest(configured, REQUIRED, annotations)
    preferred = _narrowest(configured, PREFERRED, annotations)
    return replace(configured, required=required, preferred=preferred) if required or preferred else configured


def _narrowest(configured: Topology, key: str, annotations: Iterable[Mapping[str, str]]) -> str:
    named = {known[key] for known in annotations if known.get(key)}
    return max(named, key=lambda name: (_depth(configured, name), name), default="")


def _depth(configured: Topology, name: str) -> int:
    """An unknown level comes first, so that it is refused."""
    levels = enumerate(configured.levels)
    return next((index for index, level in levels if name in (level.name, level.key)), len(configured.levels))
