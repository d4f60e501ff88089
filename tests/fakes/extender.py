"""An HTTP extender on loopback that answers what a test tells it, and keeps what it was asked.

It plays the other side of scheduler/http_extender, and of the doctor; no verb decides anything by itself.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = Any


class FakeExtender:
    """`answers`: verb -> JSON, or bytes as they are. `asked`: verb -> the bodies. A verb without an answer is a 404.
    `pages`: path -> JSON, or text, of the ops listener."""

    def __init__(self, answers: Mapping[str, Json] | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.answers: dict[str, Json] = dict(answers or {})
        self.pages: dict[str, Json] = {}
        self.asked: dict[str, list[Json]] = {}
        self.status = 200
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        extender = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                verb = self.path.lstrip("/")
                body = self.rfile.read(int(self.headers["Content-Length"]))
                extender.asked.setdefault(verb, []).append(json.loads(body))
                answer = extender.answers.get(verb)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self._send(extender.status if verb in extender.answers else 404, data)

            def do_GET(self) -> None:
                page = extender.pages.get(self.path.partition("?")[0])
                data = page.encode() if isinstance(page, str) else json.dumps(page).encode()
                self._send(200 if page is not None else 404, data)

            def _send(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  - the base's name
                """Quiet."""

        return Handler
