"""The Flask application: verbs on one port, probes, metrics and pages on the other.

`state(app)` is what the blueprints share. Nothing here knows gevent.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, cast

from flask import Flask, current_app, request

from extender.scheduler.interface import Verbs
from extender.server.options import ServeOptions

EXTENSION = "gang-extender"


class PeerWatch(Protocol):
    """Tells when the other end of a socket has hung up."""

    def watch(self, fd: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Returns what cancels it."""
        ...


class NoPeerWatch:
    """Where there is no worker: nobody hangs up."""

    def watch(self, fd: int, callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


@dataclass(slots=True)
class State:
    """ops_port None: both halves on one port, as in tests. pages: path -> what to show as JSON, on the ops port."""

    verbs: Verbs
    options: ServeOptions
    ops_port: int | None = None
    peer_watch: PeerWatch = field(default_factory=NoPeerWatch)
    pages: dict[str, Callable[[], object]] = field(default_factory=dict)


def create_app(verbs: Verbs, options: ServeOptions | None = None, *, ops_port: int | None = None) -> Flask:
    """ops_port: the port on which probes and pages are served, and nothing else."""
    from extender.server import client_auth, errors, ops
    from extender.server import verbs as verbs_blueprint

    options = options or ServeOptions()
    app = Flask("extender", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = options.max_body_bytes
    app.url_map.strict_slashes = False  # a redirect would turn kube-scheduler's POST into something else
    app.extensions[EXTENSION] = State(verbs, options, ops_port)
    client_auth.init_app(app)
    errors.init_app(app)
    app.register_blueprint(verbs_blueprint.blueprint)
    app.register_blueprint(ops.blueprint)
    return app


def state() -> State:
    """Of the running application."""
    return cast(State, current_app.extensions[EXTENSION])


def state_of(app: Flask) -> State:
    return cast(State, app.extensions[EXTENSION])


def on_ops_port() -> bool | None:
    """Whether the request came by the ops port; None where there is only one."""
    ports = state().ops_port
    if ports is None:
        return None
    return str(request.environ.get("SERVER_PORT")) == str(ports)
