"""Go durations, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.config.durations import DurationError, go_duration, parse_go_duration

PAIRS = [
    (0, "0s"),
    (10, "10s"),
    (60, "1m0s"),
    (90, "1m30s"),
    (3600, "1h0m0s"),
    (3605, "1h0m5s"),
    (86400, "24h0m0s"),
    (0.5, "500ms"),
    (1.5, "1.5s"),
    (0.0015, "1.5ms"),
    (0.0000015, "1.5µs"),
    (0.000000007, "7ns"),
    (61.25, "1m1.25s"),
    (-90, "-1m30s"),
]


@pytest.mark.parametrize(("seconds", "text"), PAIRS, ids=[text for _, text in PAIRS])
def test_go_writes_it_so_and_reads_it_back(seconds: float, text: str) -> None:
    assert go_duration(seconds) == text
    assert parse_go_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("+5s", 5), (".5s", 0.5), ("1.s", 1), ("1h2m3s4ms", 3723.004), ("3us", 0.000003), ("1m1m", 120)],
)
def test_go_reads_these_too(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("10", 'time: missing unit in duration "10"'),
        ("10 s", 'time: invalid duration "10 s"'),
        ("1d", 'time: invalid duration "1d"'),
        (".s", 'time: invalid duration ".s"'),
        ("\u0661s", 'time: invalid duration "\u0661s"'),
        ("-", 'time: invalid duration "-"'),
        ("9999999999h", 'time: invalid duration "9999999999h"'),
    ],
)
def test_go_refuses(text: str, message: str) -> None:
    with pytest.raises(DurationError) as caught:
        parse_go_duration(text)
    assert str(caught.value) == message


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_what_is_written_is_read_back(microseconds: int) -> None:
    seconds = microseconds / 10**6
    assert parse_go_duration(go_duration(seconds)) == pytest.approx(seconds, abs=1e-6)
