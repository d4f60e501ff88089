"""Until when the calls of a thread to the API server have to be over, where the one that makes them has a deadline of its own.

The bind verb and bind_pod set it, Transport obeys it. Go: context.WithTimeout
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_UNTIL: ContextVar[float] = ContextVar("until", default=math.inf)  # by time.monotonic


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Calls of this thread inside of it end within so many seconds; a limit that is set already is not extended."""
    token = _UNTIL.set(min(_UNTIL.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _UNTIL.reset(token)


def seconds_left() -> float:
    """Infinite where there is no limit; not positive where it has passed."""
    return _UNTIL.get() - time.monotonic()
