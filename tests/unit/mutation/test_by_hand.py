"""Mutations that are written down can still be made, and the test that is to see each is there."""

from __future__ import annotations

import pytest

from tests.mutation.by_hand import Mutation, mutations
from tests.mutation.tree import PROJECT


@pytest.mark.parametrize("mutation", [pytest.param(each, id=each.breaks) for each in mutations()])
def test_a_mutation_that_is_written_down_can_be_made(mutation: Mutation) -> None:
    text = (PROJECT / mutation.file).read_text()
    assert text.count(mutation.removed) == 1
    compile(text.replace(mutation.removed, mutation.added), mutation.file, "exec")
    path, _, name = mutation.test.partition("::")
    assert f"def {name}" in (PROJECT / path).read_text()
