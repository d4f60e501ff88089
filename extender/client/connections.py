"""Kept-alive connections as the API client wants them: a request goes out in one piece, and a look at the socket is rare.

client/transport makes its pools of them, straight to the server or through a proxy. http.client writes headers and body apart,
which is two TLS records, two packets, and a server that wakes up twice; it reads an answer's headers by the parser for mail,
which costs more than all else about them; urllib3 polls the socket before each use, which costs as much as the request.
docs/design/0013-cpu-per-pod.md has the numbers.
"""

from __future__ import annotations

import http.client
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util import make_headers, parse_url

from extender.client.credentials import Route

# A connection that was used so lately is not looked at: a server that closed it costs a failed call.
TRUSTED_SECONDS = 1.0

MAX_HEADERS = 100
MAX_HEADER_LINE = 65536


class _Answer(http.client.HTTPResponse):
    """With headers as API servers and proxies write them since RFC 7230: a name, a colon, a value, each on one line."""

    def begin(self) -> None:
        status = http.client.CONTINUE
        while status == http.client.CONTINUE:
            version, status, reason = self._read_status()  # type: ignore[attr-defined]
            headers = _headers(self.fp)
        if not version.startswith("HTTP/1."):
            raise http.client.UnknownProtocol(version)
        self.version = 10 if version == "HTTP/1.0" else 11
        self.code = self.status = status
        self.reason = reason.strip()
        self.headers = self.msg = headers
        self.chunked = headers.get("transfer-encoding", "").lower() == "chunked"
        self.chunk_left = None
        self.length = self._length(headers)
        self.will_close = self._check_close() or not (self.chunked or self.length is not None)  # type: ignore[attr-defined]

    def _length(self, headers: http.client.HTTPMessage) -> int | None:
        if self.status in (http.client.NO_CONTENT, http.client.NOT_MODIFIED):
            return 0
        length = headers.get("content-length", "")
        return int(length) if length.isdecimal() and not self.chunked else None


def _headers(lines: Any) -> http.client.HTTPMessage:
    """Up to the empty line. Raises HTTPException for what is no header."""
    headers = http.client.HTTPMessage()
    for _ in range(MAX_HEADERS + 1):
        line = lines.readline(MAX_HEADER_LINE + 1)
        if line in (b"\r\n", b"\n"):
            return headers
        name, colon, value = line.decode("iso-8859-1").partition(":")
        if not colon or not line.endswith(b"\n") or name != name.strip():
            raise http.client.HTTPException(f"not a header: {line[:64]!r}")
        headers.set_raw(name, value.strip())
    raise http.client.HTTPException(f"got more than {MAX_HEADERS} headers")


class _InOnePiece(HTTPConnection):
    """The pool gives a connection to one caller at a time."""

    def __str__(self) -> str:
        """In the texts of errors, which users read."""
        return f"{self.host}:{self.port}"

    response_class = _Answer
    _held: list[bytes] | None = None
    _used = float("-inf")

    def request(self, *args: Any, **kwargs: Any) -> None:
        self._held = []
        try:
            super().request(*args, **kwargs)
            held, self._held = self._held, None
            super().send(b"".join(held))
        finally:
            self._held = None
        self._used = time.monotonic()

    def send(self, data: Any) -> None:
        if self._held is not None and isinstance(data, bytes):
            self._held.append(data)
        else:
            super().send(data)

    @property
    def is_connected(self) -> bool:
        """Asked before the connection is used again."""
        if self.sock is not None and time.monotonic() - self._used < TRUSTED_SECONDS:
            return True
        return super().is_connected


class _InOnePieceOverTls(_InOnePiece, HTTPSConnection):
    pass


def _place(pool: urllib3.HTTPConnectionPool) -> str:
    """Likewise."""
    return f"{pool.host}:{pool.port}"


class PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _InOnePiece
    __str__ = _place


class TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _InOnePieceOverTls
    __str__ = _place


def new_pool(route: Route, size: int, *, block: bool, options: Mapping[str, Any]) -> urllib3.HTTPConnectionPool:
    """block: no more connections than `size`. options: of urllib3's pools. Raises IdentityError."""
    options = {**options, "maxsize": size, "block": block}
    if context := route.ssl_context():
        options |= {"ssl_context": context, "server_hostname": route.server_name or None}
        options |= {"assert_hostname": None if context.check_hostname else False}
    manager: urllib3.PoolManager
    if route.proxy:
        proxy = parse_url(route.proxy)
        headers = make_headers(proxy_basic_auth=unquote(proxy.auth)) if proxy.auth else None
        manager = urllib3.ProxyManager(proxy._replace(auth=None).url, 1, proxy_headers=headers)
    else:
        manager = urllib3.PoolManager(1)
    manager.pool_classes_by_scheme = {"http": PlainPool, "https": TlsPool}
    server = parse_url(route.server)
    return manager.connection_from_host(server.host, server.port, server.scheme, options)
