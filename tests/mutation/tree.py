"""The copy of the tree that mutmut works in, so that nothing of the checkout is ever changed; and the tests of a file.

mutmut leaves decorated functions alone, context managers and properties among them. In the copy each is written as what it
stands for, `name = decorator(name)` after a plain function, which is mutated as any other.
"""

from __future__ import annotations

import ast
import configparser
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SOURCE = "extender"
UNIT_TESTS = Path("tests/unit")
LEFT = frozenset({"staticmethod", "classmethod", "overload", "abstractmethod"})
"""mutmut knows the first two; the others have no body to mutate."""


def copy_tree(to: Path) -> None:
    """Every file that git knows or would know."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(listed, cwd=PROJECT, capture_output=True, text=True, check=True)
    for name in filter(None, done.stdout.split("\0")):
        if (PROJECT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(PROJECT / name, to / name)


def configure(tree: Path, files: Sequence[str], tests: Sequence[str]) -> None:
    """For this run, on top of what setup.cfg says of mutmut."""
    config = configparser.ConfigParser()
    config.read(tree / "setup.cfg")
    others = [each.name for each in tree.iterdir() if each.name not in (SOURCE, "tests", ".git")]
    config["mutmut"]["only_mutate"] = "\n" + "\n".join(files)
    config["mutmut"]["pytest_add_cli_args_test_selection"] = "\n" + "\n".join(tests)
    config["mutmut"]["also_copy"] = "\n" + "\n".join(sorted(others))
    with (tree / "setup.cfg").open("w") as file:
        config.write(file)


def unit_tests_of(files: Iterable[str]) -> list[str]:
    """The unit tests of each file's room: those in the folder that mirrors the file's, or the nearest above it that there is."""
    found = set()
    for file in files:
        folder = UNIT_TESTS / Path(file).relative_to(SOURCE).parent
        while not (PROJECT / folder).is_dir():
            folder = folder.parent
        found.add(folder)
    return [str(folder) for folder in sorted(found) if not any(other in folder.parents for other in found)]


def spell_out_decorators(file: Path) -> None:
    file.write_text(without_decorators(file.read_text()))


def without_decorators(source: str) -> str:
    """The same program, each decorated function as what the decorators stand for."""
    lines = source.splitlines()
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and _is_spelt(node)]
    for function in sorted(
        functions, key=lambda node: node.lineno, reverse=True
    ):  # from below: what is above keeps its line
        wrapped = function.name
        for decorator in reversed(function.decorator_list):
            wrapped = f"{ast.unparse(decorator)}({wrapped})"
        end = function.end_lineno or function.lineno
        lines.insert(end, f"{' ' * function.col_offset}{function.name} = {wrapped}")
        del lines[function.decorator_list[0].lineno - 1 : function.lineno - 1]
    return "\n".join(lines) + "\n"


def _is_spelt(function: ast.FunctionDef) -> bool:
    """Not what mutmut knows by itself; not a property's setter, which needs the property under its name."""
    names = [ast.unparse(decorator) for decorator in function.decorator_list]
    return bool(names) and not any(name.rpartition(".")[2] in LEFT | {"setter", "deleter"} for name in names)
