"""HTTP to the API server: pools of connections, credentials, deadlines, and what a failed call is.

client/connection makes the API's verbs of it. Calls share a small pool of kept-alive connections, since a TLS handshake costs
more than a binding; bindings have a pool of their own, so that a commit waits for no patch; each watch has a connection. Where
the credentials' route changes, there are new pools, and the old connections end with the calls that they are used for.
"""

from __future__ import annotations

import logging
import math
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import urllib3
from urllib3.util import Timeout

from extender.api import codec
from extender.client import request_counts
from extender.client.answers import error_of
from extender.client.connections import Answered, ConnectionPool, new_pool
from extender.client.credentials import Credentials, Route
from extender.client.errors import ConnectionFailedError, TimedOutError, UnauthorizedError
from extender.client.identity import Identity
from extender.client.time_limit import seconds_left

if TYPE_CHECKING:
    from websocket import WebSocket

log = logging.getLogger(__name__)

POOL_SIZE = 16
IDLE_WATCHES = 32  # a watch's connection is kept for the next one: there is one for each kind
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 30.0
USER_AGENT = "gang-extender"

_ACCEPT = {"Accept": "application/json", "User-Agent": USER_AGENT}
_TIMEOUT = Timeout(connect=CONNECT_SECONDS, read=REQUEST_SECONDS)  # a pattern: urllib3 clones it for each call

_KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    # Not every system of a command's user has these under these names.
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]

_OPTIONS: Mapping[str, Any] = {
    "retries": False,
    "timeout": _TIMEOUT,
    "headers": _ACCEPT,
    "socket_options": _KEEPALIVE,
}

Body = Mapping[str, Any] | Sequence[Any]


class Pool(Enum):
    CALLS = "calls"
    BINDINGS = "bindings"
    WATCHES = "watches"


Pools = Mapping[Pool, ConnectionPool]


def _new_pools(route: Route) -> Pools:
    return {
        Pool.CALLS: new_pool(route, POOL_SIZE, block=True, options=_OPTIONS),
        Pool.BINDINGS: new_pool(route, POOL_SIZE, block=True, options=_OPTIONS),
        Pool.WATCHES: new_pool(route, IDLE_WATCHES, block=False, options=_OPTIONS),
    }


