"""The connections of one listener that nobody is answering: idle ones, and those whose request is still coming in.

Where the listener is nearly full the one that has waited longest makes room, so that silent and slow clients never keep
out a caller that has something to say. Used from the worker's event loop only.
"""

from __future__ import annotations

from typing import Protocol


class Connection(Protocol):
    def hang_up(self) -> None: ...


class WaitingConnections:
    def __init__(self) -> None:
        self._waiting: dict[Connection, None] = {}  # in the order in which they began to wait

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, connection: Connection) -> None:
        self._waiting[connection] = None

    def discard(self, connection: Connection) -> None:
        """It is being answered now, or it has gone."""
        self._waiting.pop(connection, None)

    def hang_up_oldest(self) -> bool:
        """False where all are being answered."""
        for connection in self._waiting:
            break
        else:
            return False
        del self._waiting[connection]
        connection.hang_up()
        return True
