"""One request's answer, from the application to the socket: gunicorn's own handle_request without what nothing here needs.

That is its hooks, its log of accesses and its count of requests, each of which costs something for every request.
Used by the worker. gunicorn: workers/base_async.py
"""

from __future__ import annotations

import logging
import time
from email.utils import formatdate
from functools import lru_cache
from typing import Any

from extender.server import known_heads
from extender.server.known_heads import KnownRequest

log = logging.getLogger(__name__)


def date() -> str:
    """Of the Date header, for gunicorn, which makes a date for each answer: one for all of a second."""
    return _date_of(int(time.time()))


@lru_cache(maxsize=1)
def _date_of(second: int) -> str:
    return formatdate(second, usegmt=True)


def respond(wsgi: Any, cfg: Any, request: KnownRequest, sock: Any, client: Any, server: Any, *, last: bool) -> None:
    """client, server: the addresses of the two ends. last: of the connection.

    Raises StopIteration where the connection ends with this answer, OSError where the peer has gone; any other exception means that
    nothing was sent, and that the caller answers.
    """
    response, environ = known_heads.create(request, sock, client, server, cfg)
    environ["wsgi.multithread"] = True
    if last:
        response.force_close()
    try:
        parts = wsgi(environ, response.start_response)
        try:
            for part in parts:
                response.write(part)
            response.close()
        finally:
            if hasattr(parts, "close"):
                parts.close()
    except OSError:
        raise
    except Exception:
        if not response.headers_sent:
            raise
        log.exception("an answer broke off path=%s", request.path)
        sock.close()
        raise StopIteration from None
    if response.should_close():
        raise StopIteration
