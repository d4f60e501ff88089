"""One YAML document from a file as plain values, with the line on which each field stands.

The configuration loaders use it. YAML would silently keep the last of two equal keys; here they are a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from extender.config.yaml_limits import Aliases, check_depth

MAX_VALUES = 100_000  # aliases count each time: a small file must not become a large one
MAX_DEPTH = 40


@dataclass(frozen=True, slots=True, order=True)
class Mistake:
    """What is wrong with one field. path: as in `profiles[0].schedulerName`; empty for the whole document."""

    path: str
    text: str


@dataclass(frozen=True, slots=True, order=True)
class LocatedMistake:
    """One with its place. line 0: of no line. field: as in `profiles[0].schedulerName`; empty for the whole document."""

    file: str
    line: int
    field: str
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.line else f"{self.file}: "
        return place + _one_line(f"{self.field}: {self.text}" if self.field else self.text)


class ConfigurationError(ValueError):
    """What is wrong with a file. mistakes: in the order of the file; the text has a line for each."""

    def __init__(self, mistakes: Iterable[LocatedMistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class StrictLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """A timestamp stays the text that it is in JSON."""


StrictLoader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))


@dataclass(slots=True)
class Document:
    """value: dicts, lists, texts, numbers, bools and None. lines: of each path. mistakes: the keys that stand twice."""

    file: str
    value: Any = None
    lines: dict[str, int] = field(default_factory=dict)
    mistakes: list[Mistake] = field(default_factory=list)

    def error(self, mistakes: Iterable[Mistake]) -> ConfigurationError:
        """All of them, in the order of the file."""
        return ConfigurationError(
            sorted({LocatedMistake(self.file, self.line(each.path), each.path, each.text) for each in mistakes})
        )

    def place(self, path: str) -> str:
        """File, line and field."""
        return f"{self.file}:{self.line(path)}: {path}"

    def line(self, path: str) -> int:
        """Of the field, or of the nearest one around it that stands in the file."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, 1)


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)


def read_document(path: Path | str) -> Document:
    """Raises ConfigurationError with file and line for what is no YAML, or OSError."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigurationError([LocatedMistake(str(path), 0, "", str(error))]) from error
    return parse_document(text, str(path))


def parse_document(text: str, file: str) -> Document:
    """file: where the text is from. Raises ConfigurationError with file and line for what is no YAML."""
    document = Document(file)
    try:
        check_depth(text, StrictLoader)
        loader = StrictLoader(text)
        try:
            node = _single_node(loader)
            if node is not None:
                document.value = _Walk(loader, document, Aliases(text)).plain(node, "", 0)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigurationError([LocatedMistake(file, line, "", error.problem or str(error))]) from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigurationError([LocatedMistake(file, 0, "", str(error))]) from error
    return document


def _single_node(loader: Any) -> yaml.Node | None:
    """Of the one document. What follows it may be `---` alone, as templates and editors leave it; None for no document."""
    first: yaml.Node | None = loader.get_node() if loader.check_node() else None
    while loader.check_node():
        more = loader.get_node()
        if more.tag != _NULL_TAG:
            raise yaml.MarkedYAMLError(problem="expected a single document", problem_mark=more.start_mark)
    return first


_NULL_TAG = "tag:yaml.org,2002:null"
_PLAIN_TAGS = (yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, yaml.resolver.BaseResolver.DEFAULT_SEQUENCE_TAG)


class _Walk:
    """From YAML nodes to plain values."""

    def __init__(self, loader: Any, document: Document, aliases: Aliases) -> None:
        self._loader = loader
        self._aliases = aliases
        self._document = document
        self._own: dict[int, set[int]] = {}  # of each mapping: the keys that stand in it, before others are merged in
        self._count = 0

    def plain(self, node: yaml.Node, path: str, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_VALUES or depth > MAX_DEPTH:
            raise yaml.MarkedYAMLError(problem="too large, or too deeply nested", problem_mark=node.start_mark)
        if not isinstance(node, yaml.ScalarNode) and node.tag not in _PLAIN_TAGS:
            raise yaml.MarkedYAMLError(problem=f"tag {node.tag} is not supported", problem_mark=node.start_mark)
        self._document.lines.setdefault(path, node.start_mark.line + 1)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.plain(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(node.value)]
        return self._loader.construct_object(node)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        own = self._own.setdefault(id(node), {id(key) for key, _ in node.value})
        self._aliases.merge(node)
        self._loader.flatten_mapping(node)  # `<<`: what is merged in comes first, and may be overridden
        result: dict[str, Any] = {}
        seen: set[str] = set()
        for key_node, value_node in node.value:
            key = str(self._loader.construct_object(key_node)) if isinstance(key_node, yaml.ScalarNode) else "?"
            where = f"{path}.{key}" if path else key
            if key in seen and id(key_node) in own:
                self._document.lines[where] = key_node.start_mark.line + 1
                self._document.mistakes.append(Mistake(where, "Duplicate key"))
                continue
            if id(key_node) in own:
                seen.add(key)
            self._document.lines[where] = key_node.start_mark.line + 1
            result[key] = self.plain(value_node, where, depth + 1)
        return result
