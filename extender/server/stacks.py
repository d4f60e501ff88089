"""Where each greenlet and each thread is at this moment, as text: those that wait at the same place are one paragraph.

Used by debug.py. Nothing of a frame but its code is shown: no argument, no local. serve.py hands in the greenlets.
Go: runtime/pprof's goroutine profile with debug=1, which kube-scheduler serves at /debug/pprof/goroutine
"""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType

MOST_PLACES = 200
MOST_NAMES = 10  # of those at one place
OTHER = "(unnamed)"


@dataclass(frozen=True, slots=True)
class Task:
    """Something that runs or waits. frame: its innermost; None before it has begun and once it has ended."""

    name: str
    frame: FrameType | None


Tasks = Callable[[], Iterable[Task]]


def native_threads() -> Iterator[Task]:
    """All threads of the operating system that run Python, but for the one that asks."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        if frame is not sys._getframe():
            yield Task(names.get(ident, OTHER), frame)


def describe(kind: str, tasks: Iterable[Task]) -> str:
    """kind: in the singular. The place where most are comes first."""
    places: dict[tuple[tuple[object, int], ...], list[Task]] = {}
    for task in tasks:
        if task.frame is not None:
            places.setdefault(_place(task.frame), []).append(task)
    ordered = sorted(places.values(), key=lambda here: -len(here))
    count = sum(map(len, ordered))
    lines = [f"{count} {kind}{'s' if count != 1 else ''}", ""]
    for here in ordered[:MOST_PLACES]:
        frame = here[0].frame
        lines += [f"{len(here)} at: {_names(here)}", "".join(traceback.format_stack(frame))]
    if len(ordered) > MOST_PLACES:
        lines.append(f"... and {len(ordered) - MOST_PLACES} places more")
    return "\n".join(lines) + "\n"


def _place(frame: FrameType | None) -> tuple[tuple[object, int], ...]:
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return tuple(found)


def _names(here: Iterable[Task]) -> str:
    names = sorted({task.name for task in here})
    more = f", ... and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more
