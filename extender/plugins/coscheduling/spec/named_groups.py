"""The other groups that a group names to start together with.

An annotation of its PodGroup or of its pods lists them; `gang_groups` makes the units that follow from it.
Koordinator: apis/extension/coscheduling.go (AnnotationGangGroups)
"""

from __future__ import annotations

from collections.abc import Iterable

GROUPS_ANNOTATION = "gang-extender.dev/groups"
MAX_GROUPS = 64

Keys = tuple[str, ...]


def parse_groups(text: str, own_key: str) -> Keys:
    """Comma-separated `namespace/name`; a bare name is of the group's own namespace. Raises ValueError for its owner."""
    return parse_names((entry.strip() for entry in text.split(",") if entry.strip()), own_key)


def parse_names(names: Iterable[str], own_key: str) -> Keys:
    found: set[str] = set()
    namespace = own_key.partition("/")[0]
    for name in names:
        key = name if "/" in name else f"{namespace}/{name}"
        if key.count("/") != 1 or key.startswith("/") or key.endswith("/"):
            raise ValueError(f"Invalid value: {name[:127]!r}: must be namespace/name")
        found.add(key)
    found.discard(own_key)
    if len(found) >= MAX_GROUPS:
        raise ValueError(f"Too many: must have at most {MAX_GROUPS} groups")
    return tuple(sorted(found))
