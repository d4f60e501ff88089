"""The changes thought of by hand: each can be made, and each fault of docs/reliability.md has one that a test of its row sees."""

from __future__ import annotations

import ast

import pytest

from tests.documented_tests import named
from tests.mutation.by_hand import Mutation, mutations
from tests.mutation.tree import PROJECT
from tests.unit.test_reliability_page import ROWS

MUTATIONS = mutations()


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.breaks)
def test_its_text_is_in_the_file_once_and_its_test_is_there(mutation: Mutation) -> None:
    assert mutation.can_be_made(PROJECT)
    if mutation.file.endswith(".py"):  # one that is no Python fails every test, and shows nothing of any
        ast.parse((PROJECT / mutation.file).read_text().replace(mutation.removed, mutation.added))
    for test in mutation.tests:
        file, *names = test.split("::")
        assert (PROJECT / file).exists()
        text = (PROJECT / file).read_text() if names else ""
        assert all(f"def {name}(" in text or f"class {name}:" in text for name in names)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}: {row[1]}")
def test_a_fault_is_seen_by_a_test_of_its_row_where_its_handling_is_taken_out(row: list[str]) -> None:
    wanted = {name.partition("::")[0] for name in named(row[3])}
    seen_by = {mutation.test.partition("::")[0] for mutation in MUTATIONS if mutation.fault == int(row[0])}
    assert seen_by & wanted


def test_each_real_test_of_a_row_sees_the_fault_where_its_handling_is_taken_out() -> None:
    """By test: that another of its file sees a fault says nothing of it."""
    wanted = {
        f"{row[0]} {name}" for row in ROWS for name in named(row[3]) if name.startswith(("tests/e2e/", "tests/server/"))
    }
    seen_by = {f"{mutation.fault} {test}" for mutation in MUTATIONS for test in mutation.tests}
    assert wanted - seen_by == set()


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        pytest.param([], True, id="without words all"),
        pytest.param(["7"], True, id="its fault"),
        pytest.param(["77"], False, id="another fault"),
        pytest.param(["7", "cache"], True, id="one of both"),
        pytest.param(["leadership"], True, id="a word of its file"),
        pytest.param(["cache"], False, id="a word that nothing says"),
    ],
)
def test_which_are_tried(words: list[str], chosen: bool) -> None:
    mutation = Mutation("a clock", "extender/scheduler/leadership.py", "a", "b", "tests/unit/test_a.py", fault=7)
    assert mutation.is_of(words) is chosen
