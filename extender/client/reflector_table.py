"""What a reflector does next, for each thing that can come of a list, a check or a watch: its state machine, without I/O.

client/reflector acts on the table. A list takes everything in; a check compares the server's version with the newest
that was seen; a watch goes on from there.
kube-scheduler: k8s.io/client-go/tools/cache/reflector.go (ListAndWatchWithContext, handleAnyWatch)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from extender.client.errors import (
    ApiError,
    ConnectionFailedError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    ResourceVersionTooLargeError,
    TimedOutError,
    TooManyRequestsError,
    UnauthorizedError,
    UnreadableError,
)


class Doing(Enum):
    LIST = "list"
    CHECK = "check"
    WATCH = "watch"


class Input(Enum):
    """The words are those of the metric's label `reason` as well."""

    DONE = "done"  # all pages are there; the version is no lower than ours; the server has ended the watch in its time
    QUIET = "quiet"  # so too, but nothing came in the watch, no bookmark either
    BRIEF = "brief"  # a watch that ended at once
    BEHIND = "behind"  # the server's version is lower than what was seen: its etcd was restored
    GONE = "gone"  # 410, as the answer or in the watch
    UNAUTHORIZED = "unauthorized"  # 401, after the credentials were read again
    FORBIDDEN = "forbidden"  # 403
    NOT_FOUND = "not_found"  # 404: the kind is not served
    TOO_MANY = "too_many_requests"  # 429
    FAILED = "failed"  # 5xx
    REFUSED = "refused"  # any other 4xx
    CUT = "cut"  # no connection, or a cut one, in the middle of an event too
    SILENT = "silent"  # nothing came for longer than the call may take
    UNREADABLE = "unreadable"  # no JSON, or nothing that was asked for
    UNEXPECTED = "unexpected"  # an exception of ours


class Wait(Enum):
    NONE = "none"
    ONCE = "none, but a back-off where a wait was spared less than 10 s ago"
    BACK_OFF = "a back-off, and never less than Retry-After"
    LATER = "10 s, or a back-off while what was last seen still counts"


@dataclass(frozen=True, slots=True)
class Then:
    doing: Doing
    wait: Wait


_LIST, _CHECK, _WATCH = Doing.LIST, Doing.CHECK, Doing.WATCH

_AFTER_A_LIST: Mapping[Input, Then] = {
    Input.DONE: Then(_WATCH, Wait.NONE),
    Input.BEHIND: Then(_LIST, Wait.BACK_OFF),
    Input.GONE: Then(_LIST, Wait.ONCE),
    Input.UNAUTHORIZED: Then(_LIST, Wait.BACK_OFF),
    Input.FORBIDDEN: Then(_LIST, Wait.LATER),
    Input.NOT_FOUND: Then(_LIST, Wait.LATER),
    Input.TOO_MANY: Then(_LIST, Wait.BACK_OFF),
    Input.FAILED: Then(_LIST, Wait.BACK_OFF),
    Input.REFUSED: Then(_LIST, Wait.BACK_OFF),
    Input.CUT: Then(_LIST, Wait.BACK_OFF),
    Input.SILENT: Then(_LIST, Wait.BACK_OFF),
    Input.UNREADABLE: Then(_LIST, Wait.BACK_OFF),
    Input.UNEXPECTED: Then(_LIST, Wait.BACK_OFF),
}

_AFTER_A_WATCH: Mapping[Input, Then] = {
    Input.DONE: Then(_WATCH, Wait.NONE),
    Input.QUIET: Then(_CHECK, Wait.NONE),
    Input.BRIEF: Then(_CHECK, Wait.BACK_OFF),
    Input.BEHIND: Then(_LIST, Wait.ONCE),
    Input.GONE: Then(_LIST, Wait.ONCE),
    Input.UNAUTHORIZED: Then(_CHECK, Wait.BACK_OFF),
    Input.FORBIDDEN: Then(_LIST, Wait.BACK_OFF),
    Input.NOT_FOUND: Then(_LIST, Wait.BACK_OFF),
    Input.TOO_MANY: Then(_CHECK, Wait.BACK_OFF),
    Input.FAILED: Then(_CHECK, Wait.BACK_OFF),
    Input.REFUSED: Then(_LIST, Wait.BACK_OFF),
    Input.CUT: Then(_CHECK, Wait.BACK_OFF),
    Input.SILENT: Then(_CHECK, Wait.ONCE),
    Input.UNREADABLE: Then(_LIST, Wait.BACK_OFF),
    Input.UNEXPECTED: Then(_LIST, Wait.BACK_OFF),
}

TRANSITIONS: Mapping[Doing, Mapping[Input, Then]] = {
    _LIST: _AFTER_A_LIST,
    _CHECK: _AFTER_A_WATCH,
    _WATCH: _AFTER_A_WATCH,
}

_OF_ERRORS: tuple[tuple[type[ApiError], Input], ...] = (
    (ResourceVersionTooLargeError, Input.BEHIND),
    (GoneError, Input.GONE),
    (UnauthorizedError, Input.UNAUTHORIZED),
    (ForbiddenError, Input.FORBIDDEN),
    (NotFoundError, Input.NOT_FOUND),
    (TooManyRequestsError, Input.TOO_MANY),
    (TimedOutError, Input.SILENT),
    (UnreadableError, Input.UNREADABLE),
    (ConnectionFailedError, Input.CUT),
)


def input_of(error: ApiError) -> Input:
    for kind, found in _OF_ERRORS:
        if isinstance(error, kind):
            return found
    return Input.FAILED if error.code >= 500 else Input.REFUSED
