"""Durations as Go writes and reads them: 10s, 1m30s, 500ms. Here they are seconds.

The configuration reads them; messages of waiting pods write them. Go: time.ParseDuration, time.Duration.String
"""

from __future__ import annotations

import re
from decimal import Decimal

_NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PIECE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"[+-]?(?:{_PIECE.pattern})+", re.ASCII)
_MAX_TEXT = 64
_MAX_NANOSECONDS = 2**63 - 1


class DurationError(ValueError):
    """A text that is no duration."""


def parse_go_duration(text: str) -> float:
    """Seconds. Raises DurationError in Go's words."""
    if text in ("0", "+0", "-0"):
        return 0.0
    if len(text) > _MAX_TEXT or not _WHOLE.fullmatch(text):
        problem = "missing unit in duration" if re.fullmatch(r"[+-]?[0-9.]+", text[:_MAX_TEXT]) else "invalid duration"
        raise DurationError(f'time: {problem} "{text[:_MAX_TEXT]}"')
    total = sum(int(Decimal(amount) * _NANOSECONDS[unit]) for amount, unit in _PIECE.findall(text))
    if total > _MAX_NANOSECONDS:
        raise DurationError(f'time: invalid duration "{text}"')
    return (-total if text[0] == "-" else total) / 10**9


def go_duration(seconds: float) -> str:
    """10s, 1m0s, 1h0m5s, 1.5s, 500ms, 1.5µs, 0s."""
    nanoseconds = round(seconds * 10**9)
    if nanoseconds == 0:
        return "0s"
    sign = "-" if nanoseconds < 0 else ""
    nanoseconds = abs(nanoseconds)
    for unit, size in (("ns", 10**3), ("µs", 10**6), ("ms", 10**9)):
        if nanoseconds < size:
            return f"{sign}{_decimal(nanoseconds, size // 1000)}{unit}"
    minutes, rest = divmod(nanoseconds, 60 * 10**9)
    hours, minutes_left = divmod(minutes, 60)
    text = f"{hours}h" if hours else ""
    text += f"{minutes_left}m" if minutes else ""
    return f"{sign}{text}{_decimal(rest, 10**9)}s"


def _decimal(amount: int, one: int) -> str:
    whole, fraction = divmod(amount, one)
    digits = str(fraction).zfill(len(str(one)) - 1).rstrip("0") if fraction else ""
    return f"{whole}.{digits}" if digits else str(whole)
