"""How many members a user asks for, how long they are to be held, and how long the gang may wait or be broken: the numbers of a group's
spec.

Kubernetes: minMember and scheduleTimeoutSeconds are int32
"""

from __future__ import annotations

from dataclasses import dataclass

from extender.config.durations import DurationError, parse_go_duration
from extender.plugins.coscheduling.spec.field_errors import invalid, unsupported

MAX_MEMBERS = 2**31 - 1
MAX_WAIT_SECONDS = 24 * 3600
MAX_PATIENCE_HOURS = 720
BROKEN_SECONDS = 300.0  # where only what follows is asked for
KEEP, RESTART = "keep", "restart"
_DIGITS = len(str(MAX_MEMBERS))


def parse_count(text: str) -> int | None:
    """A number from 0 to 2^31-1 in ASCII digits; None for anything else."""
    if len(text) > _DIGITS or not text.isascii() or not text.isdigit():
        return None
    number = int(text)
    return number if number <= MAX_MEMBERS else None


def parse_minimum(text: str) -> int:
    """Of a label or an annotation. Raises FieldError."""
    number = parse_count(text)
    if not number:
        raise invalid(text, "must be a number greater than or equal to 1")
    return number


def check_minimum(number: int) -> int:
    """Of a field. Raises FieldError."""
    if number < 1:
        raise invalid(number, "must be greater than or equal to 1")
    if number > MAX_MEMBERS:
        raise invalid(number, f"must be less than or equal to {MAX_MEMBERS}")
    return number


def check_wait_seconds(seconds: int) -> int:
    """0 is the scheduler's own setting. Raises FieldError."""
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise invalid(seconds, f"must be between 0 and {MAX_WAIT_SECONDS}, inclusive")
    return seconds


@dataclass(frozen=True, slots=True)
class Patience:
    """In seconds, None for ever: how long the gang may run with fewer than minMember, and how long it may wait before it comes behind
    others of its priority. restarts: what is left of a broken gang is evicted, so that its controller begins again."""

    broken_after: float | None = None
    restarts: bool = False
    give_up_after: float | None = None


NO_PATIENCE = Patience()


def patience_of(broken_after: float | None, when_broken: str | None, give_up_after: float | None) -> Patience:
    """None for what is not asked for."""
    restarts = when_broken == RESTART
    return Patience(broken_after or (BROKEN_SECONDS if restarts else None), restarts, give_up_after)


def parse_patience(text: str) -> float:
    """Seconds of Go's `1h30m` or `90s`. Raises FieldError."""
    try:
        seconds = parse_go_duration(text)
    except DurationError:
        raise invalid(text, "must be a duration, such as 5m") from None
    if not 1 <= seconds <= MAX_PATIENCE_HOURS * 3600:
        raise invalid(text, f"must be between 1s and {MAX_PATIENCE_HOURS}h, inclusive")
    return seconds


def parse_when_broken(text: str) -> str:
    """Raises FieldError."""
    if text not in (KEEP, RESTART):
        raise unsupported(text, (KEEP, RESTART))
    return text
