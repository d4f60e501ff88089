"""The connections of one listener, those first that were answered longest ago.

Where the listener is nearly full, the first of them that we wait for (an idle one, or one whose request is still coming
in) makes room, so that silent and slow clients never keep out a caller that has something to say. Used from the worker's
event loop only.
"""

from __future__ import annotations

from typing import Protocol


class Connection(Protocol):
    @property
    def receiving(self) -> bool:
        """Whether it is the peer's turn."""
        ...

    def hang_up(self) -> None: ...


class Connections:
    def __init__(self) -> None:
        self._in_order: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._in_order)

    def opened(self, connection: Connection) -> None:
        self._in_order[connection] = None

    def answered(self, connection: Connection) -> None:
        """Its peer is one that makes sense: to the end of the line."""
        if connection in self._in_order:
            del self._in_order[connection]
            self._in_order[connection] = None

    def closed(self, connection: Connection) -> None:
        self._in_order.pop(connection, None)

    def hang_up_oldest(self) -> bool:
        """False where all are being answered."""
        for connection in self._in_order:
            if connection.receiving:
                break
        else:
            return False
        del self._in_order[connection]
        connection.hang_up()
        return True
