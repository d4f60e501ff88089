"""Which topology levels a group asks for: annotations of its PodGroup or of its pods.

`scheduling.topology` finds the levels among those that the configuration names.
Kueue: kueue.x-k8s.io/podset-required-topology, podset-preferred-topology
"""

from __future__ import annotations

from dataclasses import dataclass

from extender.plugins.coscheduling.spec.counts import parse_count
from extender.plugins.coscheduling.spec.field_errors import invalid


@dataclass(frozen=True, slots=True)
class AskedTopology:
    """Levels, by their name or label; empty where none is asked for.

    node_label: of kube-scheduler's own PodGroup: a required level too, which need not be a configured one.
    """

    required: str = ""
    preferred: str = ""
    node_label: str = ""


_TIER = "tier "
_LAYER = "layer "


def tier(number: int) -> str:
    """Of the configured levels the one of that number, counted from the narrowest, which is 1: as Volcano counts its tiers."""
    return f"{_TIER}{number}"


def tier_number(level: str) -> int:
    """0 for a level's name or label."""
    number = parse_count(level.removeprefix(_TIER)) if level.startswith(_TIER) else None
    return number or 0


def layer(name: str) -> str:
    """A preference for another system's level: none where it is not configured, as with a tier."""
    return _LAYER + name


def layer_name(level: str) -> str:
    return level.removeprefix(_LAYER)


def is_elsewhere(level: str) -> bool:
    """Whether another system has named it, by tier or layer."""
    return level.startswith((_TIER, _LAYER))


NO_TOPOLOGY = AskedTopology()


def parse_level(text: str) -> str:
    """Raises FieldError. Whether there is such a level, the planner says."""
    if not text.isprintable():
        raise invalid(text, "must be the name or the node label of a topology level")
    return text
