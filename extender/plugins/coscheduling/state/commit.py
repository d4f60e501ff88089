"""The one moment at which a gang starts: all its holds are lifted, or none.

Permit of the member that completes the quorum makes a Commit, lifts every hold and then decides it; PreBind of each
member asks it. A hold that was decided otherwise in between (its caller left, its time was up) calls the whole thing off.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from extender.plugins.coscheduling.spec.start_record import StartRecord


class Commit:
    """Undecided -> begun | called off, once. Safe to ask from any thread."""

    __slots__ = ("_begun", "_decided", "group", "size")

    def __init__(self, group: str, size: int) -> None:
        self.group = group
        self.size = size
        self._decided = threading.Event()
        self._begun = False

    def decide(self, begun: bool) -> None:
        self._begun = begun
        self._decided.set()

    @property
    def begun(self) -> bool:
        """Whether it was decided, and for a start. Does not wait."""
        return self._decided.is_set() and self._begun

    def wait(self) -> bool:
        """True if the gang starts. The decision follows the lifting of the holds at once, so nobody waits long."""
        self._decided.wait()
        return self._begun


@dataclass(frozen=True, slots=True)
class Start:
    """What is remembered of one, until its quorum is on nodes. members: UIDs of those that it was decided for."""

    record: StartRecord
    members: frozenset[str]
