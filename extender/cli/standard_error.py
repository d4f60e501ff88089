"""What a command says beside its output: what went wrong, and warnings.

Used by main and by every command that warns. Counterpart: standard_output; what people read there goes through terminal.
"""

from __future__ import annotations

import sys

from extender.cli.terminal import printable
from extender.redaction import redacted


def say(*lines: object) -> None:
    """Each is one line without secrets, and nothing in it is what a terminal obeys: a file, a tenant's object or another program may have
    written it."""
    for line in lines:
        print(printable(redacted(str(line))), file=sys.stderr)
