"""HTTP to the API server: pools of connections, credentials, deadlines, and what a failed call is.

client/connection makes the API's verbs of it. Calls share a small pool of kept-alive connections, since a TLS handshake costs
more than a binding; bindings have a pool of their own, so that a commit waits for no patch; each watch has a connection.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any
from urllib.parse import urlencode

import urllib3
from urllib3.util import Timeout

from extender import metrics
from extender.api import codec
from extender.client.answers import error_of
from extender.client.connections import PlainPool, TlsPool
from extender.client.errors import ConnectionFailedError, TimedOutError, UnauthorizedError
from extender.client.identity import Identity

POOL_SIZE = 16
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
USER_AGENT = "gang-extender"

_ACCEPT = {"Accept": "application/json", "User-Agent": USER_AGENT}
_TIMEOUT = Timeout(connect=CONNECT_SECONDS, read=REQUEST_SECONDS)  # a pattern: urllib3 clones it for each call

_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
]

Body = Mapping[str, Any] | Sequence[Any]


class Pool(Enum):
    CALLS = "calls"
    BINDINGS = "bindings"
    WATCHES = "watches"


class Transport:
    """Thread-safe."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._pools = {
            Pool.CALLS: self._new_pool(POOL_SIZE, block=True),
            Pool.BINDINGS: self._new_pool(POOL_SIZE, block=True),
            Pool.WATCHES: self._new_pool(1, block=False),
        }

    def _new_pool(self, size: int, *, block: bool) -> urllib3.HTTPConnectionPool:
        options: dict[str, Any] = {
            "maxsize": size,
            "block": block,
            "retries": False,
            "timeout": _TIMEOUT,
            "headers": _ACCEPT,
            "socket_options": _KEEPALIVE,
        }
        url = urllib3.util.parse_url(self._identity.host)
        context = self._identity.ssl_context()
        host, port = url.host or "localhost", url.port
        if context is None:
            return PlainPool(host, port or 80, **options)
        if name := self._identity.server_hostname:
            options["server_hostname"] = name
        return TlsPool(
            host, port or 443, ssl_context=context, assert_hostname=None if context.check_hostname else False, **options
        )

    def call(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        content_type: str = "application/json",
        pool: Pool = Pool.CALLS,
    ) -> bytes:
        """The answer's body. A 401 is tried once more with the token read anew.

        Raises ConnectionFailedError, or the error of client/errors that the server's refusal is.
        """
        for last in (False, True):
            response = self._send(pool, method, path, query or {}, body=body, content_type=content_type)
            if response.status == 401 and not last:
                self._identity.refresh()
                continue
            if response.status >= 300:
                raise error_of(response.status, response.data, response.headers.get("Retry-After", ""))
            return response.data
        raise UnauthorizedError("the server does not accept our credentials")

    def stream(self, path: str, query: Mapping[str, str], read_seconds: float) -> urllib3.BaseHTTPResponse:
        """A GET whose answer has no end; nothing for `read_seconds` is an error of whoever reads it. Raises as `call`."""
        response = self._send(Pool.WATCHES, "GET", path, query, stream=True, read_seconds=read_seconds)
        if response.status >= 300:
            data, retry_after = response.read(), response.headers.get("Retry-After", "")
            response.close()
            if response.status == 401:
                self._identity.refresh()
            raise error_of(response.status, data, retry_after)
        return response

    def close(self) -> None:
        for pool in self._pools.values():
            pool.close()

    def _send(
        self,
        pool: Pool,
        method: str,
        path: str,
        query: Mapping[str, str],
        *,
        body: Body | None = None,
        content_type: str = "application/json",
        stream: bool = False,
        read_seconds: float = REQUEST_SECONDS,
    ) -> urllib3.BaseHTTPResponse:
        given = {key: value for key, value in query.items() if value}
        headers = {**_ACCEPT, **self._identity.headers()}
        if body is not None:
            headers["Content-Type"] = content_type
        patient = read_seconds != REQUEST_SECONDS
        try:
            response = self._pools[pool].urlopen(
                method,
                f"{path}?{urlencode(given)}" if given else path,
                body=None if body is None else codec.encode(body),
                headers=headers,
                preload_content=not stream,
                timeout=Timeout(connect=CONNECT_SECONDS, read=read_seconds) if patient else _TIMEOUT,
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            metrics.child(metrics.api_requests, method, "error").inc()
            silent = isinstance(error, urllib3.exceptions.ReadTimeoutError)
            raise (TimedOutError if silent else ConnectionFailedError)(f"{method} {path}: {error}") from error
        metrics.child(metrics.api_requests, method, str(response.status)).inc()
        return response
