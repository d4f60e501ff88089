"""What the API server's failures mean: a Status object, or a bare HTTP code, to an error of ours.

Kubernetes: k8s.io/apimachinery/pkg/api/errors
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from extender.api import codec
from extender.client.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    NotFoundError,
    ResourceVersionTooLargeError,
    TooManyRequestsError,
    UnauthorizedError,
)


class StatusCause(Struct, frozen=True):
    reason: str = ""
    message: str = ""


class StatusDetails(Struct, frozen=True, rename="camel"):
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: int | None = None


class Status(Struct, frozen=True):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: StatusDetails = StatusDetails()


_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def error_of(code: int, body: bytes, retry_after: str = "") -> ApiError:
    """For an answer that is no success. retry_after: the header's text, in seconds."""
    try:
        status = codec.decode(body, Status)
    except codec.DecodeError:
        status = Status(code, "", body[:512].decode(errors="replace").strip() or f"HTTP {code}")
    return error_of_status(status, code, float(retry_after) if retry_after.isdigit() else None)


def error_of_status(status: Status, code: int = 0, retry_after: float | None = None) -> ApiError:
    code = status.code or code
    if retry_after is None and status.details.retry_after_seconds is not None:
        retry_after = float(status.details.retry_after_seconds)
    kind = _BY_CODE.get(code, ApiError)
    if code == 409 and status.reason == "AlreadyExists":
        kind = AlreadyExistsError
    if code == 504 and any(cause.reason == "ResourceVersionTooLarge" for cause in status.details.causes):
        kind = ResourceVersionTooLargeError
    return kind(status.message or f"HTTP {code}", code=code, reason=status.reason, retry_after=retry_after)
