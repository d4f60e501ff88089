"""A mapping of a configuration file, read field by field; what is wrong is noted with its path, and reading goes on.

So that every mistake is said at once. The words are those of kube-scheduler's field errors.
Kubernetes: k8s.io/apimachinery/pkg/util/validation/field
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from extender.config.durations import DurationError, parse_go_duration
from extender.config.yaml_file import Document, Mistake

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
MAX_FLOAT32 = (2.0 - 2.0**-23) * 2.0**127

_NUMBER_TO_GO = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+", re.ASCII)
"""As 1e3, which is a number to Go's YAML and a text to ours."""

_KINDS = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "a bool",
    int: "an integer",
    float: "a number",
    bytes: "binary data",
    type(None): "null",
}
"""In the words of YAML."""


def _kind(value: object) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: object) -> str:
    """A value as Go's field errors show it: texts in double quotes, on one line."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return str(value)


class Section:
    """A null counts as a field that is not there, as it does to Kubernetes. Call `finish` after the last field."""

    def __init__(self, value: object, path: str, mistakes: list[Mistake]) -> None:
        self.path = path
        self.mistakes = mistakes
        self._value: dict[str, Any] = {}
        if isinstance(value, dict):
            self._value = {key: item for key, item in value.items() if item is not None}
        elif value is not None:
            mistakes.append(Mistake(path, f"must be a mapping, not {_kind(value)}"))
        self._unread = set(self._value)

    @classmethod
    def root(cls, document: Document) -> Section:
        """The mistakes so far are the document's own."""
        return cls(document.value, "", document.mistakes)

    @classmethod
    def configuration(cls, document: Document) -> Section:
        """The root of a file that has to say something. Raises ConfigurationError: of what is missing in no mapping nothing more is to be
        said."""
        if isinstance(document.value, dict):
            return cls.root(document)
        text = "the file is empty" if document.value is None else f"must be a mapping, not {_kind(document.value)}"
        raise document.error([Mistake("", text)])

    def where(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def wrong(self, key: str, text: str) -> None:
        self.mistakes.append(Mistake(self.where(key) if key else self.path, text))

    def invalid(self, key: str, value: object, why: str) -> None:
        self.wrong(key, f"Invalid value: {shown(value)}: {why}")

    def required(self, key: str, why: str = "") -> None:
        self.wrong(key, f"Required value{': ' + why if why else ''}")

    def __contains__(self, key: str) -> bool:
        return key in self._value

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def finish(self) -> None:
        """Notes the fields that no reader asked for."""
        for key in sorted(self._unread):
            self.wrong(key, "unknown field")

    def plain(self, key: str) -> Any:
        """The value as it stands; None if it does not."""
        self._unread.discard(key)
        return self._value.get(key)

    def _typed(self, key: str, type_: type, wanted: str) -> Any:
        value = self.plain(key)
        if value is None or type(value) is type_:
            return value
        self.wrong(key, f"must be {wanted}, not {_kind(value)}")
        return None

    def text(self, key: str, default: str = "") -> str:
        value = self._typed(key, str, "a string")
        return default if value is None else str(value)

    def choice(self, key: str, options: Collection[str], default: str) -> str:
        value = self.text(key, default)
        if value not in options:
            self.unsupported(key, value, options)
            return default
        return value

    def unsupported(self, key: str, value: str, options: Collection[str]) -> None:
        supported = ", ".join(shown(option) for option in options)
        self.wrong(key, f"Unsupported value: {shown(value)}: supported values: {supported}")

    def flag(self, key: str, default: bool = False) -> bool:
        value = self._typed(key, bool, "true or false")
        return default if value is None else bool(value)

    def integer(self, key: str, default: int, *, low: int = 0, high: int = MAX_INT32, why: str = "") -> int:
        """why: kube-scheduler's own words for a value out of range."""
        value = self._typed(key, int, "an integer")
        if value is None:
            return default
        if not low <= value <= high:
            self.invalid(key, value, why or f"not in valid range [{low}, {high}]")
            return default
        return int(value)

    def number(self, key: str, default: float) -> float:
        """A finite one: JSON, which Kubernetes makes of a file first, has no other."""
        value = self.plain(key)
        if value is None:
            return default
        if isinstance(value, str) and _NUMBER_TO_GO.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(key, f"must be a number, not {_kind(value)}")
            return default
        if not abs(value) <= MAX_FLOAT32:  # a NaN neither
            self.invalid(key, value, "must be a number of 32 bits")
            return default
        return float(value)

    def seconds(self, key: str, default: float, *, low: float, high: float) -> float:
        """A plain number of seconds."""
        value = self.plain(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.wrong(key, f"must be a number of seconds, not {_kind(value)}")
            return default
        if not low <= value <= high:  # a NaN is in no range
            self.invalid(key, value, f"must be between {low:g} and {high:g}")
            return default
        return float(value)

    def duration(self, key: str, default: float) -> float:
        """A Go duration, such as 30s; in seconds."""
        value = self._typed(key, str, "a duration such as 30s")
        if value is None:
            return default
        try:
            return parse_go_duration(value)
        except DurationError as error:
            self.invalid(key, value, str(error))
            return default

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        found = []
        for index, item in enumerate(self.items(key)):
            if isinstance(item, str):
                found.append(item)
            else:
                self.wrong(f"{key}[{index}]", f"must be a string, not {_kind(item)}")
        return tuple(found)

    def section(self, key: str) -> Section:
        """The mapping in this field; an empty one where there is none."""
        return Section(self.plain(key), self.where(key), self.mistakes)

    def sections(self, key: str) -> Sequence[Section]:
        """The mappings of a list."""
        items = enumerate(self.items(key))
        return [Section(item, f"{self.where(key)}[{index}]", self.mistakes) for index, item in items]

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self._typed(key, list, "a list")
        return [] if value is None else list(value)
