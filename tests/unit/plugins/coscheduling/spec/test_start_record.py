"""The record of a start on its pods: read as it was written, and nonsense is none."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.plugins.coscheduling.spec.field_errors import FieldError
from extender.plugins.coscheduling.spec.keys import START
from extender.plugins.coscheduling.spec.start_record import MOST_NAMED, digest, parse_start, start_record

NOW = datetime(2026, 3, 2, 10, 0, 0, 123456, UTC)


@given(st.integers(1, 2**31 - 1), st.sets(st.text(max_size=36), max_size=MOST_NAMED))
def test_a_record_is_read_as_it_was_written_and_fits_its_key(quorum: int, uids: set[str]) -> None:
    record = start_record(NOW, quorum, uids)
    text = record.text()
    assert parse_start(text) == record
    assert len(text) <= START.longest


def test_times_are_written_in_utc() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=2)))
    assert start_record(elsewhere, 2, ()).text() == "2026-03-02T10:00:00.123456Z 2"


def test_members_are_named_by_digests_in_order() -> None:
    assert start_record(NOW, 2, ["b", "a"]).text().rpartition(" ")[2] == ",".join(sorted((digest("a"), digest("b"))))


def test_of_a_large_start_no_members_are_named() -> None:
    assert start_record(NOW, 200, [f"u{number}" for number in range(MOST_NAMED + 1)]).members == frozenset()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday 2",
        "0000-01-01T00:00:00Z 2",
        "9" * 100 + " 2",
        "2026-03-02T10:00:00 2",
        "2026-03-02T10:00:00Z",
        "2026-03-02T10:00:00Z 0",
        f"{NOW.isoformat()} 2 ab",
        f"{NOW.isoformat()} 2 {','.join(['00000000'] * (MOST_NAMED + 1))}",
    ],
)
def test_nonsense_is_no_record(text: str) -> None:
    with pytest.raises(FieldError):
        parse_start(text)
