"""What the program uses of libraries beyond their documentation, found in its source by walking the syntax trees.

Three kinds: names with a leading underscore of foreign objects and modules; modules of libraries that document none of
them (gunicorn); and in subclasses of foreign classes that are not documented as bases, all that is overridden or inherited.
Used by tests/unit/test_private_names.py, which holds the list of those that are meant.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

# Names with an underscore that are documented.
PUBLIC = frozenset({"_exit", "_replace", "_asdict", "_fields", "_current_frames", "_getframe"})
SUFFIXES = frozenset({"_verb", "_plugins", "_proxy"})  # texts that are put together with others
UNDOCUMENTED = ("gunicorn.",)
# Foreign classes, or all of a module, that are documented as bases.
BASES = (
    *("abc.", "collections.abc.", "enum.", "typing.", "logging.", "io.", "msgspec."),
    *("flask.Flask", "prometheus_client.registry.Collector", "gunicorn.app.base.BaseApplication"),
)


def uses(folder: Path) -> set[tuple[str, str]]:
    """(file, dotted name); of an object whose class the syntax does not tell, `?` and the name."""
    trees = {file: ast.parse(file.read_text(encoding="utf-8")) for file in sorted(folder.rglob("*.py"))}
    ours = {name for tree in trees.values() for name in _defined(tree)}
    return {(file.relative_to(folder).as_posix(), name) for file, tree in trees.items() for name in _used(tree, ours)}


def _used(tree: ast.AST, ours: set[str]) -> set[str]:
    found = {*_imported(tree), *_of_subclasses(tree)}
    known = {name.rpartition(".")[2] for name in found}
    return found | {f"?.{name}" for name in _private(tree, ours) if name not in known}


def resolve(name: str) -> Any:
    """The object; None for an attribute that instances of a class are given in its own source. Raises AttributeError."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            if isinstance(found, type) and not hasattr(found, part) and part in _given(found):
                return None
            found = getattr(found, part)
        return found
    raise AttributeError(name)


def parameters(found: Any) -> str:
    """`self, client, addr` of a function; empty for all else."""
    return ", ".join(inspect.signature(found).parameters) if inspect.isroutine(found) else ""


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The name here, and what it is there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                name = each.name if each.asname else each.name.partition(".")[0]
                yield each.asname or name, name
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                yield each.asname or each.name, f"{node.module}.{each.name}"


def _imported(tree: ast.AST) -> Iterator[str]:
    """With what is called of them by their own name."""
    found = {}
    modules = {each.name for node in ast.walk(tree) if isinstance(node, ast.Import) for each in node.names}
    for here, name in (*_imports(tree), *((name, name) for name in modules)):
        private = any(_is_private(part) for part in name.split("."))
        if not name.startswith("extender.") and (private or name.startswith(UNDOCUMENTED)) and name not in BASES:
            found[here] = name
            yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in found:
            yield f"{found[node.value.id]}.{node.attr}"


def _private(tree: ast.AST, ours: set[str]) -> Iterator[str]:
    """Attributes, and the texts by which getattr and monkey.get_original find them.

    An object that is not `self` may be a foreign one: there only the names of this very file are ours.
    """
    here = set(_defined(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _is_private(node.attr):
            known = ours if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") else here
            if node.attr not in known:
                yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value not in here | SUFFIXES:
            variable = node.value.isupper()  # of the environment
            yield from (node.value,) if _is_private(node.value) and node.value.isidentifier() and not variable else ()


def _of_subclasses(tree: ast.AST) -> Iterator[str]:
    """In subclasses of foreign classes: what is overridden there, and what is used of the base by `self` and `super()`."""
    names = dict(_imports(tree))
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    for node in classes.values():
        for base in {base for each in _ancestors(node, classes) for base in _foreign(each, names)}:
            yield from _of_base(node, base)


def _of_base(node: ast.ClassDef, base: str) -> Iterator[str]:
    foreign = resolve(base)
    there = {name for name in dir(foreign) if not hasattr(object, name)} | _given(foreign)
    used = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute) and _is_self(each.value)}
    for name in (set(_in_body(node)) | used) & there:
        if _is_private(name) or (not name.startswith("__") and not base.startswith(BASES)):
            yield f"{base}.{name}"


def _is_self(node: ast.expr) -> bool:
    return ast.unparse(node) in ("self", "cls", "super()")


def _ancestors(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> Iterator[ast.ClassDef]:
    """With itself, within the file."""
    yield node
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from _ancestors(classes[base.id], classes)


def _foreign(node: ast.ClassDef, names: dict[str, str]) -> Iterator[str]:
    for base in node.bases:
        head, dot, rest = ast.unparse(base).partition("[")[0].partition(".")
        target = names.get(head, "extender.")
        if not target.startswith("extender."):
            yield target + dot + rest


def _defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
            yield node.attr


def _in_body(node: ast.ClassDef) -> Iterator[str]:
    for each in node.body:
        yield from _defined(each) if not isinstance(each, ast.FunctionDef) else (each.name,)


@cache
def _given(foreign: type) -> frozenset[str]:
    """Attributes that its methods, or those of its bases, assign to `self`."""
    found: set[str] = set()
    for each in inspect.getmro(foreign):
        with suppress(OSError, TypeError):  # one that is written in C
            found.update(_defined(ast.parse(textwrap.dedent(inspect.getsource(each)))))
    return frozenset(found)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in PUBLIC and name != "_"
