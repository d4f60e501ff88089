"""The line from the extender to the API server, and all that goes wrong on one: refused for now, lost before, lost after, late.

An HTTP proxy on loopback. A call that is lost after it was carried out is the worst: the caller does not know. What befalls the bytes
is `link`'s, which may stand behind this. Used by fault runs.
"""

from __future__ import annotations

import json
import random
import socket
import threading
from contextlib import suppress
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import urllib3

from tests.e2e.watch_faults import WatchFaults

READ_SECONDS = 90.0
LATE_SECONDS = 0.7
PASSED_ON = ("Authorization", "Content-Type", "Accept", "User-Agent")


class Fault(Enum):
    UNAVAILABLE = "503 without having been carried out"
    TOO_MANY = "429 without having been carried out"
    LOST_BEFORE = "cut without having been carried out"
    LOST_AFTER = "carried out, and cut"
    FAILED_AFTER = "carried out, and 500"
    LATE = "carried out late"


class ReadFault(Enum):
    """Answers to a list or to the start of a watch."""

    UNAUTHORIZED = 401
    FORBIDDEN = 403
    GONE = 410
    TOO_MANY = 429
    TIMEOUT = 504


REASONS = {401: "Unauthorized", 403: "Forbidden", 410: "Expired", 429: "TooManyRequests", 504: "Timeout"}


