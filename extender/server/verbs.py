"""The four verbs: decode, one call, encode.

kube-scheduler's side: pkg/scheduler/extender.go
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from flask import Blueprint, Response, g, request

from extender import metrics
from extender.api import codec
from extender.api.extenderv1 import ExtenderArgs, ExtenderBindingArgs, ExtenderPreemptionArgs
from extender.framework.giving_way import GIVING_WAY
from extender.server.bodies import whole_body
from extender.server.errors import RefusedError, answer
from extender.server.state import VERBS, Port, State, port, state

T = TypeVar("T")

blueprint = Blueprint("verbs", __name__)

MAX_NAME = 253  # of a Kubernetes object
LONG_SECONDS = 0.5  # no httpTimeout is shorter: before that nothing is looked for
_DURATION = {verb: metrics.request_duration.labels(verb) for verb in VERBS}


@blueprint.before_request
def only_on_verbs_port() -> None:
    if port() in (Port.OPS, Port.PAGES):
        raise RefusedError(f"{request.path}: not found here: the verbs are on the other port", 404)


@blueprint.post("/filter")
@blueprint.post("/prioritize")
@blueprint.post("/preempt")
@blueprint.post("/bind")
def verb() -> Response:
    result = ask(request.path.strip("/"), state(), request.environ)
    g.result = outcome(result)
    return answer(result)


def ask(verb: str, state: State, environ: Mapping[str, Any]) -> object:
    """What the scheduler says to a call. Raises RefusedError, HTTPException of werkzeug, and what the scheduler raises."""
    if verb == "bind":
        with _DURATION[verb].time():
            binding = _args(state, environ, ExtenderBindingArgs)
            _check_names(binding)
            return state.verbs.bind(binding, HttpCaller(state, environ))
    with _question(verb, state, environ):
        if verb == "preempt":
            return state.verbs.preempt(_args(state, environ, ExtenderPreemptionArgs))
        with GIVING_WAY.answering():
            question = state.verbs.filter if verb == "filter" else state.verbs.prioritize
            return question(_args(state, environ, ExtenderArgs))


def outcome(result: object) -> str:
    """For the metric: whether the answer says Error."""
    return "error" if getattr(result, "error", "") else "ok"


@contextmanager
def _question(verb: str, state: State, environ: Mapping[str, Any]) -> Iterator[None]:
    """One that is answered from memory: measured, and counted where the caller did not wait for the answer."""
    began = time.monotonic()
    with _DURATION[verb].time():
        yield
    if time.monotonic() - began > LONG_SECONDS and state.peer_watch.is_gone(_descriptor(environ)):
        metrics.child(metrics.hang_ups, verb).inc()


def _descriptor(environ: Mapping[str, Any]) -> int:
    """Of the request's connection; -1 where there is none, as in tests."""
    socket = environ.get("gunicorn.socket")
    return socket.fileno() if socket is not None else -1


class HttpCaller:
    """The connection of a request. Fulfils scheduler.interface.Caller."""

    def __init__(self, state: State, environ: Mapping[str, Any]) -> None:
        self._fd = _descriptor(environ)
        self._peer_watch = state.peer_watch

    def on_gone(self, callback: Callable[[], None]) -> Callable[[], None]:
        if self._fd < 0:
            return lambda: None
        return self._peer_watch.watch(self._fd, partial(_hung_up, callback))


def _hung_up(callback: Callable[[], None]) -> None:
    metrics.child(metrics.hang_ups, "bind").inc()
    callback()


def _args(state: State, environ: Mapping[str, Any], type_: type[T]) -> T:
    """The request's body as a struct. Raises RefusedError."""
    data = whole_body(environ, state.options.max_body_bytes)
    try:
        return codec.decode(data, type_)
    except codec.DecodeError as error:
        raise RefusedError(str(error)) from error


def _check_names(args: ExtenderBindingArgs) -> None:
    names = {"PodName": args.pod_name, "PodNamespace": args.pod_namespace, "PodUID": args.pod_uid, "Node": args.node}
    for field, value in names.items():
        if not 1 <= len(value) <= MAX_NAME or not value.isprintable():
            raise RefusedError(f"wanted: a name of 1 to {MAX_NAME} printable characters - at `$.{field}`")


@blueprint.after_app_request
def count(response: Response) -> Response:
    """By verb, HTTP status and result: ok, error (the answer says Error), refused (4xx), fault (our own)."""
    path = request.path.strip("/")
    malformed = 400 <= response.status_code < 500
    if path in VERBS:
        result = "refused" if malformed else g.pop("result", "fault")
    else:
        path, result = "other", "refused" if malformed else "ok"
    metrics.child(metrics.requests, path, str(response.status_code), result).inc()
    return response
