"""What can go wrong with an API call. Each keeps its cause, and says whether the outcome is known; none has a secret in its text.

Kubernetes: k8s.io/apimachinery/pkg/api/errors
"""

from __future__ import annotations

from extender.redaction import redacted


class ApiError(Exception):
    """The API server answered with a failure. `code` is the HTTP status, `reason` Kubernetes' CamelCase word."""

    code = 500

    def __init__(self, message: str, *, code: int | None = None, reason: str = "", retry_after: float | None = None):
        self.message = redacted(message)
        super().__init__(self.message)
        self.reason = reason
        self.retry_after = retry_after
        if code is not None:
            self.code = code


class BadRequestError(ApiError):
    code = 400


class UnauthorizedError(ApiError):
    code = 401


class ForbiddenError(ApiError):
    code = 403


class NotFoundError(ApiError):
    code = 404


class AlreadyExistsError(ApiError):
    """409 with reason AlreadyExists: the name is taken."""

    code = 409


class ConflictError(ApiError):
    """409: a precondition (UID, resourceVersion) did not hold, or a pod is already assigned."""

    code = 409


class GoneError(ApiError):
    """410: the resourceVersion is too old; list again."""

    code = 410


class InvalidError(ApiError):
    code = 422


class TooManyRequestsError(ApiError):
    code = 429


class ResourceVersionTooLargeError(ApiError):
    """504 with the cause ResourceVersionTooLarge: the server is behind what was asked; list without a version."""

    code = 504


class ConnectionFailedError(ApiError):
    """No answer: refused, reset, timed out. Whether a write happened is unknown until it is read back."""

    code = 0


class TimedOutError(ConnectionFailedError):
    """The server was silent for longer than the call may take."""


class UnreadableError(ConnectionFailedError):
    """The answer is not what was asked for: no JSON, or another form."""


def is_transient(error: ApiError) -> bool:
    """Whether the same call may succeed a little later: the server was not there, or had too much to do."""
    return isinstance(error, (ConnectionFailedError, TooManyRequestsError)) or error.code >= 500
