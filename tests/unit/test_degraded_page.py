"""docs/degraded.md: each row names the test that holds it, and each story of its own tests is in a row."""

from __future__ import annotations

import re

import pytest

from tests.documented import PROJECT

PAGE = (PROJECT / "docs" / "degraded.md").read_text()
TESTS = PROJECT / "tests"
STORIES = "unit/scheduler/test_degraded_stories.py"
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and "| held by |" not in line]
HELD_BY = re.compile(r"\| `(?P<file>[\w/]+\.py)::(?P<name>\w+)` \|$")


@pytest.mark.parametrize("row", ROWS)
def test_a_row_names_a_test_that_is_there(row: str) -> None:
    named = HELD_BY.search(row)
    assert named is not None
    assert re.search(rf"^def {named['name']}\(", (TESTS / named["file"]).read_text(), re.MULTILINE)


def test_each_story_is_in_a_row() -> None:
    stories = re.findall(r"^def (test_\w+)", (TESTS / STORIES).read_text(), re.MULTILINE)
    assert [name for name in stories if f"`{STORIES}::{name}`" not in PAGE] == []
    assert len(ROWS) > len(stories)
