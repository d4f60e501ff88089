"""Tables for people: aligned columns, the last one folded to the terminal, words of state in colour; names in natural order.

Used by every command that lists things. kubectl: cli-runtime/pkg/printers/tableprinter.go
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from extender.cli.terminal import PLAIN, Colour, Terminal, printable

LEAST_ROOM = 30  # of the last column; where there is less, a text stands below its row
BELOW = 4  # how far it is indented there
MOST_LINES = 3  # of a text on a terminal; the whole of it is in a pipe, in JSON and in YAML

COLOURS = {
    "Scheduled": Colour.GREEN,
    "Bound": Colour.GREEN,
    "Pending": Colour.YELLOW,
    "WaitingOnPermit": Colour.YELLOW,
    "Gathering": Colour.YELLOW,
    "Preempted": Colour.RED,
    "Denied": Colour.RED,
    "TimedOut": Colour.RED,
    "Invalid": Colour.RED,
    "Quarantined": Colour.RED,
}
"""Of cells that are such a word and nothing else."""


def natural(name: str) -> tuple[tuple[tuple[str, int, str], ...], str]:
    """A sort key: runs of digits count as numbers, so that n2 comes before n10."""
    runs = re.findall(r"([^0-9]*)0*([0-9]*)", name)
    return tuple((text, len(digits), digits) for text, digits in runs), name


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], terminal: Terminal = PLAIN, gap: int = 3
) -> Iterator[str]:
    """gap: blanks between columns. What stands in a cell may have been written by a tenant: it is one line of text."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads) - 1)]
    indent = sum(widths) + gap * len(widths)
    below = terminal.width is not None and terminal.width - indent < LEAST_ROOM
    for row in (heads, *rows):
        cells = [terminal.paint(cell.ljust(width), COLOURS.get(cell)) for cell, width in zip(row, widths)]
        if below and " " in row[-1]:
            yield (" " * gap).join(cells).rstrip()
            folded = [" " * BELOW + line for line in terminal.fold(row[-1], BELOW, MOST_LINES)]
        else:
            first, *folded = terminal.fold(row[-1], indent, MOST_LINES)
            yield (" " * gap).join([*cells, first]).rstrip()
            folded = [" " * indent + line for line in folded]
        yield from folded
