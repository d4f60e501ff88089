"""A TCP relay on loopback in front of the API server, which a test opens and shuts: an API server that is down.

Used by test_startup.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

from tests.e2e.processes import free_port


class Relay:
    """Refuses connections until `open`; `shut` cuts those that are there."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self._target_port = target_port
        self._lock = threading.Lock()  # guards the two lists
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener: socket.socket | None = None

    def open(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._spawn(self._accept, self._listener)

    def shut(self) -> None:
        with self._lock:
            sockets, self._sockets = self._sockets, []
            threads, self._threads = self._threads, []
        listener, self._listener = self._listener, None
        for each in [*sockets, *([listener] if listener else [])]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5)
        for each in [*sockets, *([listener] if listener else [])]:
            each.close()

    def _spawn(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, name="relay", daemon=True)  # type: ignore[arg-type]
        with self._lock:
            self._threads.append(thread)
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target_port))
            except OSError:
                return
            with self._lock:
                self._sockets += [near, far]
            self._spawn(self._pass_on, near, far)
            self._spawn(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
