"""How requests go out over kept-alive connections: in one piece, over the same connection, checked when it has rested."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from extender.client import connections
from extender.client.connections import PlainPool

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Answers what it reads, a piece at a time, and notes the pieces and who brought them."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.pieces: list[bytes] = []
        self.callers = 0
        self.hang_up = threading.Event()
        self.hung_up = threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    @property
    def port(self) -> int:
        port: int = self.socket.getsockname()[1]
        return port

    def _run(self) -> None:
        while True:
            try:
                client, _ = self.socket.accept()
            except OSError:
                return
            self.callers += 1
            with client:
                while piece := client.recv(65536):
                    self.pieces.append(piece)
                    client.sendall(ANSWER)
                    if self.hang_up.is_set():
                        break
            self.hung_up.set()

    def stop(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.stop()


@pytest.fixture
def pool(server: Server) -> Iterator[PlainPool]:
    with PlainPool("127.0.0.1", server.port, maxsize=1, block=True, retries=False) as made:
        yield made


def test_headers_and_body_go_out_in_one_piece(server: Server, pool: PlainPool) -> None:
    assert pool.request("POST", "/bind", body=b'{"a": 1}').status == 200

    (piece,) = server.pieces
    assert piece.startswith(b"POST /bind HTTP/1.1\r\n")
    assert piece.endswith(b'\r\n\r\n{"a": 1}')


def test_calls_share_a_connection(server: Server, pool: PlainPool) -> None:
    for _ in range(3):
        pool.request("GET", "/")

    assert server.callers == 1


def test_a_connection_that_rested_is_checked_and_replaced(
    server: Server, pool: PlainPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TRUSTED_SECONDS", 0.0)
    server.hang_up.set()
    pool.request("GET", "/")
    assert server.hung_up.wait(5)
    server.hang_up.clear()

    assert pool.request("GET", "/").status == 200
    assert server.callers == 2
