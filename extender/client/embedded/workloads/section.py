"""A part of an object in a file, read field by field: what is wrong is named with file, line and path.

The controllers' files read by it. Counterpart: the API server's validation by a kind's schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from extender.api.codec import DecodeError

Raw = dict[str, Any]

MOST_PODS = 150_000  # of a cluster of Kubernetes: https://kubernetes.io/docs/setup/best-practices/cluster-large


@dataclass(frozen=True, slots=True)
class Section:
    """place: file and line of the object. path: of this part in it, as `$.spec.template`."""

    place: str
    path: str
    value: Raw

    def error(self, path: str, message: str) -> DecodeError:
        return DecodeError(f"{self.place}: {self.path}{path}: {message}")

    def section(self, *names: str) -> Section:
        """Empty where it is not there."""
        found = self
        for name in names:
            value = found.value.get(name)
            if value is not None and not isinstance(value, dict):
                raise found.error(f".{name}", f"an object is wanted, got {value!r}"[:200])
            found = Section(found.place, f"{found.path}.{name}", value or {})
        return found

    def sections(self, name: str) -> list[Section]:
        """The objects of a list."""
        value = self.value.get(name)
        if value is not None and not isinstance(value, list):
            raise self.error(f".{name}", f"a list is wanted, got {value!r}"[:200])
        for index, item in enumerate(value or []):
            if not isinstance(item, dict):
                raise self.error(f".{name}[{index}]", f"an object is wanted, got {item!r}"[:200])
        return [Section(self.place, f"{self.path}.{name}[{i}]", item) for i, item in enumerate(value or [])]

    def number(self, name: str, default: int = 1, least: int = 0) -> int:
        """Of pods, or of what has pods: no more than a cluster can have."""
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise self.error(f".{name}", f"a number of {least} or more is wanted, got {value!r}"[:200])
        if value > MOST_PODS:
            raise self.error(f".{name}", f"{value} is more than the {MOST_PODS} pods that a cluster may have")
        return value

    def text(self, name: str, default: str = "") -> str:
        value = self.value.get(name)
        if value is not None and not isinstance(value, str):
            raise self.error(f".{name}", f"a text is wanted, got {value!r}"[:200])
        return value or default

    def is_set(self, name: str) -> bool:
        value = self.value.get(name)
        if value is not None and not isinstance(value, bool):
            raise self.error(f".{name}", f"true or false is wanted, got {value!r}"[:200])
        return bool(value)

    def texts(self, name: str) -> dict[str, str]:
        """Labels or annotations. What a value is, is asked of the pods that have it."""
        return dict(self.section(name).value)

    def items(self) -> Iterator[tuple[str, Section]]:
        """Each field that holds an object."""
        return ((name, self.section(name)) for name in self.value)
