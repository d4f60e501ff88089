"""Which members count towards minMember, and to which batch a member belongs, as annotations say.

`quorum` applies the policy, `batches` names batches and looks for one that a restart cut short. The words are Koordinator's.
Koordinator: apis/extension/coscheduling.go (AnnotationGangMatchPolicy)
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from extender.plugins.coscheduling.spec.field_errors import invalid, unsupported


class MatchPolicy(StrEnum):
    """waiting-and-running is scheduler-plugins' way, and the default.

    only-waiting: a gang that runs starts further members in batches of minMember, as if each batch were a gang.
    once-satisfied: after its first start every further or replaced member passes as a single pod.
    """

    ONLY_WAITING = "only-waiting"
    WAITING_AND_RUNNING = "waiting-and-running"
    ONCE_SATISFIED = "once-satisfied"


def parse_match_policy(text: str) -> MatchPolicy:
    """Raises FieldError."""
    if text not in set(MatchPolicy):
        raise unsupported(text, MatchPolicy)
    return MatchPolicy(text)


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
