"""`gang-extender` that a test can ask about its books while it runs: `python -m tests.e2e.asked_extender FOLDER serve ...`.

A question is a file in the folder; the answer is every entry of the gangs' books that should not be there or is missing, by the rules of
tests/unit/plugins/coscheduling/bookkeeping.py, and every lock of the event loop that was taken on a native thread. Failpoints are armed
and disarmed the same way, without a restart. Used by conftest, which asks after each story, and by fault runs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

POLL_SECONDS = 0.05
LOOKS, BETWEEN_SECONDS = 3, 0.5  # what is wrong in one look alone was on its way
ASK, ANSWER, FAILPOINTS, REACHED = "ask", "answer", "failpoints", "reached"


class Books:
    """The test's side. One question at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.arm("")

    def wrong(self, within: float = 15.0) -> list[str] | None:
        """A sentence for each entry; None where no answer came."""
        self._number += 1
        asked = f"{time.monotonic()} {self._number}"  # an answer to a question of before is none
        _write(self._folder / ASK, asked)
        until = time.monotonic() + within
        while time.monotonic() < until:
            with suppress(OSError, ValueError):
                answer = json.loads((self._folder / ANSWER).read_text())
                if answer["asked"] == asked:
                    found: list[str] = answer["wrong"]
                    return found
            time.sleep(POLL_SECONDS)
        (self._folder / ASK).unlink(missing_ok=True)
        return None

    def arm(self, failpoints: str) -> None:
        """As the environment variable has them; nothing disarms all. In force after POLL_SECONDS."""
        if failpoints:
            with suppress(FileNotFoundError):
                (self._folder / REACHED).rmdir()
        _write(self._folder / FAILPOINTS, failpoints)

    def reached(self) -> float | None:
        """When one was first reached since they were armed; None: not yet."""
        with suppress(FileNotFoundError):
            return (self._folder / REACHED).stat().st_mtime
        return None


def note_reached(folder: Path) -> None:
    """The first counts. A folder, for the log may be blocked, the wall clock moved, and no descriptor left."""
    with suppress(OSError):
        (folder / REACHED).mkdir()


def _write(file: Path, text: str) -> None:
    fresh = file.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(file)


class Answers:
    """The extender's side, from its first plugin on, in a thread of its own."""

    def __init__(self, folder: Path, wrong: Callable[[], Iterable[str]], arm: Callable[[str], None]) -> None:
        self._folder = folder
        self._wrong = wrong
        self._arm = arm
        self._armed = ""

    def run(self) -> None:
        while True:
            self.look()
            time.sleep(POLL_SECONDS)

    def look(self) -> None:
        with suppress(OSError):
            self._take_failpoints((self._folder / FAILPOINTS).read_text())
        ask = self._folder / ASK
        with suppress(OSError):  # there is none, or no descriptor to look
            asked = ask.read_text()
            ask.unlink()
            _write(self._folder / ANSWER, json.dumps({"asked": asked, "wrong": self._lasting()}))

    def _take_failpoints(self, text: str) -> None:
        if text != self._armed:
            self._armed = text
            self._arm(text)

    def _lasting(self) -> list[str]:
        found = self._once()
        for _ in range(LOOKS - 1):
            if not found:
                break
            time.sleep(BETWEEN_SECONDS)
            again = set(self._once())
            found = [each for each in found if each in again]
        return found

    def _once(self) -> list[str]:
        try:
            return list(self._wrong())
        except Exception as error:  # a rule that cannot be asked is wrong too
            return [f"the books cannot be read: {error!r}"]


def install(folder: Path) -> None:
    """Before the extender is built: each Coscheduling plugin is asked from then on."""
    from extender.server import serve as serve  # isort: skip  - patches: everything else comes after
    import threading

    from extender import failpoints
    from extender.plugins.coscheduling.plugin import Coscheduling
    from tests.native_threads import of_the_event_loop

    plugins: list[Coscheduling] = []
    taken = of_the_event_loop()

    def arm(text: str) -> None:
        setattr(failpoints, "_asked", failpoints.parsed(text))  # noqa: B010

    fail: Any = getattr(failpoints, "_fail")  # noqa: B009

    def noted(point: str, action: Any) -> None:
        note_reached(folder)
        fail(point, action)

    setattr(failpoints, "_fail", noted)  # noqa: B010

    def wrong() -> Iterable[str]:
        from tests.unit.plugins.coscheduling.bookkeeping import wrong_entries

        locks = [f"a lock was taken on a native thread: {place}" for place in taken.places]
        return [*locks, *(each for plugin in plugins for each in wrong_entries(plugin))]

    answers = Answers(folder, wrong, arm)
    init: Any = Coscheduling.__init__

    def remembered(self: Coscheduling, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        plugins.append(self)
        if len(plugins) == 1:
            answers.look()
            threading.Thread(target=answers.run, name="answers", daemon=True).start()

    setattr(Coscheduling, "__init__", remembered)  # noqa: B010


def main(folder: str, *arguments: str) -> int:
    install(Path(folder))
    from extender.cli import main as command

    return command.main(arguments)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
