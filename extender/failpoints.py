"""Named points at which a fault run makes the extender fail or stand still; nothing happens at them unless the environment asks for it.

GANG_EXTENDER_FAILPOINTS=holds-lifted=exit;relist=sleep(3) ends the process at the one, as SIGKILL would, and sleeps at the other;
`raise` raises. Each is where a gang is half on its way, so that a program is killed exactly there and not by luck. For tests alone:
docs/fault-runs.md. Counterpart: gofail in etcd.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

log = logging.getLogger(__name__)

STDERR = 2
VARIABLE = "GANG_EXTENDER_FAILPOINTS"
POINTS = {
    "slots-noted": "a gang is planned, and its places are kept for it",
    "holds-lifted": "the holds of a gang are lifted, and that it starts is not decided yet",
    "before-binding": "a member is about to be bound; others of its gang may be",
    "binding-written": "a Binding is written, and PostBind has not run",
    "nominated": "a gated member has its nomination, and its gate still",
    "victim-told": "one victim is evicted, and the next is not",
    "relist": "a list has been read, and not taken in",
}
Action = str | float
_ACTION = re.compile(r"exit|raise|sleep\((?P<seconds>\d{1,4}(?:\.\d{1,3})?)\)")


class FailpointError(Exception):
    """Raised at a point that is to raise; or the variable cannot be read."""


def parsed(text: str) -> dict[str, Action]:
    """Point -> what is to happen there: "exit", "raise", or seconds of sleep. Raises FailpointError, which names the part that is wrong."""
    found: dict[str, Action] = {}
    for part in filter(None, text.split(";")):
        point, _, action = part.partition("=")
        if point not in POINTS:
            raise FailpointError(f"{VARIABLE}: {point!r} is no failpoint; there are {', '.join(POINTS)}")
        match = _ACTION.fullmatch(action)
        if match is None:
            raise FailpointError(f"{VARIABLE}: {part!r}: exit, raise or sleep(seconds) is to follow")
        found[point] = float(match["seconds"]) if match["seconds"] else action
    return found


_asked: Mapping[str, Action] = parsed(os.environ.get(VARIABLE, ""))


def reached(point: str) -> None:
    """Does what was asked for there; costs one look into an empty dict where nothing was."""
    if _asked and (action := _asked.get(point)) is not None:
        _fail(point, action)


def _fail(point: str, action: Action) -> None:
    if action == "exit":
        with suppress(OSError):  # by itself: the thread that writes the log ends with the process
            os.write(STDERR, f"failpoint reached point={point} action=exit\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)
    log.warning("failpoint reached point=%s action=%s", point, action)
    if isinstance(action, float):
        time.sleep(action)
    else:
        raise FailpointError(f"failpoint {point}")
