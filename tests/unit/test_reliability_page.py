"""docs/reliability.md has a row for each of the faults, and each row a test that pytest collects."""

from __future__ import annotations

import re

import pytest

from tests.documented import PROJECT
from tests.documented_tests import named, uncollected

PAGE = (PROJECT / "docs" / "reliability.md").read_text()
ROWS = [
    [cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"^\| \d+ \|.*$", PAGE, re.MULTILINE)
]
FAULTS = 52


def test_the_faults_are_numbered_without_a_gap() -> None:
    numbers = [int(number) for number, *_ in ROWS]
    assert numbers == list(range(1, len(ROWS) + 1))
    assert len(ROWS) >= FAULTS


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_each_says_what_a_user_sees_and_names_a_test(row: list[str]) -> None:
    _, fault, outcome, tests = row
    assert fault
    assert outcome
    assert named(tests)
    assert tests.count("`") == 2 * len(named(tests)), "what stands there beside tests?"


def test_each_test_that_is_named_is_collected() -> None:
    assert uncollected(name for row in ROWS for name in named(row[3])) == set()
