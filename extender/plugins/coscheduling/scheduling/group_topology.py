"""Which topology a group asks for: annotations of its PodGroup or of its pods, on the levels that the configuration names.

PlanRequests puts it into the planner's request, SinglePods and UnitDomains keep further members to it. An annotation that names
no level is refused by the planner, by its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from extender.plugins.coscheduling.planner import Topology
from extender.plugins.coscheduling.planner.scope import UnknownLevelError, level_of
from extender.plugins.coscheduling.spec.topology import AskedTopology


def topology_of(configured: Topology, asked: Iterable[AskedTopology]) -> Topology:
    """Groups that start together share one answer, whichever asks: the narrowest level that any of them names."""
    known = list(asked)
    required = _narrowest(configured, (each.required for each in known))
    preferred = _narrowest(configured, (each.preferred for each in known))
    return replace(configured, required=required, preferred=preferred) if required or preferred else configured


def confining_level(configured: Topology, asked: Iterable[AskedTopology]) -> int | None:
    """The level of which those who asked have to share a domain; None where there is none, or nobody knows it: such a gang is
    not planned, and what runs of it runs anywhere."""
    topology = topology_of(configured, asked)
    try:
        return level_of(topology, topology.required)
    except UnknownLevelError:
        return None


def _narrowest(configured: Topology, levels: Iterable[str]) -> str:
    return max({level for level in levels if level}, key=lambda name: (_depth(configured, name), name), default="")


def _depth(configured: Topology, name: str) -> int:
    """An unknown level comes first, so that it is refused."""
    levels = enumerate(configured.levels)
    return next((index for index, level in levels if name in (level.name, level.key)), len(configured.levels))
