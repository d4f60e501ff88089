"""Quantities mean what Go's resource.Quantity makes of them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.api.quantity import MAX_INT64, QuantityError, parse_quantity


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("100m", 1, 100),
        ("1m", 1, 1),
        ("1u", 1, 1),
        ("999999999n", 1, 1000),
        ("1e3", 1000, 1_000_000),
        ("1E3", 1000, 1_000_000),
        ("1E", 10**18, MAX_INT64),
        ("12e-1", 2, 1200),
        ("1.5Gi", 1610612736, 1610612736000),
        ("0.5Ki", 512, 512000),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("+3k", 3000, 3_000_000),
        ("-1m", -1, -1),
        ("8Ei", MAX_INT64, MAX_INT64),
        ("99999999999999999999", MAX_INT64, MAX_INT64),
        (2, 2, 2000),
        (0.1, 1, 100),
    ],
)
def test_a_quantity_rounds_up_and_saturates(text: object, value: int, milli: int) -> None:
    quantity = parse_quantity(text)
    assert (quantity.value, quantity.milli_value) == (value, milli)


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1 ", "1_000", "NaN", "inf", "1e1000000", "1e99999", "0x10", "\u0661\u0660", "1KI", "1mi", "1.2.3", "--1", ".", "m", "1e",
     "1 Gi", "9" * 65, True, None, [], float("nan"), float("inf")],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(text: object) -> None:
    with pytest.raises(QuantityError):
        parse_quantity(text)


@pytest.mark.parametrize(("raw", "kind"), [(None, "null"), (True, "a bool"), ({}, "a mapping"), ([], "a list")])
def test_what_is_neither_text_nor_number_is_named_in_words_of_yaml(raw: object, kind: str) -> None:
    with pytest.raises(QuantityError, match=f"must be a string or a number, got {kind}$"):
        parse_quantity(raw)


@given(st.integers(0, 10**15), st.sampled_from(["", "m", "k", "M", "Ki", "Mi"]))
def test_equal_amounts_are_equal_however_they_are_written(number: int, suffix: str) -> None:
    quantity = parse_quantity(f"{number}{suffix}")
    assert parse_quantity(f"{number}.000{suffix}") == quantity
    assert (
        quantity.milli_value <= quantity.value * 1000 < quantity.milli_value + 1000
        or quantity.value == MAX_INT64
        or quantity.milli_value == MAX_INT64
    )


@given(st.text(max_size=20))
def test_no_text_does_anything_but_parse_or_be_refused(text: str) -> None:
    with contextlib.suppress(QuantityError):
        parse_quantity(text)
