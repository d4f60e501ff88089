"""A request's body, read whole or refused: for the verbs and for questions on the ops port.

No counterpart in kube-scheduler, which serves no body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.sansio.utils import get_content_length

from extender.server.errors import RefusedError


def whole_body(environ: Mapping[str, Any], most: int) -> bytes:
    """most: in bytes. Raises RefusedError, RequestEntityTooLarge; the length is checked before anything is read."""
    length = get_content_length(environ.get("CONTENT_LENGTH"), environ.get("HTTP_TRANSFER_ENCODING"))
    if length is None:
        raise RefusedError("Content-Length is wanted", 411)  # a chunked body cannot be refused before it is read
    if length > most:
        raise RequestEntityTooLarge
    try:
        data: bytes = environ["wsgi.input"].read(length)
    except OSError as error:
        raise RefusedError(f"the body did not come to its end of {length} bytes", 408) from error
    if len(data) != length:
        raise RefusedError(f"the body ends after {len(data)} of {length} bytes", 408)
    return data
