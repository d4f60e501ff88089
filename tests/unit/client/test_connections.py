"""How requests go out over kept-alive connections: in one piece, over the same connection, checked when it has rested."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterator

import pytest
import urllib3

from extender.client import connections
from extender.client.connections import Answered, PlainPool

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


Call = Callable[..., Answered]


@pytest.fixture(params=["urllib3", "exchange"])
def call(request: pytest.FixtureRequest, pool: PlainPool) -> Call:
    """The way of watches and of what goes through a proxy, and the way of all other calls."""

    def by_urllib3(method: str, path: str, body: bytes | None = None) -> Answered:
        response = pool.request(method, path, body=body)
        return Answered(response.status, response.data, response.headers.get("Retry-After", ""))

    def by_exchange(method: str, path: str, body: bytes | None = None) -> Answered:
        return pool.exchange(method, path, {}, body, timeout=urllib3.Timeout(5), pool_seconds=None)

    return by_urllib3 if request.param == "urllib3" else by_exchange


def test_headers_and_body_go_out_in_one_piece(server: Server, call: Call) -> None:
    assert call("POST", "/bind", body=b'{"a": 1}').status == 200

    (piece,) = server.pieces
    assert piece.startswith(b"POST /bind HTTP/1.1\r\n")
    assert piece.endswith(b'\r\n\r\n{"a": 1}')


def test_calls_share_a_connection(server: Server, call: Call) -> None:
    for _ in range(3):
        call("GET", "/")

    assert server.callers == 1


def test_a_connection_that_rested_is_checked_and_replaced(
    server: Server, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TRUSTED_SECONDS", 0.0)
    server.hang_up.set()
    call("GET", "/")
    assert server.hung_up.wait(5)
    server.hang_up.clear()

    assert call("GET", "/").status == 200
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
def test_answers_are_read_as_http_says(server: Server, call: Call, answer: bytes, status: int, body: bytes) -> None:
    server.answer = answer
    server.hang_up.set()
    found = call("GET", "/")
    assert (found.status, found.data) == (status, body)
    assert found.retry_after == ("7" if status == 429 else "")


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
def test_what_is_no_answer_is_a_failed_call(server: Server, call: Call, answer: bytes) -> None:
    server.answer = answer
    server.hang_up.set()
    with pytest.raises(urllib3.exceptions.HTTPError):
        call("GET", "/")


def test_an_answer_that_is_encoded_though_we_did_not_ask_is_decoded(server: Server, call: Call) -> None:
    body = gzip.compress(b"{}")
    server.answer = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    assert call("GET", "/").data == b"{}"


def test_nothing_that_is_written_becomes_a_request_of_its_own(server: Server, pool: PlainPool) -> None:
    timeout = urllib3.Timeout(5)
    with pytest.raises(urllib3.exceptions.InvalidHeader, match="Authorization"):
        pool.exchange("GET", "/", {"Authorization": "a\r\nHost: b"}, None, timeout=timeout, pool_seconds=None)
    pool.exchange("GET", "/a b\r\n/\u00e9?c=%2F", {}, None, timeout=timeout, pool_seconds=None)
    (piece,) = server.pieces
    assert piece.startswith(b"GET /a%20b%0D%0A/%C3%A9?c=%2F HTTP/1.1\r\nHost: 127.0.0.1:")
