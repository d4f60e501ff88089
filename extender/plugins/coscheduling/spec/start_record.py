"""What a start of a gang leaves on each of its pods, in one annotation that comes with the binding.

The GangPermit writes it; `starts` reads it after a restart, to tell members that a start has left behind from others of their group.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from extender.plugins.coscheduling.spec.counts import parse_minimum
from extender.plugins.coscheduling.spec.field_errors import invalid

MOST_NAMED = 128  # members; of a larger start they are known by their age
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class StartRecord:
    """began: also the start's name. quorum: minMember as it was then. members: digests of UIDs; empty where there are too many."""

    began: datetime
    quorum: int
    members: frozenset[str] = frozenset()

    def text(self) -> str:
        """`2026-03-02T10:00:00.123456Z 2 1f3a99b0,77aa0123`."""
        named = ",".join(sorted(self.members))
        return f"{_rfc3339(self.began)} {self.quorum} {named}".rstrip()


def start_record(began: datetime, quorum: int, uids: Collection[str]) -> StartRecord:
    named = frozenset(map(digest, uids)) if len(uids) <= MOST_NAMED else frozenset[str]()
    return StartRecord(began, quorum, named)


def parse_start(text: str) -> StartRecord:
    """Raises FieldError."""
    began, _, rest = text.partition(" ")
    quorum, _, members = rest.partition(" ")
    named = members.split(",") if members else []
    if len(named) > MOST_NAMED or any(len(each) != _DIGITS for each in named):
        raise invalid(text, "must be a time, minMember and digests of members")
    return StartRecord(_parse_time(began), parse_minimum(quorum), frozenset(named))


def digest(uid: str) -> str:
    """Tells the members of one group apart."""
    return f"{zlib.crc32(uid.encode()):0{_DIGITS}x}"


def _rfc3339(began: datetime) -> str:
    return began.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _parse_time(text: str) -> datetime:
    """`2026-03-02T10:00:00.123456Z`. Raises FieldError."""
    try:
        began = datetime.fromisoformat(text)
    except ValueError:
        raise invalid(text, "must be a time as in RFC 3339") from None
    if began.tzinfo is None:
        raise invalid(text, "must be a time with its offset from UTC")
    return began
