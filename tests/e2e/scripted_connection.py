"""The line from the extender to the API server on which a test says what befalls the next calls and the lines of watches.

It uses the proxy of faulty_connection, and draws nothing at random. Used by test_lines.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import urllib3

from tests.e2e.faulty_connection import FaultyConnection, _answer, _cut

Befalls = Callable[[BaseHTTPRequestHandler, bytes], None]


@dataclass(frozen=True, slots=True)
class Call:
    """at: monotonic seconds. query: without those that were empty."""

    at: float
    method: str
    path: str
    query: dict[str, str]

    @property
    def is_watch(self) -> bool:
        return "watch" in self.query

    @property
    def is_list(self) -> bool:
        """Of everything; a check of the version asks for one object."""
        return self.method == "GET" and not self.is_watch and self.query.get("limit", "1") != "1"


class CutHereError(OSError):
    """The connection ends after these bytes."""

    def __init__(self, rest: bytes) -> None:
        super().__init__("cut")
        self.rest = rest


def as_it_is(path: str, line: bytes) -> bytes:
    return line


class ScriptedConnection(FaultyConnection):
    """All passes until a test says otherwise, and again after `pass_all`."""

    def __init__(self, server: str, ca_file: Path) -> None:
        super().__init__(server, ca_file, seed=0)
        self._noted = threading.Lock()  # guards the next three
        self._calls: list[Call] = []
        self._bindings: deque[Befalls] = deque()
        self._reads: list[tuple[re.Pattern[str], Befalls]] = []
        self.line: Callable[[str, bytes], bytes] = as_it_is  # path and a line of a watch -> what is passed on
        self._let_go = threading.Event()
        self._stalled: set[object] = set()

    def stop(self) -> None:
        self.pass_all()
        super().stop()

    def pass_all(self) -> None:
        with self._noted:
            self._bindings.clear()
            self._reads.clear()
        self.line = as_it_is
        self._let_go.set()
        self._let_go = threading.Event()

    def befall_bindings(self, *faults: Befalls) -> None:
        """The next ones, each another."""
        with self._noted:
            self._bindings.extend(faults)

    def befall_reads(self, pattern: str, fault: Befalls, times: int = 1) -> None:
        """The next so many gets, lists and watches of which path and query match."""
        with self._noted:
            self._reads += [(re.compile(pattern), fault)] * times

    def stall_watches(self) -> None:
        """Nothing more comes on those that are open, not even their end."""
        with self._lock:
            self._stalled |= self._watches

    def calls(self, pattern: str, since: float = 0.0) -> list[Call]:
        """Those of which method and path match."""
        with self._noted:
            return [
                each for each in self._calls if each.at >= since and re.search(pattern, f"{each.method} {each.path}")
            ]

    # What may befall a call

    def lost_after(self, call: BaseHTTPRequestHandler, body: bytes) -> None:
        """Carried out, and the answer is lost."""
        self._ask(call, body).drain_conn()
        _cut(call)

    def never_answered(self, call: BaseHTTPRequestHandler, body: bytes) -> None:
        """Not carried out, and the caller hears nothing until all passes again."""
        self._let_go.wait(60)
        _cut(call)

    def until_released(self, call: BaseHTTPRequestHandler, body: bytes) -> None:
        """Carried out when all passes again."""
        self._let_go.wait(60)
        self.pass_on(call, body)

    def refused(self, code: int, reason: str, retry_after: int = 0, message: str = "injected") -> Befalls:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
        headers = {"Retry-After": str(retry_after)} if retry_after else {}
        return lambda call, body: _answer(call, code, json.dumps({**status, "message": message}).encode(), headers)

    # The proxy

    def read(self, call: BaseHTTPRequestHandler) -> None:
        self._note(call)
        self._next_of_reads(call)(call, b"")

    def change(self, call: BaseHTTPRequestHandler, body: bytes) -> None:
        self._note(call)
        fault: Befalls = self.pass_on
        with self._noted:
            if call.path.endswith("/binding") and self._bindings:
                fault = self._bindings.popleft()
        fault(call, body)

    def _next_of_reads(self, call: BaseHTTPRequestHandler) -> Befalls:
        with self._noted:
            for each in self._reads:
                if each[0].search(call.path):
                    self._reads.remove(each)
                    return each[1]
        return self.pass_on

    def _note(self, call: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(call.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        with self._noted:
            self._calls.append(Call(time.monotonic(), call.command, parts.path, query))

    def _stream(self, call: BaseHTTPRequestHandler, answer: urllib3.BaseHTTPResponse) -> None:
        call.send_response(answer.status)
        call.send_header("Content-Type", answer.headers.get("Content-Type", "application/json"))
        call.send_header("Transfer-Encoding", "chunked")
        call.end_headers()
        path, rest = urlsplit(call.path).path, b""
        for piece in answer.stream(65536):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._stand_still_if_stalled(call)
                self._pass_line(call, path, line + b"\n")
        self._stand_still_if_stalled(call)
        call.wfile.write(b"0\r\n\r\n")

    def _pass_line(self, call: BaseHTTPRequestHandler, path: str, line: bytes) -> None:
        try:
            _chunk(call, self.line(path, line))
        except CutHereError as cut:
            with suppress(OSError):
                _chunk(call, cut.rest)
            raise

    def _stand_still_if_stalled(self, call: BaseHTTPRequestHandler) -> None:
        with self._lock:
            stalled = call.connection in self._stalled
        if stalled:
            self._let_go.wait(60)
            raise ConnectionAbortedError


def _chunk(call: BaseHTTPRequestHandler, lines: bytes) -> None:
    if lines:
        call.wfile.write(b"%x\r\n%s\r\n" % (len(lines), lines))
