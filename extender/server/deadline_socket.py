"""A client's socket that does not wait for ever: first byte, whole request and each send have their time.

The worker puts it in the place of the accepted socket; a deadline that has passed reads as the end of the stream, which
gunicorn takes quietly. Also keeps a sender that never stops from having the event loop to itself.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

BIG_READ = 8192


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds and bytes. give_way lets others run, fairly."""

    idle_seconds: float
    request_seconds: float
    send_seconds: float
    max_bytes: int
    give_way: Callable[[], None]


class DeadlineSocket:
    """idle_seconds until the first byte, then request_seconds for the whole request; `rearm` before the next one."""

    def __init__(self, sock: Any, limits: Limits) -> None:
        self._sock = sock
        self._limits = limits
        self.expired = False
        self.receiving = False  # whether the peer is waited for
        self._hung_up = False
        self._held: list[bytes] | None = None
        self.rearm()

    def handshake(self, context: ssl.SSLContext) -> None:
        """TLS's, before the first request. Raises OSError, ssl.SSLError among them. It keeps no time: the caller does."""
        self.receiving = True
        try:
            self._sock = context.wrap_socket(self._sock, server_side=True, do_handshake_on_connect=False)
            self._sock.do_handshake()
        finally:
            self.receiving = False

    def rearm(self) -> None:
        self._until: float | None = None
        self._room = self._limits.max_bytes

    def hurry(self, seconds: float) -> None:
        """What is still to come of this request has no more time than that."""
        self._until = time.monotonic() + seconds

    def recv(self, size: int, *flags: int) -> bytes:
        left = self._limits.idle_seconds if self._until is None else self._until - time.monotonic()
        if self.expired or left <= 0 or self._room <= 0:
            self.expired = True
            return b""
        self.receiving = True
        try:
            self._sock.settimeout(left)
            data: bytes = self._sock.recv(size, *flags)
        except TimeoutError:
            self.expired = True
            return b""
        except OSError:
            if not self._hung_up:
                raise
            return b""
        finally:
            self.receiving = False
        if self._until is None:
            self._until = time.monotonic() + self._limits.request_seconds
        self._room -= len(data)
        if len(data) >= BIG_READ:
            self._limits.give_way()  # a receive that finds data does not yield by itself
        return data

    def hold(self) -> None:
        """What is sent from here on waits for `flush`: gunicorn sends headers and body apart, which is two packets."""
        self._held = []

    def flush(self) -> None:
        """Sends what was held, in one piece. Raises as sendall."""
        held, self._held = self._held, None
        if held:
            self.sendall(b"".join(held))

    def sendall(self, data: bytes) -> None:
        """Raises BrokenPipeError for a peer that does not read in time: to gunicorn one that has gone."""
        if self._held is not None:
            self._held.append(data)
            return
        try:
            self._sock.settimeout(self._limits.send_seconds)
            self._sock.sendall(data)
        except TimeoutError as error:
            self.expired = True
            raise BrokenPipeError(errno.EPIPE, "the peer does not read") from error

    def close(self) -> None:
        self._held = None  # there is no caller left to send it to
        self._sock.close()

    def hang_up(self) -> None:
        """Ends the connection from outside: a thread that waits in recv gets the end of the stream."""
        self.expired = self._hung_up = True
        with suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # below TLS, which would say goodbye first

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)
