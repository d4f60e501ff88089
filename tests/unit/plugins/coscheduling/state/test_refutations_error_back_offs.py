"""Members whose bind call failed: when kube-scheduler brings each back, and until when none is planned for it."""

from __future__ import annotations

import pytest

from extender.plugins.coscheduling.state.refutations import ROUNDING_SECONDS, ErrorBackOffs


@pytest.fixture
def errors() -> ErrorBackOffs:
    return ErrorBackOffs()


def test_each_error_in_a_row_keeps_a_member_away_longer_up_to_ten_seconds(errors: ErrorBackOffs) -> None:
    waits = [errors.failed("p", 100.0) - 100.0 for _ in range(6)]
    assert waits == [seconds + ROUNDING_SECONDS for seconds in (1, 2, 4, 8, 10, 10)]


def test_a_member_is_away_until_it_is_back(errors: ErrorBackOffs) -> None:
    back = errors.failed("p", 100.0)
    later = errors.failed("q", 101.0)
    assert (errors.away(100.0), errors.back_at(100.0)) == ({"p", "q"}, back)
    assert (errors.away(back), errors.back_at(back)) == ({"q"}, later), "it is there by then"
    assert (errors.away(later), errors.back_at(later)) == (set(), None)


def test_a_member_that_comes_is_away_no_more_and_its_next_error_is_one_more_in_a_row(errors: ErrorBackOffs) -> None:
    errors.failed("p", 100.0)
    errors.came("p")
    assert (errors.away(100.0), errors.back_at(100.0)) == (set(), None)
    assert errors.failed("p", 100.0) == 102.0 + ROUNDING_SECONDS


@pytest.mark.parametrize(
    "way", [pytest.param("refused", id="a filter refuses it"), pytest.param("forget", id="it goes")]
)
def test_errors_are_counted_anew_once_it_is_parked_or_gone(way: str, errors: ErrorBackOffs) -> None:
    for uid in "ppq":
        errors.failed(uid, 100.0)
    getattr(errors, way)("p")
    assert errors.away(100.0) == {"q"}
    assert errors.failed("p", 100.0) == 101.0 + ROUNDING_SECONDS


def test_a_member_without_an_error_changes_nothing(errors: ErrorBackOffs) -> None:
    errors.failed("p", 100.0)
    for step in (errors.came, errors.refused, errors.forget):
        step("other")
    assert errors.away(100.0) == {"p"}
    assert errors.failed("p", 100.0) == 102.0 + ROUNDING_SECONDS