class Transport:
    """Thread-safe."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._lock = threading.Lock()  # guards the three below
        self._warned = False
        self._route: Route | None = None
        self._pools: Pools = {}

    def _pools_of(self, route: Route) -> Pools:
        """Old pools are not closed: a caller that waits for one of their connections has to get it. The last one closes them."""
        with self._lock:
            if self._route is not route:
                if self._route != route:
                    self._warn_once(route)
                    self._pools = _new_pools(route)
                self._route = route
            return self._pools

    def _warn_once(self, route: Route) -> None:
        if route.tls and not route.verify and not self._warned:
            self._warned = True
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)  # one for each request
            log.warning("the API server's certificate is not verified server=%s", route.server)

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
        """The answer's body, within the caller's time limit. A 401 is tried once more with the token read anew.

        Raises ConnectionFailedError, or the error of client/errors that the server's refusal is.
        """
        encoded = None if body is None else codec.encode(body)
        content_type = content_type if encoded is not None else ""
        return self._answer(pool, method, _with_query(path, query or {}), encoded, content_type).data

    def date(self, path: str) -> str:
        """What a GET is answered as `Date`; empty where it has none. Raises as `call`."""
        return self._answer(Pool.CALLS, "GET", path, None, "").date

    def _answer(self, pool: Pool, method: str, path: str, body: bytes | None, content_type: str) -> Answered:
        """path: with its query."""
        credentials = self._identity.current()
        answered = self._exchange(credentials, pool, method, path, body, content_type)
        if answered.status == 401:
            self._identity.renew(credentials)
            answered = self._exchange(self._identity.current(), pool, method, path, body, content_type)
        if answered.status >= 300:
            raise error_of(answered.status, answered.data, answered.retry_after)
        return answered

    def stream(self, path: str, query: Mapping[str, str], read_seconds: float) -> urllib3.BaseHTTPResponse:
        """A GET whose answer has no end; nothing for `read_seconds` is an error for the reader. Raises as `call`."""
        credentials = self._identity.current()
        left = _time_for("GET", path)
        with _failures("GET", path):
            response = self._pools_of(credentials.route)[Pool.WATCHES].urlopen(
                "GET",
                credentials.route.target + _with_query(path, query),
                headers=_headers(credentials),
                assert_same_host=False,  # of what goes through a proxy
                preload_content=False,
                timeout=_timeout(read_seconds, left),
                pool_timeout=_pool_seconds(left),  # type: ignore[arg-type] # parts of seconds, too
            )
        request_counts.counted("GET", str(response.status))
        if response.status >= 300:
            data, retry_after = response.read(), response.headers.get("Retry-After", "")
            response.close()
            if response.status == 401:
                self._identity.renew(credentials)
            raise error_of(response.status, data, retry_after)
        return response

    def websocket(self, path: str, query: Mapping[str, str], protocol: str, seconds: float) -> WebSocket:
        """An open one, for the caller to close; a read of it takes so many seconds at most. Raises as `call`."""
        credentials = self._identity.current()
        seconds = min(seconds, _time_for("GET", path))
        try:
            return self._open_websocket(credentials, _with_query(path, query), protocol, seconds)
        except UnauthorizedError:
            self._identity.renew(credentials)
            return self._open_websocket(self._identity.current(), _with_query(path, query), protocol, seconds)

    def _open_websocket(self, credentials: Credentials, path: str, protocol: str, seconds: float) -> WebSocket:
        """On a connection of its own, made as all others are."""
        from websocket import WebSocket, WebSocketBadStatusException, WebSocketException

        route = credentials.route
        where = path.partition("?")[0]
        with _failures("GET", path):
            connected = self._pools_of(route)[Pool.CALLS].connected(CONNECT_SECONDS)
        opened = WebSocket(enable_multithread=False)
        try:
            connected.settimeout(seconds)
            opened.connect(  # type: ignore[no-untyped-call]
                f"ws{route.server.removeprefix('http')}{route.path}{path}",
                socket=connected,
                subprotocols=[protocol],
                header=[f"{name}: {value}" for name, value in _headers(credentials).items()],
                suppress_origin=True,
            )
            opened.settimeout(seconds)
            return opened
        except WebSocketBadStatusException as error:
            connected.close()
            raise error_of(error.status_code, error.resp_body or b"") from error
        except (WebSocketException, OSError) as error:
            connected.close()
            raise ConnectionFailedError(f"GET {where}: {error}") from error

    def close(self) -> None:
        with self._lock:
            pools, self._pools, self._route = self._pools, {}, None
        for pool in pools.values():
            pool.close()

    def _exchange(
        self, credentials: Credentials, pool: Pool, method: str, path: str, body: bytes | None, content_type: str
    ) -> Answered:
        """path: with its query."""
        left = _time_for(method, path)
        with _failures(method, path):
            answered = self._pools_of(credentials.route)[pool].exchange(
                method,
                credentials.route.target + path,
                _headers(credentials, content_type),
                body,
                timeout=_timeout(REQUEST_SECONDS, left),
                pool_seconds=_pool_seconds(left),
            )
        request_counts.counted(method, str(answered.status))
        return answered


def _with_query(path: str, query: Mapping[str, str]) -> str:
    given = {key: value for key, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


def _headers(credentials: Credentials, content_type: str = "") -> dict[str, str]:
    headers = {**_ACCEPT, **credentials.headers()}
    if content_type:
        headers["Content-Type"] = content_type
    return headers


def _time_for(method: str, path: str) -> float:
    """Seconds until the caller's limit, infinite without one. Raises TimedOutError where it has passed."""
    left = seconds_left()
    if left <= 0:
        raise TimedOutError(f"{method} {path.partition('?')[0]}: no time was left for it")
    return left


def _pool_seconds(left: float) -> float | None:
    return left if left < math.inf else None


@contextmanager
def _failures(method: str, path: str) -> Iterator[None]:
    """What stands in the way of an answer, as errors of client/errors."""
    try:
        yield
    except (urllib3.exceptions.HTTPError, OSError) as error:
        request_counts.counted(method, "error")
        silent = isinstance(error, urllib3.exceptions.ReadTimeoutError)
        text = f"{method} {path.partition('?')[0]}: {_reason(error)}"
        raise (TimedOutError if silent else ConnectionFailedError)(text) from error


def _reason(error: Exception) -> str:
    """In words of ours where urllib3's are about itself: they stand in the events of pods."""
    match error:
        case urllib3.exceptions.EmptyPoolError():
            return f"{error.pool}: all connections were in use until the call's time was over"
        case urllib3.exceptions.ReadTimeoutError():
            return f"{error.pool}: no answer in the call's time"
    return str(error)


def _timeout(read_seconds: float, left: float) -> Timeout:
    """left: seconds until the caller's own limit; infinite without one."""
    if left < math.inf:
        return Timeout(total=left, connect=min(CONNECT_SECONDS, left), read=min(read_seconds, left))
    return _TIMEOUT if read_seconds == REQUEST_SECONDS else Timeout(connect=CONNECT_SECONDS, read=read_seconds)
