"""What is drawn of a fault run: the most of each ten seconds, gaps where the program was away, and shares of each minute's answers."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.e2e.fault_run.plot import draw, peaks, shares


def test_of_each_piece_of_time_the_most_is_drawn_and_a_gap_where_there_was_no_sample() -> None:
    samples = [{"at": at, "bytes": value} for at, value in ((100, 2), (109, 4), (131, 6))]
    minutes, values = peaks(samples, "bytes", began=100, unit=2)
    assert minutes == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6])
    assert (values[0], values[3]) == (2, 3)
    assert all(map(math.isnan, values[1:3]))


def test_a_sample_without_the_metric_is_no_sample() -> None:
    assert peaks([{"at": 100}], "bytes", began=100) == ([], [])


def test_a_share_is_of_the_calls_that_began_in_that_minute() -> None:
    calls = [{"began": 100 + second, "ended": 100 + second + second / 100} for second in range(120)]
    minutes, values = shares(calls, 0.5, began=100)
    assert minutes == [0, 1]
    assert values == pytest.approx([0.29, 0.89])


def test_a_folder_without_samples_is_no_run(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with pytest.raises(ValueError, match="is no fault run"):
        draw(tmp_path, tmp_path / "plot.svg")
