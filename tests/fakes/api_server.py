"""A little API server over HTTP whose every answer is scripted: what the real one does only on a bad day."""

from __future__ import annotations

import json
import ssl
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PATIENCE = 60.0  # seconds, with what is to come for certain, on a machine with much else to do


@dataclass
class Answer:
    """status and body; a watch gives `lines`, then ends, or goes on in silence (`hang`).

    cut: the beginning of a line, at which the connection ends. stub: likewise, but the answer ends as it should.
    until: the answer is kept back for so long. no_answer: the connection is closed instead.
    """

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    lines: Sequence[Any] = ()
    hang: bool = False
    cut: str = ""
    stub: str = ""
    no_answer: bool = False
    until: threading.Event | None = None


def status_of(code: int, reason: str = "", **details: Any) -> Answer:
    body = {
        "kind": "Status",
        "code": code,
        "reason": reason,
        "message": f"{reason} from the script",
        "details": details,
    }
    return Answer(code, body)


def page(*objects: dict[str, Any], version: str = "1", next: str = "") -> Answer:  # noqa: A002
    return Answer(body={"metadata": {"resourceVersion": version, "continue": next}, "items": list(objects)})


def event(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": obj}


def node(name: str, version: str = "1", uid: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or name, "resourceVersion": version}}


def bookmark(version: str) -> dict[str, Any]:
    return event("BOOKMARK", {"metadata": {"resourceVersion": version}})


def _common_name(connection: Any) -> str:
    certificate: Any = connection.getpeercert() if isinstance(connection, ssl.SSLSocket) else None
    subject: Any = (certificate or {}).get("subject", ())
    return next((value for part in subject for key, value in part if key == "commonName"), "")


def request_of(method: str, path: str) -> str:
    """list, check, watch or other."""
    query = parse_qs(urlsplit(path).query)
    if method != "GET" or "watch" in query:
        return "watch" if method == "GET" else "other"
    return {"": "other", "1": "check"}.get(query.get("limit", [""])[0], "list")


class FakeAPIServer:
    """Answers lists, checks (lists of one object), watches and everything else, each from a script of its own; a script's last
    answer repeats. tls: where it speaks HTTPS; `callers` are then the common names of the clients' certificates."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.callers: list[str] = []
        self.checks: deque[Answer] = deque([page(version="999999")])
        self.lists: deque[Answer] = deque()
        self.watches: deque[Answer] = deque()
        self.others: deque[Answer] = deque()
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []  # method, path, headers, body
        self._changed = threading.Condition()
        self._over = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                outer._answer(self, self.rfile.read(length))

            do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._scheme = "https" if tls else "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def requests(self) -> list[str]:
        """What was asked for, in order."""
        return [request_of(method, path) for method, path, _, _ in self.seen]

    def await_calls(self, count: int, where: Callable[[str, str], bool] = lambda method, path: True) -> None:
        def enough() -> bool:
            return sum(where(method, path) for method, path, _, _ in self.seen) >= count

        with self._changed:
            assert self._changed.wait_for(enough, PATIENCE), f"not {count} calls: {[s[:2] for s in self.seen]}"

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        watching = request_of(handler.command, handler.path) == "watch"
        script = {"watch": self.watches, "check": self.checks, "list": self.lists}.get(
            request_of(handler.command, handler.path), self.others
        )
        with self._changed:
            self.seen.append((handler.command, handler.path, dict(handler.headers), body))
            self.callers.append(_common_name(handler.connection))
            self._changed.notify_all()
            answer = script.popleft() if len(script) > 1 else script[0] if script else Answer(hang=watching, body={})
        if answer.no_answer:
            handler.close_connection = True
            return
        if answer.until is not None:
            answer.until.wait(10)
        if watching and answer.status == 200:
            self._stream(handler, answer)
            return
        data = json.dumps(answer.body).encode()
        handler.send_response_only(answer.status)
        headers = {"Date": handler.date_time_string(), "Content-Length": str(len(data)), **answer.headers}
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    def _stream(self, handler: BaseHTTPRequestHandler, answer: Answer) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        handler.close_connection = answer.hang or bool(answer.cut)
        lines = (json.dumps(line).encode() + b"\n" for line in answer.lines)
        for data in (*lines, answer.cut.encode(), answer.stub.encode()):
            if data:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        handler.wfile.flush()
        if answer.hang:
            self._over.wait(10)
        elif not answer.cut:
            handler.wfile.write(b"0\r\n\r\n")
