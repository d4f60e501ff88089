"""Standard output whose reader may leave at any time, as `head` does when it has seen enough.

main ends every command by it, and demo, which prints the output of another process. Counterpart: what SIGPIPE does to a program
in C, which Python ignores.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import signal
import sys

CLOSED = 128 + signal.SIGPIPE
"""The exit code that a shell shows for a program whose output was closed."""
INTERRUPTED = 128 + signal.SIGINT
CANNOT_WRITE = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO))
"""Of an OSError that names no file. No command writes to a file of its own."""


def provide() -> None:
    """A program started without one (`>&-`) gets one that is never read, before a file or socket gets its descriptor. What the locale's
    encoding lacks is written as Python writes it: names and messages of objects are UTF-8 whatever the terminal shows."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for as long as the process lives
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def has_unicode() -> bool:
    """Whether every character can be written as it is."""
    return (sys.stdout.encoding or "utf-8").lower().startswith("utf")


def flush() -> None:
    """Raises OSError for what cannot be written, here, where it can still be answered: at the interpreter's own end it could not."""
    sys.stdout.flush()


def give_up() -> None:
    """Flushes, or if that fails sends what is still buffered nowhere: the interpreter's last flush would fail on it once more."""
    try:
        flush()
    except OSError:
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
