"""Which names a user may write for a group, a role or a label.

A group's name becomes a key of our state, a part of messages and of a page's path: it is an object's name or a label's value.
Kubernetes: k8s.io/apimachinery/pkg/util/validation
"""

from __future__ import annotations

import re

from extender.api.metadata_keys import NAME
from extender.config.validation import label_value, qualified_name
from extender.plugins.coscheduling.spec.field_errors import invalid

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
