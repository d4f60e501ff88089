"""Numbers that users write: int32 and no more, waits of a day and no longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.spec.counts import (
    MAX_MEMBERS,
    MAX_WAIT_SECONDS,
    check_minimum,
    check_wait_seconds,
    parse_count,
    parse_minimum,
)
from extender.plugins.coscheduling.spec.field_errors import FieldError


@pytest.mark.parametrize(
    ("text", "number"),
    [
        pytest.param("0", 0, id="none"),
        pytest.param("2147483647", MAX_MEMBERS, id="the largest"),
        pytest.param("2147483648", None, id="one more is no int32"),
        pytest.param("0000000001", 1, id="leading zeros"),
        pytest.param("1" * 5000, None, id="more digits than Python converts"),
        pytest.param("-1", None, id="a sign"),
        pytest.param("1.5", None, id="a fraction"),
        pytest.param("\u0663", None, id="a digit that is not ASCII"),
        pytest.param("\u00b2", None, id="a digit that is no number"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_parse_count(text: str, number: int | None) -> None:
    assert parse_count(text) == number


@pytest.mark.parametrize("text", ["0", "", "two", "-3"])
def test_a_minimum_is_at_least_one(text: str) -> None:
    with pytest.raises(FieldError, match="must be a number greater than or equal to 1"):
        parse_minimum(text)


@pytest.mark.parametrize(
    ("check", "number", "valid"),
    [
        pytest.param(check_minimum, 1, True, id="one member"),
        pytest.param(check_minimum, 0, False, id="no member"),
        pytest.param(check_minimum, MAX_MEMBERS, True, id="the most members"),
        pytest.param(check_minimum, MAX_MEMBERS + 1, False, id="more than that"),
        pytest.param(check_wait_seconds, 0, True, id="the scheduler's own wait"),
        pytest.param(check_wait_seconds, MAX_WAIT_SECONDS, True, id="a day"),
        pytest.param(check_wait_seconds, MAX_WAIT_SECONDS + 1, False, id="longer"),
        pytest.param(check_wait_seconds, -1, False, id="less than none"),
    ],
)
def test_numbers_of_fields(check: Callable[[int], int], number: int, valid: bool) -> None:
    if valid:
        assert check(number) == number
    else:
        with pytest.raises(FieldError, match=f"^Invalid value: {number}: must be"):
            check(number)
