"""Which topology a group asks for: annotations of its PodGroup or of its pods, on the levels that the configuration names.

Admission puts it into the planner's request. An annotation that names no level is refused by the planner, by its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from extender.plugins.coscheduling.planner import Topology

REQUIRED = "gang-extender.dev/topology-required"
PREFERRED = "gang-extender.dev/topology-preferred"


@dataclass(frozen=True, slots=True)
class AskedTopology:
    """Levels, by their name or label; empty where none is asked for."""

    required: str = ""
    preferred: str = ""


NO_TOPOLOGY = AskedTopology()


def topology_of(configured: Topology, asked: Iterable[AskedTopology]) -> Topology:
    """Groups that start together share one answer, whichever asks: the narrowest level that any of them names."""
    known = list(asked)
    required = _narrowest(configured, (each.required for each in known))
    preferred = _narrowest(configured, (each.preferred for each in known))
    return replace(configured, required=required, preferred=preferred) if required or preferred else configured


def _narrowest(configured: Topology, levels: Iterable[str]) -> str:
    return max({level for level in levels if level}, key=lambda name: (_depth(configured, name), name), default="")


def _depth(configured: Topology, name: str) -> int:
    """An unknown level comes first, so that it is refused."""
    levels = enumerate(configured.levels)
    return next((index for index, level in levels if name in (level.name, level.key)), len(configured.levels))
