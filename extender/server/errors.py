"""What is not an outcome of scheduling: malformed requests, wrong paths, our own faults. Always JSON, never a traceback.

Only what is malformed gets a 4xx. kube-scheduler reads the body of a 200 only, so a fault of ours in a verb is a 200
with its Error where the verb has one.
"""

from __future__ import annotations

import logging

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound

from extender.api import codec
from extender.api.extenderv1 import ExtenderBindingResult, ExtenderFilterResult, ExtenderPreemptionResult

log = logging.getLogger(__name__)

PATHS = "POST /filter /prioritize /preempt /bind"

INTERNAL_ERROR = "internal error: see the extender's log"


def answer(value: object, status: int = 200) -> Response:
    """JSON, in one piece."""
    return Response(codec.encode(value), status, mimetype="application/json")


def malformed(text: str, status: int = 400) -> Response:
    return answer({"Error": text}, status)


class MalformedError(Exception):
    """A body that is no request of ours, with the HTTP status that says so."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


def init_app(app: Flask) -> None:
    app.register_error_handler(MalformedError, _malformed)
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(OSError, _cut)
    app.register_error_handler(Exception, _fault)


def _malformed(error: MalformedError) -> Response:
    return malformed(str(error), error.status)


def _http(error: HTTPException) -> Response:
    text = f"{error.code} {error.name}"
    if isinstance(error, NotFound):
        text = f"{request.path}: not found; there are: {PATHS}"
    elif isinstance(error, MethodNotAllowed):
        text = f"{request.method} {request.path}: method not allowed; there are: {PATHS}"
    response = malformed(text, error.code or 500)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _cut(error: OSError) -> Response:
    """The request could not be read to its end in time."""
    log.info("request not read path=%s error=%s", request.path, error)
    return malformed("request timeout", 408)


def _fault(error: Exception) -> Response:
    log.error("request failed path=%s", request.path, exc_info=error)
    match request.path.strip("/"):
        case "filter":
            return answer(ExtenderFilterResult(error=INTERNAL_ERROR))
        case "bind":
            return answer(ExtenderBindingResult(error=INTERNAL_ERROR))
        case "preempt":
            return answer(ExtenderPreemptionResult())
        case "prioritize":
            return answer([])
    return malformed(INTERNAL_ERROR, 500)
