"""When the start of a pod's batch began, as its annotation says.

`batches` names batches, and looks for one that a restart cut short.
"""

from __future__ import annotations

from datetime import UTC, datetime

from extender.plugins.coscheduling.spec.field_errors import invalid


def parse_batch(text: str) -> datetime:
    """`2026-03-02T10:00:00.123456Z`. Raises FieldError."""
    try:
        began = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(text, "must be a time as in RFC 3339") from None
    if began.tzinfo is None:
        raise invalid(text, "must be a time with its offset from UTC")
    return began


def batch_name(began: datetime) -> str:
    """Of a batch that begins then. Sorts by time."""
    return began.astimezone(UTC).isoformat().replace("+00:00", "Z")
