"""Tests that pages name in tables: `e2e/test_x.py`, `e2e/test_x.py::test_y` or `e2e/test_x.py::test_y[its id]`, by paths from tests/."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache

from tests.documented import PROJECT

NAMED = re.compile(r"`((?:e2e|parity|server|unit)/[\w/]+\.py(?:::\w+(?:\[[^\]`]+\])?)?)`")


def named(cell: str) -> list[str]:
    """Tests, and files of tests, from the project's root."""
    return [f"tests/{name}" for name in NAMED.findall(cell)]


def file_of(name: str) -> str:
    return name.partition("::")[0]


def uncollected(names: Iterable[str]) -> set[str]:
    """Those that pytest does not find; a test with parameters may be named with one, or without."""
    wanted = set(names)
    files = tuple(sorted({file_of(name) for name in wanted}))
    found = _collected(files)
    return wanted - found - {name.partition("[")[0] for name in found} - {file_of(name) for name in found}


@cache
def _collected(files: tuple[str, ...]) -> frozenset[str]:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return frozenset(line for line in done.stdout.splitlines() if "::" in line)
