"""gevent: which modules may import it, and that `serve` patches before anything else is there."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import trustme
from gevent import monkey

import extender

PACKAGE = Path(extender.__file__).parent
MAY_IMPORT_GEVENT = {
    "server/serve.py",
    "server/worker.py",
    "server/peer_watch.py",
    "server/loop_lag.py",
    "server/greenlets.py",
}


def imports(file: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
    return found


def test_only_the_worker_and_what_starts_it_know_gevent() -> None:
    users = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if "gevent" in imports(file)}
    assert users == MAY_IMPORT_GEVENT


def test_the_patch_is_the_first_thing_that_serve_does() -> None:
    docstring, first, second, *_ = ast.parse((PACKAGE / "server/serve.py").read_text()).body
    assert isinstance(docstring, ast.Expr)
    assert ast.unparse(first) == "from gevent import monkey"
    assert ast.unparse(second) == "monkey.patch_all()"


def test_metrics_know_nothing_of_the_server() -> None:
    assert not imports(PACKAGE / "metrics.py") & {"flask", "gevent", "gunicorn", "werkzeug"}


class Hello(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture
def api_server(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A TLS server: its port and its CA's file."""
    import ssl

    ca = trustme.CA()
    ca.cert_pem.write_to_path(tmp_path / "ca.crt")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    server = HTTPServer(("127.0.0.1", 0), Hello)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_port, tmp_path / "ca.crt"
    server.shutdown()
    server.server_close()
    thread.join()


ASK = """
import extender.cli.main          # as the command does, before it knows that it will serve
from extender.server import serve
import ssl, threading, urllib3, kubernetes.config
from gevent import monkey
assert monkey.is_module_patched("ssl") and monkey.is_module_patched("threading")
assert urllib3.util.ssl_.SSLContext is ssl.SSLContext
got = []
def ask():
    with urllib3.PoolManager(ca_certs={ca!r}) as http:
        got.append(http.request("GET", "https://127.0.0.1:{port}/").data)
thread = threading.Thread(target=ask)
thread.start()
thread.join()
assert serve.offload(sum, [1, 2]) == 3
print(got)
"""


def test_a_tls_call_under_the_patch(api_server: tuple[int, Path]) -> None:
    port, ca = api_server
    asked = subprocess.run(
        [sys.executable, "-W", "error", "-c", ASK.format(ca=str(ca), port=port)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (asked.returncode, asked.stdout.strip(), asked.stderr) == (0, "[b'hello']", "")


def test_the_tests_own_process_is_not_patched() -> None:
    """As by the import of a program that serves: threads of the tests that block would stop all of them."""
    assert not monkey.is_module_patched("threading")
