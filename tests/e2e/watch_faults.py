"""What befalls the lines of a watch on their way: one comes twice, two change places, bookmarks are lost.

Two that change places are passed on together, so that no reader resumes behind the later one before it has read the earlier.
Used by faulty_connection; each stream has its own.
"""

from __future__ import annotations

import random

BOOKMARK = b'{"type":"BOOKMARK"'


class WatchFaults:
    """share: of the lines that something befalls."""

    def __init__(self, dice: random.Random, share: float) -> None:
        self._dice = dice
        self._share = share
        self._rest = b""  # of a line that is not complete yet

    def treat(self, piece: bytes) -> bytes:
        """What is passed on now: whole lines."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        passed: list[bytes] = []
        while lines:
            line = lines.pop(0)
            befallen = self._dice.random() < self._share
            if befallen and line.startswith(BOOKMARK):
                continue
            if befallen and lines and self._dice.random() < 0.5:
                passed += [lines.pop(0), line]
            else:
                passed += [line] * (2 if befallen else 1)
        return b"".join(line + b"\n" for line in passed)
