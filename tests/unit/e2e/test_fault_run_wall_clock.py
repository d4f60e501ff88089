"""The wall clock that a fault run moves."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.fault_run.wall_clock import READ_EVERY_SECONDS, WallClock, moved


def test_a_moved_clock_is_read_again_after_a_moment_and_goes_on_where_it_cannot_be(tmp_path: Path) -> None:
    clock, monotonic = WallClock(tmp_path / "clock"), [0.0]
    now = moved(clock.file, lambda: 1000.0, lambda: monotonic[0])
    assert now() == 1000
    clock.set(-3600)
    assert now() == 1000
    monotonic[0] += READ_EVERY_SECONDS
    assert now() == -2600
    clock.file.unlink()
    monotonic[0] += READ_EVERY_SECONDS
    assert now() == -2600
