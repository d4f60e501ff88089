"""What standard output can show: how wide a line is, and whether words have colours. A pipe or a file has neither limit nor colours.

Used by every command that prints for people. No counterpart: kubectl neither folds nor colours.
"""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TextIO


class Colour(Enum):
    """By its number among the terminal's own, so that it is readable on dark and on light."""

    RED = 31
    GREEN = 32
    YELLOW = 33


@dataclass(frozen=True, slots=True)
class Terminal:
    """width: in columns; None where a line is as long as it likes, so that it can be searched for."""

    width: int | None = None
    colours: bool = False

    def paint(self, text: str, colour: Colour | None) -> str:
        """Escape sequences count for no width: what is to be aligned is padded before."""
        return f"\x1b[{colour.value}m{text}\x1b[0m" if self.colours and colour is not None and text else text

    def fold(self, text: str, indent: int = 0, at_most: int | None = None) -> Iterator[str]:
        """The lines of a text that begins at column `indent`, without that indentation; at least one.

        at_most: what would need more lines ends in `...`.
        """
        room = None if self.width is None else max(1, self.width - indent)
        if room is None or len(text) <= room:
            yield text
        else:
            yield from textwrap.wrap(
                text, room, max_lines=at_most, placeholder=" ..." if room > 4 else "", break_on_hyphens=False
            ) or [""]


PLAIN = Terminal()


def printable(text: str) -> str:
    """Control characters, which a terminal would obey, as Python writes them."""
    return text if text.isprintable() else "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def of(stream: TextIO | None = None, environ: Mapping[str, str] = os.environ) -> Terminal:
    """stream: standard output by default. NO_COLOR, if not empty, and TERM=dumb take the colours away (https://no-color.org)."""
    if not (stream or sys.stdout).isatty():
        return PLAIN
    colours = not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"
    return Terminal(shutil.get_terminal_size().columns, colours)
