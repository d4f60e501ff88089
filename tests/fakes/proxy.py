"""An HTTP proxy on loopback: passes bytes on where it is asked to CONNECT, and plain requests by their whole URL."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class FakeProxy:
    """`asked`: method and target of each request; `authorizations`: what they brought to be let through."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.authorizations: list[str] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = [self._listener]
        self._threads: list[threading.Thread] = []
        self._spawn(self._accept)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def stop(self) -> None:
        for each in self._sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for each in self._sockets:
            each.close()

    def _spawn(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._sockets.append(near)
            self._spawn(self._serve, near)

    def _serve(self, near: socket.socket) -> None:
        with suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                piece = near.recv(65536)
                if not piece:
                    return
                head += piece
            first, *headers = head.split(b"\r\n\r\n")[0].decode().split("\r\n")
            self.asked.append(first.rpartition(" ")[0])
            self.authorizations += [each for each in headers if each.lower().startswith("proxy-authorization:")]
            method, target, version = first.split()
            url = urlsplit(target if method != "CONNECT" else f"//{target}")
            try:
                far = socket.create_connection((url.hostname, url.port))
            except OSError:
                near.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
                near.shutdown(socket.SHUT_RDWR)
                return
            self._sockets.append(far)
            if method == "CONNECT":
                near.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = f"{url.path}?{url.query}" if url.query else url.path
                far.sendall(head.replace(first.encode(), f"{method} {path} {version}".encode(), 1))
            self._spawn(_pass_on, far, near)
            _pass_on(near, far)


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
