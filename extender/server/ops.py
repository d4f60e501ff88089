"""Probes, metrics and pages, on a port and a pool of their own.

Beyond loopback only /livez, /readyz, /healthz and /metrics are served: the rest shows every tenant's pods.
Kubernetes: the paths and the form of its own components' health checks
"""

from __future__ import annotations

from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from extender import metrics
from extender.server.app import on_ops_port, state
from extender.server.errors import MalformedError, answer
from extender.server.options import is_loopback

blueprint = Blueprint("ops", __name__)

OPS_PATHS = "/livez /readyz /healthz /metrics"


@blueprint.before_request
def only_on_ops_port() -> None:
    if on_ops_port() is False:
        raise MalformedError(f"{request.path}: not found here: it is on the ops port", 404)


@blueprint.get("/livez")
@blueprint.get("/healthz")
def livez() -> Response:
    return Response("ok", mimetype="text/plain")


@blueprint.get("/readyz")
def readyz() -> Response:
    checks = state().verbs.readiness()
    ready = all(check.ok for check in checks)
    if ready and "verbose" not in request.args:
        return Response("ok", mimetype="text/plain")
    lines = []
    for check in checks:
        if check.ok:
            lines.append(f"[+]{check.name} ok" + (f": {check.reason}" if check.reason else ""))
        else:
            lines.append(f"[-]{check.name} failed: {check.reason}")
    lines.append("readyz check passed" if ready else "readyz check failed")
    return Response("\n".join(lines) + "\n", 200 if ready else 503, mimetype="text/plain")


@blueprint.get("/metrics")
def prometheus() -> Response:
    return Response(generate_latest(metrics.REGISTRY), content_type=CONTENT_TYPE_LATEST)


@blueprint.get("/ops")
def index() -> Response:
    return answer({"paths": " ".join([OPS_PATHS, *_pages()])})


def _pages() -> list[str]:
    return sorted(state().pages) if is_loopback(state().options.ops_bind_address) else []


@blueprint.get("/gangs")
@blueprint.get("/gangs/<namespace>/<name>")
def gangs(namespace: str = "", name: str = "") -> Response:
    if "/gangs" not in _pages():
        raise MalformedError(f"{request.path}: not found", 404)
    groups = state().pages["/gangs"]()
    if not name or not isinstance(groups, dict):
        return answer(groups)
    key = f"{namespace}/{name}"
    if key not in groups:
        raise MalformedError(f"{request.path}: no such group", 404)
    return answer(groups[key])