class FaultyConnection:
    """Good until `trouble`; then so large a share of the calls that change something has a fault, until `quiet`.

    `trouble_reads`: likewise of the lists and the starts of watches; `trouble_watches`: of the lines of those that start then.
    `cut` ends all watches at once. `forbid` answers every read with 403, as an API server that has not read the roles yet,
    until `allow`. `faults` counts what has happened.
    """

    def __init__(self, server: str, ca_file: Path, seed: int) -> None:
        self._random = random.Random(seed)
        self._share = self._read_share = self._line_share = 0.0
        self._read_fault: ReadFault | None = None  # None: any
        self._forbidding = False
        self.forbidden: set[str] = set()  # paths
        self._lock = threading.Lock()  # guards the random numbers, faults and the watches
        self._watches: set[socket.socket] = set()
        self.faults: dict[Fault | ReadFault, int] = dict.fromkeys((*Fault, *ReadFault), 0)
        self._late = threading.Event()
        self._far = urllib3.PoolManager(maxsize=32, ca_certs=str(ca_file), retries=False)
        self._server_url = server
        self._near = _Server(("127.0.0.1", 0), self._handler())
        self._near.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._near.server_address[1]}"
        self._thread = threading.Thread(target=self._near.serve_forever, args=(0.05,), name="faulty-connection")

    def start(self) -> FaultyConnection:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._late.set()
        self._near.shutdown()
        self.cut()
        self._near.server_close()
        self._thread.join()
        self._far.clear()

    def trouble(self, share: float) -> None:
        self._share = share

    def trouble_reads(self, share: float, fault: ReadFault | None = None) -> None:
        self._read_fault, self._read_share = fault, share

    def trouble_watches(self, share: float) -> None:
        self._line_share = share

    def quiet(self) -> None:
        self._share = self._read_share = self._line_share = 0.0

    def forbid(self) -> None:
        self.forbidden.clear()
        self._forbidding = True

    def allow(self) -> None:
        self._forbidding = False

    def cut(self) -> None:
        with self._lock:
            watches = list(self._watches)
        for each in watches:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _fault(self) -> Fault | None:
        with self._lock:
            if self._random.random() >= self._share:
                return None
            fault = self._random.choice(list(Fault))
            self.faults[fault] += 1
            return fault

    def _read_fault_now(self) -> ReadFault | None:
        with self._lock:
            if self._random.random() >= self._read_share:
                return None
            fault = self._read_fault or self._random.choice(list(ReadFault))
            self.faults[fault] += 1
            return fault

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        line = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                line.read(self)

            def do_POST(self) -> None:
                line.change(self, self.rfile.read(int(self.headers.get("Content-Length", 0))))

            def do_PATCH(self) -> None:
                self.do_POST()

            def do_DELETE(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
                """Says nothing."""

        return Handler

    def read(self, call: BaseHTTPRequestHandler) -> None:
        if self._forbidding:
            self.forbidden.add(call.path.partition("?")[0])
            _answer(call, 403, b'{"kind":"Status","code":403,"reason":"Forbidden","message":"RBAC: no roles yet"}')
        elif (fault := self._read_fault_now()) is not None:
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "injected by the fault run"}
            body = json.dumps({**status, "code": fault.value, "reason": REASONS[fault.value]}).encode()
            _answer(call, fault.value, body, {"Retry-After": "1"} if fault is ReadFault.TOO_MANY else None)
        else:
            self.pass_on(call, b"")

    def change(self, call: BaseHTTPRequestHandler, body: bytes) -> None:
        fault = self._fault()
        if fault is Fault.UNAVAILABLE:
            _answer(call, 503, b"the server is currently unable to handle the request")
        elif fault is Fault.TOO_MANY:
            _answer(call, 429, b"too many requests", {"Retry-After": "1"})
        elif fault is Fault.LOST_BEFORE:
            _cut(call)
        elif fault in (Fault.LOST_AFTER, Fault.FAILED_AFTER):
            self._ask(call, body).drain_conn()
            if fault is Fault.LOST_AFTER:
                _cut(call)
            else:
                _answer(call, 500, b"etcdserver: request timed out")
        else:
            if fault is Fault.LATE:
                self._late.wait(LATE_SECONDS)
            self.pass_on(call, body)

    def _ask(self, call: BaseHTTPRequestHandler, body: bytes) -> urllib3.BaseHTTPResponse:
        headers = {name: call.headers[name] for name in PASSED_ON if name in call.headers}
        return self._far.request(
            call.command,
            self._server_url + call.path,
            body=body or None,
            headers=headers,
            preload_content=False,
            timeout=READ_SECONDS,
        )

    def pass_on(self, call: BaseHTTPRequestHandler, body: bytes) -> None:
        try:
            answer = self._ask(call, body)
        except (OSError, urllib3.exceptions.HTTPError):  # the server is not there
            _cut(call)
            return
        try:
            if "watch=true" not in call.path:
                kept = {name: answer.headers[name] for name in ("Content-Type",) if name in answer.headers}
                _answer(call, answer.status, answer.read(), kept)
                return
            with self._lock:
                self._watches.add(call.connection)
            self._stream(call, answer)
        except (OSError, urllib3.exceptions.HTTPError):
            _cut(call)  # the caller's end, or the server's
        finally:
            with self._lock:
                self._watches.discard(call.connection)
            answer.close()

    def _stream(self, call: BaseHTTPRequestHandler, answer: urllib3.BaseHTTPResponse) -> None:
        call.send_response(answer.status)
        call.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        call.send_header("Transfer-Encoding", "chunked")
        call.end_headers()
        with self._lock:
            faults = WatchFaults(random.Random(self._random.random()), self._line_share)
        for piece in answer.stream(65536):
            if lines := faults.treat(piece):
                call.wfile.write(b"%x\r\n%s\r\n" % (len(lines), lines))
        call.wfile.write(b"0\r\n\r\n")


class _Server(ThreadingHTTPServer):
    # For five a gang's eight Bindings are too many: the kernel asks again for a connection after a second.
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that was killed, or a server that stands still: the caller has seen it."""


def _answer(call: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
    call.send_response(status)
    for name, value in (headers or {}).items():
        call.send_header(name, value)
    call.send_header("Content-Length", str(len(body)))
    call.end_headers()
    call.wfile.write(body)


def _cut(call: BaseHTTPRequestHandler) -> None:
    call.close_connection = True
    with suppress(OSError):
        call.connection.shutdown(socket.SHUT_RDWR)
