"""Probes and metrics, on a port and a pool of their own, for any caller. Pages are there too, for loopback (pages.py).

Kubernetes: the paths and the form of its own components' health checks
"""

from __future__ import annotations

from collections.abc import Sequence

from flask import Blueprint, Response, request
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from extender import metrics
from extender.scheduler.interface import Check
from extender.server.errors import RefusedError
from extender.server.state import PROBES, Port, port, state

blueprint = Blueprint("ops", __name__)


@blueprint.before_request
def only_on_ops_port() -> None:
    if port() in (Port.VERBS, Port.PAGES):
        raise RefusedError(f"{request.path}: not found here: it is on the ops port", 404)


def paths() -> list[str]:
    """What any caller can ask, each with its method."""
    return [f"GET /{name}" for name in PROBES]


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
