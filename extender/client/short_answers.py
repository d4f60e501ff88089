"""An answer whose head came in one piece and names its length: nearly every one of an API server's. Read without http.client.

client/connections asks here first, and gives what was received to http.client where this is another kind of answer: http.client makes
a buffered file, a message and a dozen look-ups of it, which costs more than the TLS beside it (docs/design/0058-lean-plumbing.md).
"""

from __future__ import annotations

import io
import re
from http.client import IncompleteRead
from typing import Any

MAX_HEADERS = 100
MAX_RECEIVED = 16 * 1024  # bytes: a record of TLS
_STATUS = re.compile(r"HTTP/1\.1 ([2-5][0-9][0-9])(?: .*)?")
_WITHOUT_BODY = frozenset({204, 304})
_OF_OTHER_KINDS = ("transfer-encoding", "content-encoding")

Headers = dict[str, str]


def head_of(received: bytes) -> tuple[int, Headers, int, bytes] | None:
    """Status, headers by their names in lower case, the body's length, and what is there of it. None: for http.client to read."""
    head, end, body = received.partition(b"\r\n\r\n")
    if not end or head.count(b"\n") != head.count(b"\r\n"):
        return None
    first, *lines = head.decode("iso-8859-1").split("\r\n")
    status = _STATUS.fullmatch(first)
    if status is None or len(lines) > MAX_HEADERS:
        return None
    headers: Headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            return None
        headers.setdefault(name.lower(), value.strip())
    length = headers.get("content-length", "")
    code = int(status[1])
    if not (length.isascii() and length.isdecimal()) or code in _WITHOUT_BODY:
        return None
    if any(name in headers for name in _OF_OTHER_KINDS):
        return None
    return code, headers, int(length), body


def rest_of(sock: Any, body: bytes, length: int) -> bytes:
    """The whole body; longer than `length` where the server sends what was not asked for. Raises IncompleteRead, OSError."""
    parts, missing = [body], length - len(body)
    while missing > 0:
        part = sock.recv(min(missing, MAX_RECEIVED))
        if not part:
            raise IncompleteRead(b"".join(parts), missing)
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


class Replayed:
    """A socket of which something was received already: as much of one as http.client.HTTPResponse uses."""

    def __init__(self, sock: Any, received: bytes) -> None:
        self._sock = sock
        self._received = received

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Behind(self._sock, self._received))


class _Behind(io.RawIOBase):
    def __init__(self, sock: Any, received: bytes) -> None:
        self._sock = sock
        self._received = received

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._received:
            return int(self._sock.recv_into(buffer))
        part, self._received = self._received[: len(buffer)], self._received[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)
