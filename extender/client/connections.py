"""Kept-alive connections as the API client wants them: a request goes out in one piece, and a look at the socket is rare.

client/transport makes its pools of them, straight to the server or through a proxy. http.client writes headers and body apart,
which is two TLS records, two packets, and a server that wakes up twice; it reads an answer's headers by the parser for mail,
which costs more than all else about them; urllib3 polls the socket before each use, which costs as much as the request, and what it can
do beside (retries, redirects, encodings, headers that come twice) costs more than that.
docs/design/0013-cpu-per-pod.md has the numbers.
"""

from __future__ import annotations

import http.client
import io
import re
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Self, cast
from urllib.parse import quote, unquote

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import InvalidHeader, ProtocolError, ReadTimeoutError, SSLError
from urllib3.util import make_headers, parse_url

from extender.client.credentials import Route
from extender.client.short_answers import MAX_HEADERS, MAX_RECEIVED, Replayed, head_of, rest_of

# A connection that was used so lately is not looked at: a server that closed it costs a failed call.
TRUSTED_SECONDS = 1.0

_NO_HEADER = re.compile(r"[^\t\x20-\x7e\x80-\xff]")
_IN_TARGETS = "/?&=:,;@!$'()*+~%"
"""What stands in a path with a query, beside letters, digits, `_`, `.` and `-`; `%` too, since parts of it are quoted already."""

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


Headers = (
    dict[str, str] | http.client.HTTPMessage | urllib3.HTTPHeaderDict
)  # names in small letters, or looked up in any case


@dataclass(frozen=True, slots=True)
class Answered:
    """A whole answer. retry_after, date: as the server says them; empty where it does not."""

    status: int
    data: bytes
    retry_after: str = ""
    date: str = ""

    @classmethod
    def of(cls, status: int, data: bytes, headers: Headers) -> Self:
        return cls(status, data, headers.get("retry-after", ""), headers.get("date", ""))


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

    def exchange(self, method: str, request: bytes, read_seconds: float) -> tuple[Answered, bool]:
        """The answer, and whether the connection can be used again. It is connected. Raises OSError, HTTPException."""
        self.sock.settimeout(read_seconds)
        with suppress(BrokenPipeError, ConnectionResetError):  # it may have answered before it hung up
            self.sock.sendall(request)
        self._used = time.monotonic()
        received = self.sock.recv(MAX_RECEIVED)
        found = head_of(received) if method != "HEAD" else None
        if found is None:
            return self._by_http_client(method, received)
        status, headers, length, body = found
        body = rest_of(self.sock, body, length)
        again = len(body) == length and "close" not in headers.get("connection", "").lower()
        return Answered.of(status, body[:length], headers), again

    def _by_http_client(self, method: str, received: bytes) -> tuple[Answered, bool]:
        with closing(_Answer(cast(socket.socket, Replayed(self.sock, received)), method=method)) as answer:
            answer.begin()
            data = answer.read()
            if answer.headers.get("content-encoding"):  # though we ask for none
                data = urllib3.HTTPResponse(io.BytesIO(data), answer.headers.items(), answer.status).data  # type: ignore[arg-type]
            return Answered.of(answer.status, data, answer.headers), not answer.will_close

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


class ConnectionPool(urllib3.HTTPConnectionPool):
    """Of kept connections; straight to the server a call goes by `exchange`, past what urllib3 can do beside."""

    __str__ = _place

    def exchange(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        *,
        timeout: urllib3.Timeout,
        pool_seconds: float | None,
    ) -> Answered:
        """One request and its whole answer. Raises as `urlopen`: HTTPError of urllib3, OSError."""
        if self.proxy is not None:
            return self._through_proxy(method, target, headers, body, timeout, pool_seconds)
        request = self._request(method, target, headers, body)
        connection = cast(_InOnePiece, self._get_conn(timeout=pool_seconds))
        again = False
        try:
            timeout = timeout.clone()
            timeout.start_connect()
            self._connect(connection, timeout)
            answered, again = connection.exchange(method, request, cast(float, timeout.read_timeout))
            return answered
        except TimeoutError as error:
            raise ReadTimeoutError(self, target, str(error)) from error
        except ssl.SSLError as error:
            raise SSLError(error) from error
        except (OSError, http.client.HTTPException) as error:
            raise ProtocolError("Connection aborted.", error) from error
        finally:
            if not again:
                connection.close()
            self._put_conn(connection)

    def _connect(self, connection: _InOnePiece, timeout: urllib3.Timeout) -> None:
        """One that is not, or no longer."""
        if connection.is_closed:
            connection.timeout = cast(float, timeout.connect_timeout)
            self._validate_conn(connection)
            if connection.is_closed:
                connection.connect()

    def connected(self, seconds: float) -> socket.socket:
        """A connection that this pool does not keep, for the caller to close. seconds: for making it. Raises as `exchange`."""
        connection = cast(_InOnePiece, self._new_conn())
        connection.timeout = seconds
        try:
            if self.proxy is not None and self.scheme == "https":
                self._prepare_proxy(connection)  # which connects
            else:
                connection.connect()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise ProtocolError("Connection aborted.", error) from error
        return cast(socket.socket, connection.sock)

    def _through_proxy(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
        timeout: urllib3.Timeout,
        pool_seconds: float | None,
    ) -> Answered:
        response = self.urlopen(
            method,
            target,
            body=body,
            headers={**headers},
            assert_same_host=False,
            timeout=timeout,
            pool_timeout=pool_seconds,  # type: ignore[arg-type] # parts of seconds
        )
        return Answered.of(response.status, response.data, response.headers)

    def _request(self, method: str, target: str, headers: Mapping[str, str], body: bytes | None) -> bytes:
        host = f"[{self.host}]" if ":" in self.host else self.host
        given = {"Host": host if self.port == self.ConnectionCls.default_port else f"{host}:{self.port}"}
        given |= {"Accept-Encoding": "identity", **headers}
        if body is not None:
            given["Content-Length"] = str(len(body))
        for name, value in given.items():
            if _NO_HEADER.search(value):
                raise InvalidHeader(f"not the value of a header: {name}")
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        return f"{method} {quote(target, safe=_IN_TARGETS)} HTTP/1.1\r\n{head}\r\n".encode("iso-8859-1") + (body or b"")


class PlainPool(ConnectionPool):
    ConnectionCls = _InOnePiece


class TlsPool(ConnectionPool, urllib3.HTTPSConnectionPool):
    ConnectionCls = _InOnePieceOverTls


def new_pool(route: Route, size: int, *, block: bool, options: Mapping[str, Any]) -> ConnectionPool:
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
    return cast(ConnectionPool, manager.connection_from_host(server.host, server.port, server.scheme, options))
