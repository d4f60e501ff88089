"""Callers that may see a page: on the ops port loopback, on the pages' own port the bearer of a token, as far as the API server allows.

pages.py asks before it shows anything of the cluster. Refusals are in the API server's words and form.
Kubernetes: k8s.io/apiserver/pkg/endpoints/filters/{authentication,authorization}.go
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable

from flask import Flask, Response, request

from extender import metrics
from extender.scheduler.interface import AccessUnknownError, NotAuthenticatedError, NotAuthorizedError
from extender.server.errors import RefusedError, answer
from extender.server.options import is_loopback
from extender.server.state import Port, port, state

RETRY_SECONDS = 5


def init_app(app: Flask) -> None:
    app.register_error_handler(NotAuthenticatedError, _unauthorized)
    app.register_error_handler(NotAuthorizedError, _forbidden)
    app.register_error_handler(AccessUnknownError, _unknown)


def check_caller() -> None:
    """Before every page, the empty frame of /ui among them. Raises RefusedError where there are no pages for the caller."""
    match port():
        case Port.VERBS:
            raise RefusedError(f"{request.path}: not found here: it is on the ops port", 404)
        case Port.PAGES:
            return
    if not is_loopback(request.remote_addr or ""):
        raise RefusedError(f"{request.path}: not found", 404)
    if not _is_own_name(request.host):
        # A name of another site that was made to lead here would have the caller's browser read the page for that site.
        raise RefusedError(f"{request.path}: on this port pages are asked for as localhost, not as {request.host}", 403)


def check_may_see(namespace: str = "", name: str = "") -> Callable[[], None]:
    """Whether the caller may see the gangs of the namespace, one of them, or all. Raises NotAuthenticatedError, NotAuthorizedError,
    AccessUnknownError. Returns what checks it again, also after the request."""
    if port() is not Port.PAGES:
        return lambda: None
    access, token = state().verbs.access(), _token()

    def check() -> None:
        access.check(token, namespace, name)

    check()
    return check


def may_see_all() -> bool:
    """Whether no name of another namespace is kept from the caller."""
    try:
        check_may_see()
    except NotAuthorizedError:
        return False
    return True


def _token() -> str:
    header = request.headers.get("Authorization", "")
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise NotAuthenticatedError
    return token.strip()


def _is_own_name(host: str) -> bool:
    """An address, or localhost. host: with or without a port."""
    name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _unauthorized(error: NotAuthenticatedError) -> Response:
    metrics.rejected_clients.labels("token").inc()
    response = _status("Unauthorized", "Unauthorized", 401)
    response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _forbidden(error: NotAuthorizedError) -> Response:
    metrics.rejected_clients.labels("rights").inc()
    return _status(str(error), "Forbidden", 403)


def _unknown(error: AccessUnknownError) -> Response:
    response = _status(str(error), "ServiceUnavailable", 503)
    response.headers["Retry-After"] = str(RETRY_SECONDS)
    return response


def _status(message: str, reason: str, code: int) -> Response:
    """Go: metav1.Status"""
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    response = answer(status, code)
    response.headers["Cache-Control"] = "no-store"
    return response
