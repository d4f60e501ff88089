"""Kept-alive connections as the API client wants them: a request goes out in one piece, and a look at the socket is rare.

client/connection makes its pools of them. http.client writes headers and body apart, which is two TLS records, two
packets, and a server that wakes up twice; urllib3 polls the socket before each use, which costs as much as the request.
"""

from __future__ import annotations

import time
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

TRUSTED_SECONDS = (
    1.0  # a connection that was used so lately is not looked at: a server that closed it costs a failed call
)


class _InOnePiece(HTTPConnection):
    """The pool gives a connection to one caller at a time."""

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


class PlainPool(urllib3.HTTPConnectionPool):
    ConnectionCls = _InOnePiece


class TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _InOnePieceOverTls
