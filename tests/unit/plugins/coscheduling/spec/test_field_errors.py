"""A wrong value is quoted on one line, cut, in the API server's words."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.spec.field_errors import (
    QUOTED,
    FieldError,
    duplicate,
    invalid,
    quoted,
    too_long,
    too_many,
    unsupported,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("a", "'a'", id="a string has quotes"),
        pytest.param("a\nb\x00", "'a\\nb\\x00'", id="on one line"),
        pytest.param("x" * 200, f"'{'x' * QUOTED}'...", id="cut"),
        pytest.param(-3, "-3", id="a number"),
        pytest.param(10**5000, f"a number of more than {QUOTED} digits", id="a number that Python would not write"),
        pytest.param(["y" * 500], str(["y" * 500])[: 2 * QUOTED], id="anything else, cut too"),
    ],
)
def test_quoted(value: object, text: str) -> None:
    assert quoted(value) == text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(invalid("x", "must be y"), "Invalid value: 'x': must be y", id="invalid"),
        pytest.param(
            unsupported("x", ["a", "b"]), """Unsupported value: 'x': supported values: "a", "b\"""", id="not supported"
        ),
        pytest.param(duplicate("x"), "Duplicate value: 'x'", id="twice"),
        pytest.param(too_long("x", 5), "Too long: 'x': may not be more than 5 characters", id="too long"),
        pytest.param(too_many(64, "groups"), "Too many: must have at most 64 groups", id="not counted to the end"),
        pytest.param(too_many(64, "groups", 70), "Too many: 70: must have at most 64 groups", id="counted"),
    ],
)
def test_texts(error: FieldError, text: str) -> None:
    assert str(error) == text
