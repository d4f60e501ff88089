"""sort_slice beside what Go's sort.Slice made of the same lists (sort_slice.json was written by a Go program)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.framework.sort_slice import sort_slice

CASES = json.loads(Path(__file__).with_name("sort_slice.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['keys'])} elements")
def test_ends_where_go_puts_each_element(case: dict[str, Any]) -> None:
    keys, order = case["keys"], list(range(len(case["keys"])))
    if case["ties_are_less"]:
        sort_slice(order, lambda a, b: keys[a] <= keys[b])
    else:
        sort_slice(order, lambda a, b: keys[a] < keys[b])
    assert order == case["order"]


@given(st.lists(st.integers(0, 20), max_size=200))
def test_sorts(keys: list[int]) -> None:
    expected = sorted(keys)
    sort_slice(keys, lambda a, b: a < b)
    assert keys == expected
