"""The wall clock of one extender, which a fault run moves: `python -m tests.e2e.fault_run.wall_clock FILE serve ...` is the extender
whose `time.time()` is ahead by the seconds in that file.

Monotonic clocks go on as they are, and `datetime.now()` too. libfaketime moves all, but Python's sleep fails under it (EINVAL).
It can be asked, too: see asked_extender. Used by `rig`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

READ_EVERY_SECONDS = 0.2


class WallClock:
    """The file, as the fault run writes it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        file.parent.mkdir(parents=True, exist_ok=True)
        self.set(0)

    def set(self, seconds: float) -> None:
        """How far it is ahead."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{seconds:g}")
        fresh.replace(self.file)


def moved(file: Path, wall: Callable[[], float], monotonic: Callable[[], float]) -> Callable[[], float]:
    """wall, by so much ahead; the file is read again after a moment, or later where it cannot be: no other clock needs a descriptor."""
    ahead, due = 0.0, 0.0

    def now() -> float:
        nonlocal ahead, due
        if monotonic() >= due:
            due = monotonic() + READ_EVERY_SECONDS
            with suppress(OSError):
                ahead = float(file.read_text())
        return wall() + ahead

    return now


def main(file: str, *arguments: str) -> int:
    setattr(time, "time", moved(Path(file), time.time, time.monotonic))  # noqa: B010
    # now: what takes the clock as a default does so when it is imported
    from extender.cli import main as command
    from tests.e2e.asked_extender import install

    install(Path(file).parent)

    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
