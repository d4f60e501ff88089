"""The other groups that a group names to start together with, and which names a user may write at all.

A group's name becomes a key of our state, a part of messages and of a page's path: it is an object's name or a label's value.
`gang_set_index` makes the gang sets that follow from the names.
Koordinator: apis/extension/coscheduling.go (AnnotationGangGroups). Kubernetes: k8s.io/apimachinery/pkg/util/validation
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from extender.api.metadata_keys import NAME
from extender.config.validation import label_value, qualified_name
from extender.plugins.coscheduling.spec.field_errors import invalid, too_many

MAX_NAMESPACE = 63
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?", re.ASCII)
_NAMESPACE = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?", re.ASCII)
NAME_WANTED = (
    f"must be a name of at most {NAME} letters, digits, '-', '_' or '.', and begin and end with a letter or a digit"
)
PAIR_WANTED = "must be namespace/name"


def is_group_name(text: str) -> bool:
    """An object's name (DNS-1123 subdomain), or what a label that names a group may hold: upper case and `_` too."""
    return len(text) <= NAME and _NAME.fullmatch(text) is not None


def check_group_name(text: str) -> str:
    """Raises FieldError."""
    if not is_group_name(text):
        raise invalid(text, NAME_WANTED)
    return text


def check_group_key(text: str) -> str:
    """`name` or `namespace/name`. Raises FieldError."""
    namespace, slash, name = text.rpartition("/")
    if slash and (len(namespace) > MAX_NAMESPACE or not _NAMESPACE.fullmatch(namespace)):
        raise invalid(text, PAIR_WANTED)
    if not is_group_name(name):
        raise invalid(text, PAIR_WANTED)
    return text


def check_label_key(text: str) -> str:
    """Raises FieldError."""
    if wrong := qualified_name(text):
        raise invalid(text, wrong)
    return text


def check_label_value(text: str) -> str:
    """Raises FieldError."""
    if wrong := label_value(text):
        raise invalid(text, wrong)
    return text


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


def namespace_of(key: str) -> str:
    """key: a group's, `namespace/name`."""
    return key.partition("/")[0]


def peers(names: Keys, own_key: str) -> Keys:
    """The keys of the others, sorted; a bare name is of the group's own namespace. Raises FieldError if they are too many."""
    namespace = namespace_of(own_key)
    found = {name if "/" in name else f"{namespace}/{name}" for name in names} - {own_key}
    if len(found) >= MAX_GROUPS:
        raise too_many(MAX_GROUPS, "groups")
    return tuple(sorted(found))
