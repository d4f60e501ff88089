"""Which topology levels a group asks for, as a whole and for slices of it: annotations of its PodGroup or of its pods.

`scheduling.topology` finds the levels among those that the configuration names.
Kueue: apis/kueue/v1beta2/topology_types.go (podset-required-topology, podset-slice-required-topology and the like)
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from extender.plugins.coscheduling.spec.counts import parse_count
from extender.plugins.coscheduling.spec.field_errors import duplicate, invalid, too_many, unsupported

Sizes = tuple[tuple[str, int], ...]
"""(a level's name or label, members of a slice), from wide to narrow; 0 members: all of them."""


@dataclass(frozen=True, slots=True)
class Slicing:
    """node_labels: those of the levels that need not be configured ones. balanced: slices are spread evenly over domains."""

    sizes: Sizes = ()
    node_labels: tuple[str, ...] = ()
    balanced: bool = False


MAX_LEVELS = 8


@dataclass(frozen=True, slots=True)
class AskedTopology:
    """Levels, by their name or label; empty where none is asked for.

    node_label: of kube-scheduler's own PodGroup: a required level too, which need not be a configured one.
    preferred_label: the preferred level where it need not be a configured one.
    slicing: of all members, where its object says it. by_pods: what each of its pods says for those that say the same.
    """

    required: str = ""
    preferred: str = ""
    node_label: str = ""
    preferred_label: str = ""
    slicing: Slicing | None = None
    by_pods: tuple[tuple[tuple[str, ...], Slicing], ...] = ()


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


def parse_sizes(text: str) -> Sizes:
    """`block=32,rack=8`: each slice of a level is inside of one of the level before it. A level alone: all members in one domain.
    Raises FieldError."""
    sizes: dict[str, int] = {}
    for entry in text.split(",", MAX_LEVELS):
        level, equals, number = (part.strip() for part in entry.partition("="))
        if len(sizes) == MAX_LEVELS:
            raise too_many(MAX_LEVELS, "levels")
        size = parse_count(number) if equals else 0
        if not level or size is None or (equals and not size):
            raise invalid(entry, "must be level=members, such as rack=8, or a level")
        if parse_level(level) in sizes:
            raise duplicate(level)
        sizes[level] = size
    ordered = sorted(sizes.items(), key=lambda each: (each[1] > 0, -each[1]))
    for (_, wider), (level, size) in pairwise(ordered):
        if not size or wider % size or wider == size:  # wider is 0 where it holds all
            raise invalid(text, f"the members of wider slices must be a multiple of those of {level}")
    return tuple(ordered)


def parse_spread(text: str) -> bool:
    """Whether slices are spread evenly. Raises FieldError."""
    if text not in _SPREADS:
        raise unsupported(text, _SPREADS)
    return text == BALANCED


BALANCED = "balanced"
_SPREADS = ("packed", BALANCED)
