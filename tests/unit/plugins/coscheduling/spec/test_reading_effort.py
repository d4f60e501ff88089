"""What it costs to read a value grows with its length, and ends with the longest that is valid."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from extender.api.metadata_keys import Key, Source
from extender.api.metav1 import ObjectMeta
from extender.plugins.coscheduling.spec.reading import Reading
from tests.declared_keys import declared_keys

PATTERNS = (
    "9",
    "[",
    ",",
    "a,",
    "a=1,",
    "1h",
    "1.",
    "-",
    " ",
    '"a",',
    '["',
    "a/b,",
    "0.0",
    "\\u0031",
    "{}",
    "a.b-",
    "T00:",
)


def steps(work: Callable[[], object]) -> int:
    """Calls of functions, Python's and C's."""
    count = 0

    def counting(frame: object, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def read(key: Key[Any], value: str) -> int:
    found: dict[str, str] = {key: value}
    metadata = ObjectMeta(labels=found) if key.source is Source.LABEL else ObjectMeta(annotations=found)
    Reading().value(metadata, key)  # what is compiled once is no cost of the value
    return min(steps(lambda: Reading().value(metadata, key)) for _ in range(3))  # the collector may run in one of them


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("key", declared_keys())
def test_twice_the_length_costs_twice_the_steps_at_most(key: Key[Any], pattern: str) -> None:
    half = (pattern * key.longest)[: key.longest // 2]
    whole = (pattern * key.longest)[: key.longest]
    assert read(key, whole) <= 2.2 * read(key, half) + 20


@pytest.mark.parametrize("key", declared_keys())
def test_beyond_the_longest_it_costs_the_same(key: Key[Any]) -> None:
    assert read(key, "9" * 200_000) == read(key, "9" * (key.longest + 1)) < 40
