"""Values of Koordinator's annotations, read as what they mean here.

On a pod they make a group that needs no object; on a PodGroup they add to it. Our own keys come first.
Koordinator: apis/extension/coscheduling.go
"""

from __future__ import annotations

from extender.config.durations import DurationError, parse_go_duration
from extender.plugins.coscheduling.spec.counts import MAX_WAIT_SECONDS
from extender.plugins.coscheduling.spec.field_errors import invalid, unsupported

_MODES = ("Strict", "NonStrict")


def parse_waiting_time(text: str) -> int | None:
    """Whole seconds of Go's `1h30m` or `90s`, at least 1; None for none, which is the scheduler's own setting. Raises FieldError."""
    try:
        seconds = parse_go_duration(text)
    except DurationError:
        raise invalid(text, "must be a duration, such as 90s") from None
    if not 0 <= seconds <= MAX_WAIT_SECONDS:
        raise invalid(text, f"must be between 0s and {MAX_WAIT_SECONDS // 3600}h, inclusive")
    return max(1, round(seconds)) if seconds else None


def parse_mode(text: str) -> str:
    """What becomes of held members when one fails. Both modes mean the same: nothing is held here without a plan. Raises FieldError."""
    if text not in _MODES:
        raise unsupported(text, _MODES)
    return text
