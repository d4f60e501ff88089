"""The one edge at which what users have written is parsed: values of labels and annotations, and fields.

`group_annotations` and `pod_group` read one group's objects through it. Whatever a value does to its parser becomes
`invalid` of that group, and never raises further in.
Kubernetes: an API server that validates returns all that is wrong; here the first is enough
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from extender.api.metadata_keys import Key
from extender.api.metav1 import ObjectMeta
from extender.crash import crashed
from extender.plugins.coscheduling.spec.field_errors import FieldError, too_long

T = TypeVar("T")


class Reading:
    """invalid: the first key or field that is wrong, and why; empty while none is."""

    def __init__(self) -> None:
        self.invalid = ""

    def value(self, metadata: ObjectMeta, key: Key[T]) -> T | None:
        """What the key's value means; None where it is not there, is empty, or is wrong."""
        return self.parsed(key, key.text(metadata))

    def parsed(self, key: Key[T], text: str) -> T | None:
        """Likewise, of a value that has been taken from its object."""
        return self.field(f"{key.source} {key}", partial(_parsed, key, text)) if text else None

    def required(self, metadata: ObjectMeta, key: Key[T]) -> T | None:
        """Likewise; one that is not there is wrong."""
        if not key.text(metadata).strip():
            return self.field(f"{key.source} {key}", _missing)
        return self.value(metadata, key)

    def first(self, metadata: ObjectMeta, *keys: Key[T]) -> T | None:
        """Of the first key that has a value."""
        found = next((key for key in keys if key.text(metadata).strip()), None)
        return self.value(metadata, found) if found is not None else None

    def field(self, name: str, parse: Callable[[], T]) -> T | None:
        """What parse returns; None where it raises. name: `spec.minMember`."""
        try:
            return parse()
        except FieldError as error:
            wrong = str(error)
        except Exception:  # a parser that was not prepared for this value: it is the value of this group alone
            crashed("spec")
            wrong = "Invalid value: it cannot be read"
        self.invalid = self.invalid or f"{name}: {wrong}"
        return None


def _missing() -> None:
    raise FieldError("Required value")


def _parsed(key: Key[T], text: str) -> T | None:
    if len(text) > key.longest:
        raise too_long(text, key.longest)
    stripped = text.strip()
    return key.parse(stripped) if stripped else None
