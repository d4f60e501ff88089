"""The objects in YAML and JSON files, one by one, each with the line on which it begins; the items of Lists too.

`load` makes a cluster of them. Counterpart: kubectl's reading of `-f` files.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from extender.api.codec import DecodeError
from extender.config.yaml_file import StrictLoader
from extender.config.yaml_limits import Aliases, check_depth

Raw = dict[str, Any]

STANDARD_INPUT = "-"

_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, slots=True)
class Document:
    """One object, and where it stands."""

    path: Path
    line: int
    object: Raw

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def read_documents(path: Path) -> list[Document]:
    """`-` is standard input, which can be read once. Raises DecodeError with file and line, or OSError."""
    try:
        data = sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else path.read_bytes()
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DecodeError(f"{path}: not UTF-8: {error.reason} at byte {error.start}") from error
    with collected_afterwards():
        loader = StrictLoader(text)
        try:
            check_depth(text, StrictLoader)
            aliases = Aliases(text)
            documents: list[Document] = []
            while loader.check_node():
                node = loader.get_node()
                aliases.begin()
                documents += _objects(path, node, _Reader(loader, aliases).plain(node))
            return documents
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise DecodeError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem or error}") from error
        except RecursionError as error:
            raise DecodeError(f"{path}: too deeply nested, or an alias of what it stands in") from error
        except (yaml.YAMLError, ValueError) as error:
            raise error if isinstance(error, DecodeError) else DecodeError(f"{path}: {error}") from error
        finally:
            loader.dispose()


@contextmanager
def collected_afterwards() -> Iterator[None]:
    """The cyclic garbage collector looks through all objects again and again while a large file becomes many of them: four
    fifths of the time that reading takes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Reader:
    """From nodes to plain values; texts, which nearly everything is, without the constructors."""

    def __init__(self, loader: Any, aliases: Aliases) -> None:
        self._loader = loader
        self._aliases = aliases
        self._merged: set[int] = set()  # mappings with `<<`, which are changed in place when they are read

    def plain(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            self._aliases.visit(node)
            return [self.plain(item) for item in node.value]
        return node.value if node.tag == _TEXT else self._loader.construct_object(node, deep=True)

    def _mapping(self, node: yaml.MappingNode) -> Raw:
        """A key that stands twice is refused: YAML would silently keep the last."""
        self._aliases.visit(node)
        keys = [self._key(key) for key, _ in node.value if key.tag != _MERGE]
        if len(set(keys)) != len(keys) and id(node) not in self._merged:
            raise self._doubled(node)
        if len(keys) != len(node.value):
            self._merged.add(id(node))
            self._aliases.merge(node)
            self._loader.flatten_mapping(node)  # what is merged in comes first, and may be overridden
            keys = [self._key(key) for key, _ in node.value]
        return {key: self.plain(value) for key, (_, value) in zip(keys, node.value)}

    def _doubled(self, mapping: yaml.MappingNode) -> Exception:
        seen: set[Any] = set()
        for node in [key for key, _ in mapping.value if key.tag != _MERGE]:
            key = self._key(node)
            if key in seen:
                break
            seen.add(key)
        return yaml.MarkedYAMLError(problem=f"duplicate key {key!r}", problem_mark=node.start_mark)

    def _key(self, node: yaml.Node) -> Any:
        if not isinstance(node, yaml.ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be a text", problem_mark=node.start_mark)
        return node.value if node.tag == _TEXT else self._loader.construct_object(node, deep=True)


def _objects(path: Path, node: yaml.Node, value: Any) -> Iterator[Document]:
    line = node.start_mark.line + 1
    if value is None:
        return
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise DecodeError(f"{path}:{line}: $.kind: an object with apiVersion and kind is wanted")
    if not value["kind"].endswith("List") or not isinstance(value.get("items"), list):
        yield Document(path, line, value)
        return
    for item_node, item in zip(_items(node), value["items"]):
        if isinstance(item, dict) and "kind" not in item:  # kubectl get --raw leaves it out
            item = {**item, "kind": value["kind"].removesuffix("List"), "apiVersion": value.get("apiVersion", "v1")}
        yield from _objects(path, item_node, item)


def _items(node: yaml.Node) -> list[yaml.Node]:
    """Of a List: the last of that name counts, where one was merged in."""
    found: list[yaml.Node] = next(value.value for key, value in reversed(node.value) if key.value == "items")
    return found
