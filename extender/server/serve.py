"""The gunicorn application, started from Python so that no environment variable changes it.

Imported by the serve command only, and first of all: what imports ssl or threading before the patch stays unpatched.
"""

from gevent import monkey

monkey.patch_all()

import contextlib  # noqa: E402
import json  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from dataclasses import asdict  # noqa: E402
from importlib.metadata import version  # noqa: E402
from typing import Any  # noqa: E402

import gevent  # noqa: E402
from flask import Flask  # noqa: E402
from gunicorn.app.base import BaseApplication  # noqa: E402
from gunicorn.arbiter import Arbiter  # noqa: E402
from gunicorn.glogging import Logger  # noqa: E402

from extender import metrics  # noqa: E402
from extender.crash import on_native_thread, report_deferred  # noqa: E402
from extender.framework.giving_way import GIVING_WAY  # noqa: E402
from extender.scheduler.interface import Verbs  # noqa: E402
from extender.server import collector, greenlets, heartbeat, logs  # noqa: E402
from extender.server.app import create_app  # noqa: E402
from extender.server.options import ServeOptions  # noqa: E402
from extender.server.state import state_of  # noqa: E402
from extender.server.tls import Certificates  # noqa: E402
from extender.server.worker import Worker  # noqa: E402

log = logging.getLogger(__name__)

SWITCH_SECONDS = 1e-4  # how long a native thread that computes may keep the event loop waiting
SPARE_FILES = 256  # descriptors beside the clients' connections
# By these gunicorn would take over listeners or settings from the process that started us.
IGNORED_ENVIRONMENT = ("GUNICORN_PID", "GUNICORN_FD", "GUNICORN_CMD_ARGS", "LISTEN_PID", "LISTEN_FDS")

Offload = Callable[..., Any]
BuildVerbs = Callable[[Offload], Verbs]


class PortTakenError(OSError):
    """Another program listens there, or the address is not ours."""


def offload(function: Callable[..., Any], *args: Any) -> Any:
    """Runs a pure function on a native thread, so that the event loop goes on meanwhile."""
    try:
        with GIVING_WAY.waiting():
            return gevent.get_hub().threadpool.apply(on_native_thread, (function, *args))
    finally:
        report_deferred()


def run(build_verbs: BuildVerbs, options: ServeOptions) -> int:
    """Serves until SIGTERM or SIGINT; the exit code. build_verbs is called in the worker, anew after a crash of it.

    Raises OptionsError for wrong use, OSError (PortTakenError among them) for what is not there.
    """
    options.check()
    for address, port in _addresses(options):
        _check_free(address, port)
    Certificates.of(options)  # says now, by name, what is missing or wrong
    for name in IGNORED_ENVIRONMENT:
        os.environ.pop(name, None)
    _allow_open_files(2 * options.worker_connections + SPARE_FILES)
    sys.setswitchinterval(SWITCH_SECONDS)
    collector.expect_lists()
    GIVING_WAY.sleep = monkey.get_original("time", "sleep")  # of native threads
    logs.set_up(options.verbosity, logs.write_if_ready, options.logging_format)
    Worker.options = options
    heartbeat.install()
    master = os.getpid()
    try:
        Application(build_verbs, options).run()
    except SystemExit as ended:
        if os.getpid() != master:
            raise  # a worker on its way out: its own code tells the master what happened
        return 0 if ended.code in (0, None) else 1
    return 0


def _check_free(address: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise PortTakenError(f"cannot listen on {address}:{port}: {error.strerror}") from error


def _allow_open_files(wanted: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class OneWorker(Arbiter):  # type: ignore[misc]
    """gunicorn's master. The state is one process's: no signal may start a second worker beside the first."""

    def handle_hup(self) -> None:
        self.log.info("SIGHUP ignored: certificates are read again by themselves, the rest needs a restart")

    def handle_ttin(self) -> None:
        self.log.info("signal ignored: there is one worker")

    handle_ttou = handle_usr2 = handle_winch = handle_ttin


class RootLogger(Logger):  # type: ignore[misc]
    """gunicorn's own lines take the way of all others."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Application(BaseApplication):  # type: ignore[misc]
    def __init__(self, build_verbs: BuildVerbs, options: ServeOptions) -> None:
        self._build_verbs = build_verbs
        self._serve_options = options
        super().__init__()

    def load_config(self) -> None:
        for name, value in _settings(self._serve_options).items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """In the worker."""
        metrics.build_info.labels(version("gang-extender")).set(1)
        flags = json.dumps(asdict(self._serve_options), separators=(",", ":"))
        log.info("flags in effect version=%s flags=%s", version("gang-extender"), flags)
        verbs = self._build_verbs(offload)
        app = create_app(verbs, self._serve_options, ops_port=self._serve_options.ops_port)
        state_of(app).pages.update(verbs.pages())
        state_of(app).greenlets = greenlets.greenlets
        return app

    def run(self) -> None:
        OneWorker(self).run()


def _addresses(options: ServeOptions) -> list[tuple[str, int]]:
    ops = [(address, options.ops_port) for address in options.ops_addresses]
    pages = [(options.pages_bind_address, options.pages_port)] if options.pages else []
    return [(options.bind_address, options.port), *ops, *pages]


def _settings(options: ServeOptions) -> dict[str, Any]:
    """gunicorn's. No certfile: the worker does TLS itself, for those ports that have it."""
    return {
        "bind": [_listen(address, port) for address, port in _addresses(options)],
        "workers": 1,
        "worker_class": Worker,
        "worker_connections": options.worker_connections,
        "backlog": 2048,
        "keepalive": max(1, int(options.idle_seconds)),
        "timeout": options.blocked_seconds,
        "graceful_timeout": int(options.drain_seconds) + 3,
        "http_protocols": "h1",
        "control_socket_disable": True,
        "preload_app": False,
        "worker_exit": _say_the_rest,
        "max_requests": 0,
        "limit_request_line": 1024,
        "limit_request_fields": 32,
        "limit_request_field_size": 4096,
        "forwarded_allow_ips": "",
        "accesslog": None,
        "errorlog": "-",
        "logger_class": RootLogger,
        "loglevel": "debug" if options.verbosity >= 6 else "info" if options.verbosity >= 2 else "warning",
        "proc_name": "gang-extender",
    }


def _say_the_rest(_: Arbiter, worker: Worker) -> None:
    worker.say_the_rest()


def _listen(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
