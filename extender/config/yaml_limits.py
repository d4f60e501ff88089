"""How deep a YAML file may nest, and how much its aliases may make of it: a small file must not take the memory, or the
process that reads it.

yaml_file reads configurations with it, client/embedded reads clusters. What is refused is a MarkedYAMLError, with its line.
Kubernetes: sigs.k8s.io/yaml and its fork of go-yaml, which count aliases alike
"""

from __future__ import annotations

import re
from typing import Any

import yaml

MAX_DEPTH = 200
MAX_REPEATED = 500_000  # values that come of aliases, beyond those that stand in the file

_SUSPECT = MAX_DEPTH // 2
_BRACKETS = re.compile(r"[\[\]{}]")
_BLOCK = re.compile(rf"^[ \t\-?]{{{_SUSPECT},}}", re.MULTILINE)
_MERGE = "tag:yaml.org,2002:merge"


def check_depth(text: str, loader: type[Any]) -> None:
    """The parser's events nest nothing, the nodes made of them do, and libyaml does not survive some ten thousand levels."""
    if not _may_be_deep(text):
        return
    events: Any = loader(text)
    depth = 0
    try:
        while events.check_event():
            event: Any = events.get_event()
            mark = event.start_mark
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise yaml.MarkedYAMLError(problem="too deeply nested", problem_mark=mark)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    finally:
        events.dispose()


def _may_be_deep(text: str) -> bool:
    """A look at the text alone, which nearly always says no: brackets in texts count, too."""
    if _BLOCK.search(text):
        return True
    if text.count("[") + text.count("{") < _SUSPECT:
        return False
    depth = 0
    for found in _BRACKETS.finditer(text):
        depth += 1 if found[0] in "[{" else -1
        if depth > _SUSPECT:
            return True
    return False


class Aliases:
    """Counts what is read again, through an alias or a merge. One for a file."""

    def __init__(self, text: str) -> None:
        self._any = "&" in text and "*" in text
        self._seen: set[int] = set()
        self._repeated = 0
        self._pairs: dict[int, int] = {}

    def begin(self) -> None:
        """Another document of the file: its nodes are others, whatever their ids."""
        self._seen.clear()
        self._pairs.clear()

    def visit(self, node: yaml.CollectionNode) -> None:
        """Before the node is read. Raises MarkedYAMLError once too much has been read again."""
        if not self._any:
            return
        if id(node) in self._seen:
            self._repeated += 1 + len(node.value)
            if self._repeated > MAX_REPEATED:
                raise _too_large(node)
        self._seen.add(id(node))

    def merge(self, node: yaml.MappingNode) -> None:
        """Before what the mapping merges in is put in its place."""
        self._repeated += self._size(node, 0)
        if self._repeated > MAX_REPEATED:
            raise _too_large(node)

    def _size(self, node: yaml.Node, depth: int) -> int:
        """The pairs of the mapping with all that is merged into it, and into that; of a list, those of its items."""
        if depth > MAX_DEPTH:
            raise _too_large(node)
        known = self._pairs.get(id(node))
        if known is None:
            if isinstance(node, yaml.SequenceNode):
                known = sum(self._size(item, depth + 1) for item in node.value)
            elif isinstance(node, yaml.MappingNode):
                merged = [value for key, value in node.value if key.tag == _MERGE]
                known = len(node.value) + sum(self._size(value, depth + 1) for value in merged)
            else:
                known = 0
            self._pairs[id(node)] = known
        return known


def _too_large(node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem="too large once its aliases are resolved", problem_mark=node.start_mark)
