"""A client's socket that does not wait for ever: first byte, whole request and each send have their time.

The worker puts it in the place of the accepted socket; a deadline that has passed reads as the end of the stream, which
gunicorn takes quietly. Also keeps a sender that never stops from having the event loop to itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

BIG_READ = 8192


class RequestTooLargeError(OSError):
    """More bytes than any request has."""


class DeadlineSocket:
    """idle until the first byte, then `request_seconds` for the whole request; `rearm` before the next one."""

    def __init__(
        self,
        sock: Any,
        *,
        idle_seconds: float,
        request_seconds: float,
        send_seconds: float,
        max_bytes: int,
        give_way: Callable[[], None],
    ) -> None:
        self._sock = sock
        self._idle_seconds = idle_seconds
        self._request_seconds = request_seconds
        self._send_seconds = send_seconds
        self._max_bytes = max_bytes
        self._give_way = give_way
        self.expired = False
        self.rearm()

    def rearm(self) -> None:
        self._until: float | None = None
        self._room = self._max_bytes

    def recv(self, size: int, *flags: int) -> bytes:
        left = self._idle_seconds if self._until is None else self._until - time.monotonic()
        if self.expired or left <= 0 or self._room <= 0:
            self.expired = True
            return b""
        self._sock.settimeout(left)
        try:
            data: bytes = self._sock.recv(size, *flags)
        except TimeoutError:
            self.expired = True
            return b""
        if self._until is None:
            self._until = time.monotonic() + self._request_seconds
        self._room -= len(data)
        if len(data) >= BIG_READ:
            self._give_way()  # a receive that finds data does not yield by itself
        return data

    def sendall(self, data: bytes) -> None:
        self._sock.settimeout(self._send_seconds)
        self._sock.sendall(data)

    def send(self, data: bytes) -> int:
        self._sock.settimeout(self._send_seconds)
        sent: int = self._sock.send(data)
        return sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)
