"""Every file and folder that a page names is there; notes in docs/design stay as they were written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documented import PROJECT

PAGES = [*sorted((PROJECT / "docs").glob("*.md")), PROJECT / "README.md", PROJECT / "CONTRIBUTING.md"]
FOLDERS_OF = {"architecture.md"}  # elsewhere a word with a slash at its end may be part of a path of the reader's


def there() -> tuple[set[str], set[str]]:
    """Files and folders of the project, from its root."""
    files = {str(file.relative_to(PROJECT)) for top in ("extender", "tests") for file in (PROJECT / top).rglob("*.py")}
    return files, {str(parent) for file in files for parent in Path(file).parents}


FILES, FOLDERS = there()


def named(page: str, folders: bool) -> Iterator[str]:
    for code in re.findall(r"`([^`\n]+)`", page):
        for word in re.findall(r"[\w./-]+", code):
            if re.search(r"\w\.py$", word) or (folders and re.fullmatch(r"(?:[a-z_]+/)+", word)):
                yield word.rstrip("/")


def missing(page: str, *, folders: bool) -> list[str]:
    """By the end of its path, as `state/member.py`."""
    known = FILES | FOLDERS
    return [word for word in named(page, folders) if not any(f"/{path}".endswith(f"/{word}") for path in known)]


@pytest.mark.parametrize(
    ("page", "found"),
    [
        pytest.param("`state/member.py` and `planner/`", [], id="both are there"),
        pytest.param("`state/ledger_of_old.py`", ["state/ledger_of_old.py"], id="a file that has gone"),
        pytest.param("`dispatch/member.py`", ["dispatch/member.py"], id="a file in another folder"),
        pytest.param("`no_such_room/`", ["no_such_room"], id="a folder that has gone"),
    ],
)
def test_what_is_found(page: str, found: list[str]) -> None:
    assert missing(page, folders=True) == found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_are_there(page: Path) -> None:
    assert missing(page.read_text(), folders=page.name in FOLDERS_OF) == []
