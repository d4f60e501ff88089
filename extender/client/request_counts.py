"""What counts the calls of the API server. A server's metrics do; a command of a laptop counts none, and need not load them.

The transport tells of each call, scheduler/factory says what counts. client-go: tools/metrics (RequestResult)
"""

from __future__ import annotations

from collections.abc import Callable

Count = Callable[[str, str], None]
"""The verb; the answer's status, or `error`."""


def _none(verb: str, code: str) -> None:
    """Nothing counts."""


_count: Count = _none


def count_by(count: Count) -> None:
    """For the whole process, as metrics are."""
    global _count
    _count = count


def counted(verb: str, code: str) -> None:
    _count(verb, code)
