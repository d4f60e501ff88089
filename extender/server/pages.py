"""Pages: /ui for people, the others for programs. On the ops port for loopback, and on a port of their own for the bearers of tokens.

/ui is one document, one style sheet and some scripts, which are the same for all callers; what they show they ask for themselves: the
cluster as it changes from /ui/events, and one gang from /gangs. No counterpart upstream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files

import msgspec
from flask import Blueprint, Response, request
from msgspec.structs import replace

from extender.api import codec
from extender.plugins.coscheduling.report.gang_status import GangStatus, GangSummary
from extender.plugins.coscheduling.report.outlook import PodStatus
from extender.scheduler.interface import (
    CONFIGURATION,
    DRAIN,
    GANG,
    GANGS,
    POD,
    WHAT_IF,
    AccessUnknownError,
    FeedClosedError,
    NotAuthenticatedError,
    NotAuthorizedError,
    Page,
    TooManyViewersError,
    Viewer,
)
from extender.server import page_auth
from extender.server.bodies import whole_body
from extender.server.errors import RefusedError, refusal
from extender.server.options import QUESTION_BYTES
from extender.server.state import state
from extender.server.verbs import HttpCaller

blueprint = Blueprint("pages", __name__)

UI, EVENTS = "/ui", "/ui/events"
FILES = {  # of extender/server/ui
    "": ("index.html", "text/html"),
    "page.css": ("page.css", "text/css"),
    "page.js": ("page.js", "text/javascript"),
    "picture.js": ("picture.js", "text/javascript"),
    "gangs.js": ("gangs.js", "text/javascript"),
}
# Nothing is loaded from elsewhere, nothing is sent elsewhere, and no text becomes markup.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
SECURE = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SILENT_SECONDS = 15.0  # after which a comment is sent: a viewer that has gone is noticed by it
MAX_NAME = 253


@blueprint.before_request
def check_caller() -> None:
    page_auth.check_caller()


@blueprint.after_request
def secure(response: Response) -> Response:
    response.headers.extend({key: value for key, value in SECURE.items() if key not in response.headers})
    if "Cache-Control" not in response.headers:
        response.headers["Cache-Control"] = "no-store"
    return response


def paths() -> list[str]:
    """What this caller can ask, each with its method; none for one that pages are not for."""
    try:
        page_auth.check_caller()
    except RefusedError:
        return []
    methods = {WHAT_IF: "POST"}
    return [f"{methods.get(path, 'GET')} {path}" for path in (*sorted(state().pages), UI)]


@blueprint.get(UI)
@blueprint.get("/ui/<file>")
def ui(file: str = "") -> Response:
    """The page itself, which holds nothing of the cluster. Its paths are relative: it may be reached through a proxy."""
    if request.path == f"{UI}/":
        return Response(status=308, headers={"Location": f"..{UI}"})
    if file not in FILES:
        raise RefusedError(f"{request.path}: not found", 404)
    name, mimetype = FILES[file]
    response = Response(_read(name), mimetype=mimetype)
    response.headers["Cache-Control"] = "no-cache"
    response.add_etag()
    response.make_conditional(request)
    return response


@cache
def _read(name: str) -> bytes:
    return files("extender.server").joinpath("ui", name).read_bytes()


@blueprint.get(EVENTS)
def events() -> Response:
    """What the page shows, as server-sent events: the whole at first, then what changes. ?namespace= for its gangs alone."""
    namespace = _namespace()
    check = page_auth.check_may_see(namespace)
    try:
        viewer = state().verbs.feed().open(namespace)
    except (TooManyViewersError, FeedClosedError) as error:
        return refusal(str(error) or "the extender is shutting down", 503)
    socket = request.environ.get("gunicorn.socket")
    let_go = socket.flush if socket is not None else lambda: None
    response = Response(_stream(viewer, check, let_go), mimetype="text/event-stream")
    response.call_on_close(HttpCaller(state(), request.environ).on_gone(viewer.close))
    response.call_on_close(viewer.close)
    return response


def _stream(viewer: Viewer, check: Callable[[], None], let_go: Callable[[], None]) -> Iterator[bytes]:
    """let_go: what is sent from here on leaves at once. check: of the viewer's rights, before each message: what was found is kept for a
    while, so that it costs a look."""
    let_go()
    yield b": welcome\n\n"
    try:
        while True:
            text = viewer.next(SILENT_SECONDS)
            check()
            yield b"data: " + text + b"\n\n" if text else b": nothing new\n\n"
    except (FeedClosedError, NotAuthenticatedError, NotAuthorizedError, AccessUnknownError):
        return  # the page asks anew, and is told why


@blueprint.get(GANGS)
def gangs() -> Response:
    """All groups, in short: those that wait first, in their order. ?namespace= for its own."""
    namespace = _namespace()
    page_auth.check_may_see(namespace)
    found = _page(GANGS)()
    if namespace and isinstance(found, list):
        found = [each for each in found if isinstance(each, GangSummary) and each.namespace == namespace]
    return _show(found)


@blueprint.get("/gangs/<namespace>/<name>")
def gang(namespace: str, name: str) -> Response:
    """One of them, with its members and what would make it fit."""
    page_auth.check_may_see(namespace, name)
    found = _page(GANG)(f"{namespace}/{name}")
    if found is None:
        raise RefusedError(f"{request.path}: no such group", 404)
    if isinstance(found, GangStatus) and not page_auth.may_see_all():
        found = found.within_namespace()
    return _show(found)


@blueprint.get("/pods/<namespace>/<name>")
def pod(namespace: str, name: str) -> Response:
    """A pod, with how its gang is doing."""
    page_auth.check_may_see(namespace)
    found = _page(POD)(f"{namespace}/{name}")
    if found is None:
        raise RefusedError(f"{request.path}: no such pod", 404)
    if isinstance(found, PodStatus) and found.gang is not None and not page_auth.may_see_all():
        found = replace(found, gang=found.gang.within_namespace())
    return _show(found)


@blueprint.get(CONFIGURATION)
def configuration() -> Response:
    """What it runs with, and what it sees to be wrong with that, or with kube-scheduler's."""
    page_auth.check_may_see()
    return _show(_page(CONFIGURATION)())


@blueprint.get("/drain/<node>")
def drain(node: str) -> Response:
    """What a drain of the node would do to gangs."""
    page_auth.check_may_see()
    found = _page(DRAIN)(node)
    if found is None:
        raise RefusedError(f"{request.path}: no such node", 404)
    return _show(found)


@blueprint.post(WHAT_IF)
def what_if() -> Response:
    """Whether a gang that is not there yet would fit. JSON only: no form of a web page can ask. ?namespace= for callers that may see
    the gangs of that one alone: they ask about gangs in it."""
    namespace = _namespace()
    page_auth.check_may_see(namespace)
    if page_auth.may_see_all():
        namespace = ""
    page = _page(WHAT_IF)
    if request.mimetype != "application/json":
        raise RefusedError("Content-Type: application/json is wanted", 415)
    return _show(page(whole_body(request.environ, QUESTION_BYTES), namespace))


def _namespace() -> str:
    namespace = request.args.get("namespace", "")
    if len(namespace) > MAX_NAME or not namespace.isprintable():
        raise RefusedError(f"namespace: wanted: a name of at most {MAX_NAME} printable characters")
    return namespace


def _page(path: str) -> Page:
    if path not in state().pages:
        raise RefusedError(f"{request.path}: not found", 404)
    return state().pages[path]


def _show(value: object) -> Response:
    """JSON as people read it."""
    text = msgspec.json.format(codec.encode(value), indent=2)
    return Response(text + b"\n", mimetype="application/json")
