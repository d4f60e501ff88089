"""Which clients may call the verbs: with TLS, those whose certificate carries an allowed name. (Of pages: page_auth.)

The TLS layer has verified the chain already; this is the list of names. kube-scheduler can show nothing but a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flask import Flask, request

from extender.server.errors import RefusedError
from extender.server.options import ServeOptions
from extender.server.state import Port, State, port, state


def init_app(app: Flask) -> None:
    app.before_request(check_client)


def check_client() -> None:
    """Before every request, so that not even the list of paths is told to a stranger. Raises RefusedError."""
    if port() not in (Port.OPS, Port.PAGES) and not may_call(state(), request.environ):
        certificate = _certificate(request.environ)
        names = ", ".join(sorted(set(names_of(certificate or {})))) or "(no certificate)"
        state().refused_clients.name_not_allowed(names, request.remote_addr or "unknown")
        raise RefusedError(f"client {names} is not allowed", 403)


def may_call(state: State, environ: Mapping[str, Any]) -> bool:
    """Whether the client of the request may call the verbs."""
    return not state.options.tls or is_allowed(_certificate(environ), state.options)


def _certificate(environ: Mapping[str, Any]) -> Mapping[str, Any] | None:
    socket = environ.get("gunicorn.socket")
    return socket.getpeercert() if socket is not None and hasattr(socket, "getpeercert") else None


def is_allowed(certificate: Mapping[str, Any] | None, options: ServeOptions) -> bool:
    """Whether a client that showed this certificate may call; `certificate` as ssl's getpeercert gives it."""
    return not set(options.allowed_client_names).isdisjoint(names_of(certificate or {}))


def names_of(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The common name, and the DNS and URI names; `certificate` as ssl's getpeercert gives it."""
    for relative in certificate.get("subject", ()):
        for key, value in relative:
            if key == "commonName":
                yield value
    for kind, value in certificate.get("subjectAltName", ()):
        if kind in ("DNS", "URI"):
            yield value
