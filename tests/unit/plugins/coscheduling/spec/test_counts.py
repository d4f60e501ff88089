"""Numbers that users write: int32 and no more, waits of a day and no longer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from extender.plugins.coscheduling.spec.counts import (
    MAX_MEMBERS,
    MAX_WAIT_SECONDS,
    NO_PATIENCE,
    Patience,
    check_minimum,
    check_wait_seconds,
    parse_count,
    parse_minimum,
    parse_patience,
    parse_when_broken,
    patience_of,
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


@pytest.mark.parametrize(
    ("text", "seconds"), [("1s", 1.0), ("5m", 300.0), ("1h30m", 5400.0), ("720h", 2_592_000.0), ("1500ms", 1.5)]
)
def test_a_patience_is_a_duration(text: str, seconds: float) -> None:
    assert parse_patience(text) == seconds


@pytest.mark.parametrize("text", ["0", "999ms", "-5m", "720h1s", "5", "soon", "9" * 40 + "h"])
def test_a_patience_is_neither_none_nor_without_end(text: str) -> None:
    with pytest.raises(FieldError, match=r"must be (a duration, such as 5m|between 1s and 720h, inclusive)"):
        parse_patience(text)


@pytest.mark.parametrize(
    ("given", "patience"),
    [
        pytest.param((None, None, None), NO_PATIENCE, id="nothing"),
        pytest.param((60.0, None, None), Patience(60.0), id="it says when it is broken"),
        pytest.param((None, "restart", None), Patience(300.0, True), id="what follows, after a while of our own"),
        pytest.param((60.0, "restart", 9.0), Patience(60.0, True, 9.0), id="all"),
        pytest.param((None, "keep", None), NO_PATIENCE, id="the default in so many words"),
    ],
)
def test_what_is_asked_of_a_gang_that_is_broken(
    given: tuple[float | None, str | None, float | None], patience: Patience
) -> None:
    assert patience_of(*given) == patience


def test_what_becomes_of_a_broken_gang_is_a_word_out_of_two() -> None:
    assert [parse_when_broken(text) for text in ("keep", "restart")] == ["keep", "restart"]
    with pytest.raises(FieldError, match='Unsupported value: \'evict\': supported values: "keep", "restart"'):
        parse_when_broken("evict")
