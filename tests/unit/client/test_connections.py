"""How requests go out over kept-alive connections: in one piece, over the same connection, checked when it has rested."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
import urllib3

from extender.client import connections
from extender.client.connections import PlainPool

OK = b"HTTP/1.1 200 OK\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


class Server:
    """Answers what it reads, a piece at a time, and notes the pieces and the connections that brought them."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.pieces: list[bytes] = []
        self.answer = ANSWER
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
                    client.sendall(self.answer)
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


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        pytest.param(OK + b"Content-Length: 3\r\n\r\nabcd", 200, b"abc", id="as long as it says"),
        pytest.param(
            OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", 200, b"abc", id="in chunks"
        ),
        pytest.param(OK + b"\r\nabc", 200, b"abc", id="to its end, where it does not say"),
        pytest.param(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200, b"abc", id="of an old proxy"),
        pytest.param(b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", id="without a body"),
        pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER, 200, b"{}", id="after another that means nothing"),
        pytest.param(
            b"HTTP/1.1 429 Slow\r\nretry-after:  7 \r\ncontent-length: 0\r\n\r\n", 429, b"", id="in small letters"
        ),
    ],
)
def test_answers_are_read_as_http_says(
    server: Server, pool: PlainPool, answer: bytes, status: int, body: bytes
) -> None:
    server.answer = answer
    server.hang_up.set()
    found = pool.request("GET", "/")
    assert (found.status, found.data) == (status, body)
    assert found.headers.get("Retry-After", "") == ("7" if status == 429 else "")


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"nonsense\r\n\r\n", id="no HTTP at all"),
        pytest.param(OK + b"no colon\r\n\r\n", id="a header without a colon"),
        pytest.param(OK + b"A: b\r\n folded\r\n\r\n", id="a header on two lines"),
        pytest.param(OK + b"A: b", id="cut off in a header"),
        pytest.param(OK + b"A: b\r\n" * 200 + b"\r\n", id="headers without end"),
        pytest.param(OK + b"A: " + b"b" * 70_000 + b"\r\n\r\n", id="a header without end"),
        pytest.param(OK + b"Content-Length: 9\r\n\r\nabc", id="a body that ends too soon"),
    ],
)
def test_what_is_no_answer_is_a_failed_call(server: Server, pool: PlainPool, answer: bytes) -> None:
    server.answer = answer
    server.hang_up.set()
    with pytest.raises(urllib3.exceptions.HTTPError):
        pool.request("GET", "/")
