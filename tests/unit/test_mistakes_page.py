"""docs/mistakes.md: what is said of each mistake is asserted by a test of its row, and pytest collects each test that is named."""

from __future__ import annotations

import re

import pytest

from tests.documented import PROJECT
from tests.documented_tests import file_of, named, uncollected

PAGE = (PROJECT / "docs" / "mistakes.md").read_text()
ROWS = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in re.findall(r"^\|.*\|$", PAGE, re.MULTILINE)]
MISTAKES = [row for row in ROWS if row[0] != "mistake" and not row[0].startswith("---")]
FEWEST = 30
"""Those that new users were seen to make, and what belongs to them."""


def asserted(name: str) -> str:
    """What the test's file has to say of it; of some a code and its field are apart there."""
    return (PROJECT / file_of(name)).read_text()


def test_no_mistake_is_lost() -> None:
    assert len(MISTAKES) >= FEWEST
    assert {len(row) for row in MISTAKES} == {4}


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row[0].replace("`", ""))
def test_what_tells_of_it_is_said_in_a_test(row: list[str]) -> None:
    _, cost, told, tests = row
    assert cost
    assert named(tests)
    assert tests.count("`") == 2 * len(named(tests)), "what stands there beside tests?"
    words = re.findall(r"`([^`]+)`", told)
    assert words, "what tells of it?"
    texts = [asserted(name) for name in named(tests)]
    assert [each for each in words if not any(each in text for text in texts)] == []


def test_each_test_that_is_named_is_collected() -> None:
    assert uncollected(name for row in MISTAKES for name in named(row[3])) == set()
