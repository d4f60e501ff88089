"""The Flask application: verbs on one port, probes, metrics and pages on the other.

serve runs it under the worker; tests run it by Flask's own client. It decides nothing and knows nothing of gevent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Flask, Request, Response
from werkzeug.routing import MapAdapter

from extender.scheduler.interface import Verbs
from extender.server import client_auth, debug, errors, ops, page_auth, pages, straight, verbs
from extender.server.options import ServeOptions
from extender.server.state import EXTENSION, VERBS, Port, State, port, state_of

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment


class Application(Flask):
    def wsgi_app(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """A verb that may be asked goes straight to it, all else through Flask's dispatch."""
        verb = straight.verb_of(environ, state_of(self))
        if verb is None:
            return super().wsgi_app(environ, start_response)
        return straight.answer(self, verb, environ, start_response)

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """By path and method: the name that a caller uses for us (Host, the name in a URL) decides nothing here."""
        if request is None:
            return super().create_url_adapter(request)
        return MapAdapter(self.url_map, "", "/", "", "http", request.path, request.method)


def create_app(scheduler: Verbs, options: ServeOptions | None = None, *, ops_port: int | None = None) -> Flask:
    """ops_port: the port on which probes and pages are served, and nothing else."""
    options = options or ServeOptions()
    app = Application("extender", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = options.max_body_bytes
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.strict_slashes = False  # a redirect would turn kube-scheduler's POST into something else
    app.extensions[EXTENSION] = State(
        scheduler, options, ops_port, debug=dict(scheduler.debug()), verbosity=options.verbosity
    )
    client_auth.init_app(app)
    errors.init_app(app)
    page_auth.init_app(app)
    app.register_blueprint(verbs.blueprint)
    app.register_blueprint(ops.blueprint)
    app.register_blueprint(pages.blueprint)
    app.register_blueprint(debug.blueprint)
    app.add_url_rule("/", view_func=index)
    return app


def index() -> Response:
    """What can be asked here."""
    here = port()
    paths: dict[str, object] = {}
    if here in (Port.VERBS, None):
        paths["verbs"] = [f"POST /{verb}" for verb in VERBS]
    if here in (Port.OPS, None):
        paths["ops"] = [*ops.paths(), *pages.paths(), *debug.paths()]
    if here is Port.PAGES:
        paths["pages"] = pages.paths()
    return errors.answer(paths)
