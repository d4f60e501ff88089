"""What is not an outcome of scheduling: malformed requests, wrong paths, our own faults. Always JSON, never a traceback.

Only what is malformed gets a 4xx. kube-scheduler reads the body of a 200 only, so a fault of ours in a verb is a 200
with its Error where the verb has one.
"""

from __future__ import annotations

import logging

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from extender.api import codec
from extender.api.extenderv1 import ExtenderBindingResult, ExtenderFilterResult, ExtenderPreemptionResult
from extender.crash import crashed
from extender.scheduler.interface import WHAT_IF, BusyError, NotCacheCapableError, NotSyncedError, QuestionError
from extender.server.options import QUESTION_BYTES
from extender.server.state import PROBES, VERBS, Port, port, state

log = logging.getLogger(__name__)

INTERNAL_ERROR = "internal error: see the extender's log"


class RefusedError(Exception):
    """A request that is answered with a 4xx: its text is the Error, its status the HTTP status."""

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


def answer(value: object, status: int = 200) -> Response:
    """JSON, in one piece."""
    return Response(codec.encode(value), status, mimetype="application/json")


def refusal(text: str, status: int) -> Response:
    return answer({"Error": text}, status)


def init_app(app: Flask) -> None:
    app.register_error_handler(RefusedError, _refused)
    app.register_error_handler(NotCacheCapableError, _not_cache_capable)
    app.register_error_handler(NotSyncedError, lambda error: refusal(str(error), 503))
    app.register_error_handler(QuestionError, lambda error: refusal(str(error), 400))
    app.register_error_handler(BusyError, lambda error: refusal(str(error), 503))
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(Exception, _fault)


def _refused(error: RefusedError) -> Response:
    return refusal(str(error), error.status)


def _not_cache_capable(error: NotCacheCapableError) -> Response:
    """kube-scheduler reads no further than the 400 where a verb's answer has no Error: the log says the rest."""
    log.warning("request refused path=%s reason=%s", request.path, error)
    return refusal(str(error), 400)


def _http(error: HTTPException) -> Response:
    """What Flask itself finds wrong, in our words."""
    where = f"{request.method} {request.path}"
    match error:
        case NotFound():
            text = f"{where}: not found; there are: {_known_paths()}"
        case MethodNotAllowed():
            text = f"{where}: method not allowed; there are: {_known_paths()}"
        case RequestEntityTooLarge():
            text = f"{where}: the body is larger than {_most_bytes()} bytes{_of_whole_nodes()}"
        case _:
            text = f"{where}: {error.name}"
    response = refusal(text, error.code or 500)
    if isinstance(error, MethodNotAllowed) and error.valid_methods:
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
    return response


def _most_bytes() -> int:
    return QUESTION_BYTES if request.path.rstrip("/") == WHAT_IF else state().options.max_body_bytes


def _of_whole_nodes() -> str:
    """Nothing else makes a call of a verb so large."""
    if request.path.strip("/") not in VERBS:
        return ""
    log.warning(
        "request refused path=%s reason=the body is too large: is nodeCacheCapable: true missing?", request.path
    )
    return ": kube-scheduler sends whole nodes without nodeCacheCapable: true"


def _known_paths() -> str:
    verbs, ops = "POST /" + " /".join(VERBS), "GET /" + " /".join(PROBES)
    match port():
        case None:
            return f"{verbs}; {ops}"
        case Port.OPS:
            return ops
        case Port.PAGES:
            return "GET /ui"
        case Port.VERBS:
            return verbs


def _fault(error: Exception) -> Response:
    """Our own mistake: what the caller gets must still be an answer that kube-scheduler reads as a failure."""
    path = request.path.strip("/")
    crashed("verb" if path in VERBS else "page", f"path={request.path}")
    match path:
        case "filter":
            return answer(ExtenderFilterResult(error=INTERNAL_ERROR))
        case "bind":
            return answer(ExtenderBindingResult(error=INTERNAL_ERROR))
        case "preempt":
            return answer(ExtenderPreemptionResult())
        case "prioritize":
            return answer([])
    return refusal(INTERNAL_ERROR, 500)
