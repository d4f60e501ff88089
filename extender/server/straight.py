"""The straight way of a call to its verb, past Flask's contexts, routing, signals and response objects.

Those cost more than the answer to a bind call (docs/design/0058-lean-plumbing.md). Only what would not be refused goes this way: a
POST to a verb's path, on the verbs' port, from a client that may call. What fails on it ends in Flask's error handlers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Flask

from extender import metrics
from extender.api import codec
from extender.server.client_auth import may_call
from extender.server.state import VERBS, Port, State, port_of, state_of
from extender.server.verbs import ask, outcome

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

_PATHS = {f"/{verb}": verb for verb in VERBS}


def verb_of(environ: WSGIEnvironment, state: State) -> str | None:
    """Which one is asked; None where the call is not one for the straight way."""
    verb = _PATHS.get(environ["PATH_INFO"])
    if verb is None or environ["REQUEST_METHOD"] != "POST" or not may_call(state, environ):
        return None
    return None if port_of(state, environ) in (Port.OPS, Port.PAGES) else verb


def answer(app: Flask, verb: str, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    try:
        result = ask(verb, state_of(app), environ)
        data = codec.encode(result)
    except Exception as error:
        with app.request_context(environ):
            return app.finalize_request(app.handle_user_exception(error))(environ, start_response)
    metrics.child(metrics.requests, verb, "200", outcome(result)).inc()
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(data)))])
    return [data]
