"""What the blueprints share while a request runs: the verbs, the options, the watch over callers, the pages.

Put on `app.extensions` by create_app; the worker puts in its own watch over callers. Nothing here knows gevent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, cast

from flask import Flask, current_app, request

from extender.scheduler.interface import Page, Verbs
from extender.server.options import ServeOptions
from extender.server.refused_clients import RefusedClients
from extender.server.stacks import Tasks

EXTENSION = "gang-extender"
VERBS = ("filter", "prioritize", "preempt", "bind")
PROBES = ("livez", "readyz", "healthz", "metrics")


class Port(Enum):
    """VERBS: for kube-scheduler. OPS: probes and metrics, and pages for loopback. PAGES: pages for the bearers of tokens."""

    VERBS = "verbs"
    OPS = "ops"
    PAGES = "pages"


class PeerWatch(Protocol):
    """Tells when the other end of a socket has hung up."""

    def watch(self, fd: int, callback: Callable[[], None]) -> Callable[[], None]:
        """Returns what cancels it."""
        ...

    def is_gone(self, fd: int) -> bool:
        """Whether it has by now."""
        ...


class NoPeerWatch:
    """Where there is no worker: no caller hangs up."""

    def watch(self, fd: int, callback: Callable[[], None]) -> Callable[[], None]:
        return lambda: None

    def is_gone(self, fd: int) -> bool:
        return False


@dataclass(slots=True)
class State:
    """ops_port None: all on one port, as in tests. pages, debug: path -> what to show as JSON. greenlets: what there is of them.
    verbosity: of the log, as it is now."""

    verbs: Verbs
    options: ServeOptions
    ops_port: int | None = None
    peer_watch: PeerWatch = field(default_factory=NoPeerWatch)
    pages: dict[str, Page] = field(default_factory=dict)
    refused_clients: RefusedClients = field(default_factory=RefusedClients)
    debug: dict[str, Page] = field(default_factory=dict)
    greenlets: Tasks = list
    verbosity: int = 2


def state() -> State:
    """Of the running application."""
    return cast(State, current_app.extensions[EXTENSION])


def state_of(app: Flask) -> State:
    return cast(State, app.extensions[EXTENSION])


def port() -> Port | None:
    """Which of the ports the running request came by; None where there is only one."""
    return port_of(state(), request.environ)


def port_of(state: State, environ: Mapping[str, Any]) -> Port | None:
    """Likewise, of any request."""
    if state.ops_port is None:
        return None
    options = state.options
    match str(environ.get("SERVER_PORT")):  # of the listener, not of the Host header
        case number if number == str(state.ops_port):
            return Port.OPS
        case number if options.pages and number == str(options.pages_port):
            return Port.PAGES
    return Port.VERBS
