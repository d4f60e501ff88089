"""The other groups that a group names to start together with.

An annotation of its PodGroup or of its pods lists them; `gang_groups` makes the units that follow from it.
Koordinator: apis/extension/coscheduling.go (AnnotationGangGroups)
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from extender.plugins.coscheduling.spec.field_errors import invalid, too_many
from extender.plugins.coscheduling.spec.names import check_group_key

MAX_GROUPS = 64  # that start together

Keys = tuple[str, ...]

_LIST = msgspec.json.Decoder(list[str])  # refuses what is nested at its first bracket, whatever the depth


def parse_groups(text: str) -> Keys:
    """Comma-separated `namespace/name`, or bare names. Raises FieldError."""
    return _names(entry.strip() for entry in text.split(",") if entry.strip())


def parse_group_list(text: str) -> Keys:
    """Koordinator's way to write them: a JSON list. Raises FieldError."""
    try:
        names = _LIST.decode(text)
    except msgspec.DecodeError:
        raise invalid(text, "must be a JSON list of namespace/name") from None
    return _names(names)


def _names(names: Iterable[str]) -> Keys:
    found: dict[str, None] = {}
    for name in names:
        found[check_group_key(name)] = None
        if len(found) > MAX_GROUPS:
            raise too_many(MAX_GROUPS, "groups")
    return tuple(found)


def peers(names: Keys, own_key: str) -> Keys:
    """The keys of the others, sorted; a bare name is of the group's own namespace. Raises FieldError if they are too many."""
    namespace = own_key.partition("/")[0]
    found = {name if "/" in name else f"{namespace}/{name}" for name in names} - {own_key}
    if len(found) >= MAX_GROUPS:
        raise too_many(MAX_GROUPS, "groups")
    return tuple(sorted(found))
