"""The gunicorn application, started from Python so that no environment variable changes it.

Imported by the serve command only, and first of all: what imports ssl or threading before the patch stays unpatched.
"""

from gevent import monkey

monkey.patch_all()

import contextlib  # noqa: E402
import socket  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import Callable  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import gevent  # noqa: E402
from flask import Flask  # noqa: E402
from gunicorn.app.base import BaseApplication  # noqa: E402

from extender.scheduler.interface import Verbs  # noqa: E402
from extender.server import logs  # noqa: E402
from extender.server.app import create_app, state_of  # noqa: E402
from extender.server.options import ServeOptions  # noqa: E402
from extender.server.worker import Worker  # noqa: E402

SWITCH_SECONDS = 1e-4  # how long a native thread that computes may keep the event loop waiting

Offload = Callable[..., Any]
BuildVerbs = Callable[[Offload], Verbs]


class PortTakenError(OSError):
    """Somebody else listens there."""


def offload(function: Callable[..., Any], *args: Any) -> Any:
    """Runs a pure function on a native thread, so that the event loop goes on meanwhile."""
    return gevent.get_hub().threadpool.apply(function, args)


def run(build_verbs: BuildVerbs, options: ServeOptions) -> int:
    """Serves until SIGTERM or SIGINT. build_verbs is called in the worker. Raises OptionsError, PortTakenError."""
    options.check()
    for address, port in ((options.bind_address, options.port), (options.ops_bind_address, options.ops_port)):
        _check_free(address, port)
    if options.tls:
        for path in (options.tls_cert_file, options.tls_private_key_file, options.client_ca_file):
            Path(path).read_bytes()  # says now, by name, what is missing
    sys.setswitchinterval(SWITCH_SECONDS)
    Worker.options = options
    try:
        Application(build_verbs, options).run()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    return 0


def _check_free(address: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            raise PortTakenError(f"cannot listen on {address}:{port}: {error.strerror}") from error


class Application(BaseApplication):  # type: ignore[misc]
    def __init__(self, build_verbs: BuildVerbs, options: ServeOptions) -> None:
        self._build_verbs = build_verbs
        self._serve_options = options
        super().__init__()

    def load_config(self) -> None:
        options = self._serve_options
        settings = {
            "bind": [_listen(options.bind_address, options.port), _listen(options.ops_bind_address, options.ops_port)],
            "workers": 1,
            "worker_class": Worker,
            "worker_connections": options.worker_connections,
            "backlog": 2048,
            "keepalive": int(options.idle_seconds),
            "timeout": options.blocked_seconds,
            "graceful_timeout": int(options.drain_seconds) + 2,
            "http_protocols": "h1",
            "control_socket_disable": True,
            "preload_app": False,
            "max_requests": 0,
            "worker_tmp_dir": _memory_folder(),
            "limit_request_line": 1024,
            "limit_request_fields": 32,
            "limit_request_field_size": 4096,
            "forwarded_allow_ips": "",
            "accesslog": None,
            "errorlog": "-",
            "loglevel": "info" if options.verbosity >= 2 else "warning",
            "proc_name": "gang-extender",
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        logs.set_up(self._serve_options.verbosity)
        verbs = self._build_verbs(offload)
        app = create_app(verbs, self._serve_options, ops_port=self._serve_options.ops_port)
        pages = getattr(verbs, "pages", None)
        if pages is not None:
            state_of(app).pages.update(pages())
        return app


def _listen(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _memory_folder() -> str:
    """gunicorn's heartbeat file: in memory, since a root file system may be read-only."""
    for folder in ("/dev/shm", tempfile.gettempdir()):  # noqa: S108 - only the worker's heartbeat
        with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder):
            return folder
    return tempfile.gettempdir()
