"""Probes, metrics and pages, on a port and a pool of their own.

A caller from beyond loopback is served /livez, /readyz, /healthz and /metrics only: the rest shows every tenant's pods.
Kubernetes: the paths and the form of its own components' health checks
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from extender import metrics
from extender.api import codec
from extender.scheduler.interface import CONFIGURATION, DRAIN, GANG, GANGS, POD, WHAT_IF, Check, Page
from extender.server.bodies import whole_body
from extender.server.errors import RefusedError
from extender.server.options import QUESTION_BYTES, is_loopback
from extender.server.state import PROBES, on_ops_port, state

blueprint = Blueprint("ops", __name__)


@blueprint.before_request
def only_on_ops_port() -> None:
    if on_ops_port() is False:
        raise RefusedError(f"{request.path}: not found here: it is on the ops port", 404)


def paths() -> list[str]:
    """What this caller can ask, each with its method."""
    methods = {WHAT_IF: "POST"}
    return [f"{methods.get(path, 'GET')} {path}" for path in (*(f"/{name}" for name in PROBES), *_pages())]


@blueprint.get("/livez")
@blueprint.get("/healthz")
def livez() -> Response:
    """As /readyz, of what only a restart can mend: the kubelet restarts the container where it fails."""
    return _probe("livez", state().verbs.liveness())


@blueprint.get("/readyz")
def readyz() -> Response:
    """`ok`; every check where one has failed, or with ?verbose. ?exclude=NAME leaves a check out, as Kubernetes' own do."""
    return _probe("readyz", state().verbs.readiness())


def _passed(checks: Sequence[Check]) -> bool:
    return all(check.ok for check in checks)


def _probe(name: str, checks: Sequence[Check]) -> Response:
    excluded = request.args.getlist("exclude")
    passed = _passed([check for check in checks if check.name not in excluded])
    if passed and "verbose" not in request.args:
        return Response("ok", mimetype="text/plain")
    lines = [
        *(_line(check, check.name in excluded) for check in checks),
        f"{name} check {'passed' if passed else 'failed'}",
    ]
    return Response("\n".join(lines) + "\n", 200 if passed else 503, mimetype="text/plain")


def _line(check: Check, excluded: bool) -> str:
    if excluded:
        return f"[+]{check.name} excluded: ok"
    if not check.ok:
        return f"[-]{check.name} failed: {check.reason}"
    return f"[+]{check.name} ok" + (f": {check.reason}" if check.reason else "")


@blueprint.get("/metrics")
def prometheus() -> Response:
    metrics.ready.set(_passed(state().verbs.readiness()))
    return Response(generate_latest(metrics.REGISTRY), content_type=CONTENT_TYPE_LATEST)


def _pages() -> list[str]:
    return sorted(state().pages) if is_loopback(request.remote_addr or "") else []


@blueprint.get(GANGS)
def gangs() -> Response:
    """All groups, in short: those that wait first, in their order."""
    return _show(_page(GANGS)())


@blueprint.get("/gangs/<namespace>/<name>")
def gang(namespace: str, name: str) -> Response:
    """One of them, with its members and what would make it fit."""
    found = _page(GANG)(f"{namespace}/{name}")
    if found is None:
        raise RefusedError(f"{request.path}: no such group", 404)
    return _show(found)


@blueprint.get(CONFIGURATION)
def configuration() -> Response:
    """What it runs with, and what it sees to be wrong with that, or with kube-scheduler's."""
    return _show(_page(CONFIGURATION)())


@blueprint.get("/pods/<namespace>/<name>")
def pod(namespace: str, name: str) -> Response:
    """A pod, with how its gang is doing."""
    found = _page(POD)(f"{namespace}/{name}")
    if found is None:
        raise RefusedError(f"{request.path}: no such pod", 404)
    return _show(found)


@blueprint.get("/drain/<node>")
def drain(node: str) -> Response:
    """What a drain of the node would do to gangs."""
    found = _page(DRAIN)(node)
    if found is None:
        raise RefusedError(f"{request.path}: no such node", 404)
    return _show(found)


@blueprint.post(WHAT_IF)
def what_if() -> Response:
    """Whether a gang that is not there yet would fit. JSON only: no form of a web page can ask."""
    page = _page(WHAT_IF)
    if request.mimetype != "application/json":
        raise RefusedError("Content-Type: application/json is wanted", 415)
    return _show(page(whole_body(QUESTION_BYTES)))


def _page(path: str) -> Page:
    if path not in _pages():
        raise RefusedError(f"{request.path}: not found", 404)
    return state().pages[path]


def _show(value: object) -> Response:
    """JSON as people read it."""
    text = msgspec.json.format(codec.encode(value), indent=2)
    return Response(text + b"\n", mimetype="application/json")
