"""The connections of one listener, from the moment of accept: strangers, and those whose peer is known.

With TLS a peer is known by an allowed name, before its first request; without, by its first answer. Some places are kept free
while a stranger can be hung up on that has been silent for a moment, the first of them first: so silent and slow clients never keep out a
caller that has something to say. They cost no known one its connection: those have a limit of their own, which leaves strangers room
to become known, and beyond it the one that was answered longest ago goes. Used from the worker's event loop only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

GRACE_SECONDS = 0.1
"""What a caller has between its connection and its first bytes."""


class Connection(Protocol):
    @property
    def receiving(self) -> bool:
        """Whether it is the peer's turn: to shake hands, or to send a request."""
        ...

    def hang_up(self) -> None: ...


class Connections:
    """At most `places`, which is the listener's to see to. One that is hung up on counts as gone."""

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        spare = max(1, places // 10)
        self._most = max(1, places - spare)
        self._most_known = max(1, places - 2 * spare)
        self._clock = clock
        self._strangers: dict[Connection, float] = {}  # in the order of their coming, and when that was
        self._known: dict[Connection, None] = {}  # those first that were answered longest ago

    def __len__(self) -> int:
        return len(self._strangers) + len(self._known)

    def opened(self, connection: Connection) -> None:
        self._strangers[connection] = self._clock()

    def trust(self, connection: Connection) -> None:
        """Its peer is known from now on."""
        if connection in self._strangers:
            del self._strangers[connection]
            self._known[connection] = None

    def answered(self, connection: Connection) -> None:
        """To the end of the line, if its peer is known."""
        if connection in self._known:
            del self._known[connection]
            self._known[connection] = None

    def closed(self, connection: Connection) -> None:
        self._strangers.pop(connection, None)
        self._known.pop(connection, None)

    @property
    def crowded(self) -> bool:
        return len(self) > self._most or len(self._known) > self._most_known

    def make_room(self) -> bool:
        """Hangs up on as many as it takes, or as there are that can be hung up on: those that are being answered stay. Whether it took
        those that have only just come, too, which stay for a moment."""
        while len(self._known) > self._most_known and _hang_up(_silent(self._known), self._known):
            pass
        while len(self) > self._most:
            first = _silent(self._strangers)
            if first is not None and self._clock() - self._strangers[first] < GRACE_SECONDS:
                return True
            if not _hang_up(first, self._strangers):
                break
        return False


def _silent(line: dict[Connection, Any]) -> Connection | None:
    """The first that is; None where it is neither side's turn to speak."""
    return next((connection for connection in line if connection.receiving), None)


def _hang_up(connection: Connection | None, line: dict[Connection, Any]) -> bool:
    if connection is None:
        return False
    del line[connection]
    connection.hang_up()
    return True
