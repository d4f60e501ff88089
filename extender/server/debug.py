"""/debug, where the extender itself is in doubt: where its threads are, its cache against the API, gangs with their slots, the log level.

On the ops port and for callers on loopback alone, whatever address that port listens on; on no other port, and without a token's way in.
kube-scheduler: /debug/flags/v of component-base, /debug/pprof, and its cache debugger on SIGUSR2 (pkg/scheduler/backend/cache/debugger)
"""

from __future__ import annotations

import logging

import msgspec
from flask import Blueprint, Response, request

from extender.api import codec
from extender.scheduler.interface import DEBUG_CACHE, DEBUG_GANG, DEBUG_GANGS
from extender.server import logs, page_auth
from extender.server.bodies import whole_body
from extender.server.errors import RefusedError
from extender.server.stacks import describe, native_threads
from extender.server.state import Port, port, state

log = logging.getLogger(__name__)

blueprint = Blueprint("debug", __name__)

DEBUG = "/debug"
STACKS, VERBOSITY = f"{DEBUG}/stacks", f"{DEBUG}/flags/v"
AGAINST = ("watch", "api")
LARGEST_BODY = 16


@blueprint.before_request
def check_caller() -> None:
    """As for pages, and never on their own port. Raises RefusedError."""
    if port() in (Port.VERBS, Port.PAGES):
        raise RefusedError(f"{request.path}: not found", 404)
    page_auth.check_caller()


@blueprint.after_request
def not_kept(response: Response) -> Response:
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def paths() -> list[str]:
    """What this caller can ask, each with its method; none for one that it is not for."""
    try:
        check_caller()
    except RefusedError:
        return []
    asked = [STACKS, f"{DEBUG_CACHE}?against={'|'.join(AGAINST)}", DEBUG_GANGS, DEBUG_GANG]
    return [*(f"GET {path}" for path in asked), f"GET|PUT {VERBOSITY}"]


@blueprint.get(DEBUG)
def index() -> Response:
    return _text("\n".join(paths()) + "\n")


@blueprint.get(STACKS)
def stacks() -> Response:
    """Greenlets first: requests and background work; then native threads."""
    return _text(describe("greenlet", state().greenlets()) + "\n" + describe("thread", native_threads()))


@blueprint.get(DEBUG_CACHE)
def cache() -> Response:
    """?against=api lists nodes and pods anew; else the cache is held against what the watch has shown."""
    against = request.args.get("against", AGAINST[0])
    if against not in AGAINST:
        raise RefusedError(f"against: wanted: {' or '.join(AGAINST)}")
    return _show(state().debug[DEBUG_CACHE](against == "api"))


@blueprint.get(DEBUG_GANGS)
def gangs() -> Response:
    return _show(state().debug[DEBUG_GANGS]())


@blueprint.get("/debug/gangs/<namespace>/<name>")
def gang(namespace: str, name: str) -> Response:
    found = state().debug[DEBUG_GANG](f"{namespace}/{name}")
    if found is None:
        raise RefusedError(f"{request.path}: no such group", 404)
    return _show(found)


@blueprint.get(VERBOSITY)
def verbosity() -> Response:
    return _text(f"{state().verbosity}\n")


@blueprint.put(VERBOSITY)
def set_verbosity() -> Response:
    """The body is a number, as for --v. Until the process ends, or the next."""
    text = whole_body(request.environ, LARGEST_BODY).strip()
    if not text.isdigit() or int(text) > logs.MOST_VERBOSE:
        raise RefusedError(f"wanted: a number from 0 to {logs.MOST_VERBOSE}")
    before, state().verbosity = state().verbosity, int(text)
    logs.set_verbosity(state().verbosity)
    log.warning("log level changed verbosity=%d before=%d", state().verbosity, before)
    return _text(f"successfully set the verbosity to {state().verbosity}\n")


def _text(text: str) -> Response:
    return Response(text, mimetype="text/plain")


def _show(value: object) -> Response:
    return Response(msgspec.json.format(codec.encode(value), indent=2) + b"\n", mimetype="application/json")
