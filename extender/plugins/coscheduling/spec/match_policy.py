"""Which members count towards minMember, as an annotation says.

`quorum` applies the policy. The words are Koordinator's.
Koordinator: apis/extension/coscheduling.go (AnnotationGangMatchPolicy)
"""

from __future__ import annotations

from enum import StrEnum

from extender.plugins.coscheduling.spec.field_errors import unsupported


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
