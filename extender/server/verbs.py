"""The four verbs: decode, one call, encode.

kube-scheduler's side: pkg/scheduler/extender.go
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from flask import Blueprint, Response, request

from extender import metrics
from extender.api import codec
from extender.api.extenderv1 import ExtenderArgs, ExtenderBindingArgs, ExtenderPreemptionArgs
from extender.server.app import on_ops_port, state
from extender.server.errors import PATHS, MalformedError, answer

T = TypeVar("T")

blueprint = Blueprint("verbs", __name__)

MAX_NAME = 253


@blueprint.before_request
def not_on_ops_port() -> Response | None:
    if on_ops_port():
        raise MalformedError(f"{request.path}: not found here: the verbs are on the other port", 404)
    return None


@blueprint.get("/")
def index() -> Response:
    return answer({"verbs": PATHS})


@blueprint.post("/filter")
def filter_nodes() -> Response:
    with _timed("filter"):
        return answer(state().verbs.filter(_body(ExtenderArgs)))


@blueprint.post("/prioritize")
def prioritize() -> Response:
    with _timed("prioritize"):
        return answer(state().verbs.prioritize(_body(ExtenderArgs)))


@blueprint.post("/preempt")
def preempt() -> Response:
    with _timed("preempt"):
        return answer(state().verbs.preempt(_body(ExtenderPreemptionArgs)))


@blueprint.post("/bind")
def bind() -> Response:
    with _timed("bind"):
        args = _body(ExtenderBindingArgs)
        for name, value in (("PodName", args.pod_name), ("PodUID", args.pod_uid), ("Node", args.node)):
            if not value or len(value) > MAX_NAME:
                raise MalformedError(f"a name of 1 to {MAX_NAME} characters is wanted - at `$.{name}`")
        return answer(state().verbs.bind(args, HttpCaller()))


class HttpCaller:
    """The connection of the running request. Fulfils scheduler.interface.Caller."""

    def __init__(self) -> None:
        socket = request.environ.get("gunicorn.socket")
        self._fd: int = socket.fileno() if socket is not None else -1
        self._peer_watch = state().peer_watch

    def on_gone(self, callback: Callable[[], None]) -> Callable[[], None]:
        if self._fd < 0:
            return lambda: None
        return self._peer_watch.watch(self._fd, callback)


def _body(type_: type[T]) -> T:
    length = request.content_length
    if length is None:
        raise MalformedError("Content-Length is wanted", 411)
    data = request.get_data(cache=False)
    if len(data) != length:
        raise MalformedError(f"the body ends after {len(data)} of {length} bytes")
    try:
        return codec.decode(data, type_)
    except codec.DecodeError as error:
        raise MalformedError(str(error)) from error


class _timed:  # noqa: N801 - reads as a statement
    def __init__(self, verb: str) -> None:
        self._verb = verb

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(self, *exc: object) -> None:
        metrics.request_duration.labels(self._verb).observe(time.perf_counter() - self._start)


@blueprint.after_app_request
def count(response: Response) -> Response:
    verb = (
        request.path.strip("/") if request.path.strip("/") in ("filter", "prioritize", "preempt", "bind") else "other"
    )
    metrics.requests.labels(verb, str(response.status_code)).inc()
    return response
