"""A request's body, read whole or refused: for the verbs and for questions on the ops port.

No counterpart in kube-scheduler, which serves no body.
"""

from __future__ import annotations

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge

from extender.server.errors import RefusedError


def whole_body(most: int) -> bytes:
    """most: in bytes. Raises RefusedError, RequestEntityTooLarge; the length is checked before anything is read."""
    length = request.content_length
    if length is None:
        raise RefusedError("Content-Length is wanted", 411)  # a chunked body cannot be refused before it is read
    if length > most:
        raise RequestEntityTooLarge
    try:
        data: bytes = request.environ["wsgi.input"].read(length)
    except OSError as error:
        raise RefusedError(f"the body did not come to its end of {length} bytes", 408) from error
    if len(data) != length:
        raise RefusedError(f"the body ends after {len(data)} of {length} bytes", 408)
    return data
