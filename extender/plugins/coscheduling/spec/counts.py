"""How many members a user asks for, and how long they are to be held: the numbers of a group's spec.

Kubernetes: minMember and scheduleTimeoutSeconds are int32
"""

from __future__ import annotations

from extender.plugins.coscheduling.spec.field_errors import invalid

MAX_MEMBERS = 2**31 - 1
MAX_WAIT_SECONDS = 24 * 3600
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
