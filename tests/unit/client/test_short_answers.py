"""Answers that are read without http.client mean what http.client makes of them, or are left to it."""

from __future__ import annotations

import io
from http.client import HTTPException
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extender.client import connections
from extender.client.connections import Answered
from extender.client.short_answers import head_of

HEAD = b"HTTP/1.1 200 OK\r\nAudit-Id: a\r\nContent-Length: 3\r\n\r\n"


class Answering:
    """A socket whose peer sends these bytes in pieces, and hangs up."""

    def __init__(self, data: bytes, size: int = 65536) -> None:
        self._data = io.BytesIO(data)
        self._size = size

    def recv(self, size: int) -> bytes:
        return self._data.read(min(size, self._size))

    def recv_into(self, buffer: Any) -> int:
        part = self.recv(len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def sendall(self, data: bytes) -> None:
        """What was asked makes no difference."""

    def settimeout(self, seconds: float) -> None:
        """Nothing is waited for."""


def read(data: bytes, size: int, method: str = "GET", *, short: bool = True) -> object:
    """The answer, and whether the connection goes on; or the kind of error."""
    connection = connections._InOnePiece("127.0.0.1", 1)
    connection.sock = Answering(data, size)
    try:
        return connection.exchange(method, b"", 1.0) if short else connection._by_http_client(method, b"")
    except (HTTPException, OSError, ValueError) as error:
        return type(error)


ANSWERS = [
    pytest.param(HEAD + b"abc", id="a whole answer"),
    pytest.param(HEAD + b"ab", id="one that is cut off"),
    pytest.param(HEAD[:-2], id="a head that is cut off"),
    pytest.param(b"", id="none"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b"Connection: Close") + b"abc", id="the last of its connection"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b"Retry-After: 7") + b"abc", id="a time to wait"),
    pytest.param(HEAD.replace(b"200 OK", b"429 Too Many Requests") + b"abc", id="a refusal"),
    pytest.param(HEAD.replace(b"200 OK", b"200") + b"abc", id="no reason"),
    pytest.param(HEAD.replace(b"200 OK", b"204 No Content"), id="no content"),
    pytest.param(HEAD.replace(b"200 OK", b"304 Not Modified"), id="not modified"),
    pytest.param(b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + b"abc", id="an interim answer before it"),
    pytest.param(HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"abc", id="HTTP/1.0"),
    pytest.param(HEAD.replace(b"HTTP/1.1", b"HTTP/2.0") + b"abc", id="another version"),
    pytest.param(HEAD.replace(b"200", b"2 0") + b"abc", id="no status"),
    pytest.param(HEAD.replace(b"Content-Length: 3\r\n", b"") + b"abc", id="until it hangs up"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b"Content-Length: 2") + b"abc", id="two lengths"),
    pytest.param(HEAD.replace(b": 3", b": +3") + b"abc", id="a length that is none"),
    pytest.param(HEAD.replace(b": 3", b": \xb3") + b"abc", id="a digit of another script"),
    pytest.param(HEAD.replace(b"Content-Length: 3", b"Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n", id="chunked"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b"Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n", id="chunked, with a length"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b" folded") + b"abc", id="a line that is no header"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b"Audit-Id") + b"abc", id="a header without a colon"),
    pytest.param(HEAD.replace(b"\r\n", b"\n") + b"abc", id="lines that end in LF alone"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b"X: 1\nY: 2") + b"abc", id="one of them does"),
    pytest.param(HEAD.replace(b"Audit-Id: a", b"\r\n".join(b"X: %d" % number for number in range(200))) + b"abc", id="200 headers"),
]  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("size", [1, 40, 65536])
def test_an_answer_is_read_as_http_client_reads_it(answer: bytes, size: int) -> None:
    assert_same(answer, size)


PIECES = st.sampled_from([
    b"HTTP/1.1 ", b"HTTP/1.0 ", b"200", b" OK", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"Content-Length", b":", b" ", b"3", b"0", b"abc",
    b"Transfer-Encoding: chunked", b"Connection: close", b"\x00", b"\xff", b"\xb2", HEAD[:-2],
])  # fmt: skip


@given(data=st.lists(PIECES, max_size=14).map(b"".join), size=st.sampled_from([1, 30, 65536]))
def test_any_bytes_are(data: bytes, size: int) -> None:
    assert_same(data, size)


def assert_same(data: bytes, size: int) -> None:
    short, whole = read(data, size), read(data, size, short=False)
    if isinstance(short, tuple) and isinstance(whole, tuple) and whole[1]:
        assert short[0] == whole[0]  # the one difference: what comes unasked ends the connection
    else:
        assert short == whole


def test_a_connection_on_which_more_comes_than_was_asked_for_is_not_used_again() -> None:
    assert read(HEAD + b"abcHTTP/1.1 200 OK\r\n", 65536) == (Answered(200, b"abc"), False)


def test_an_answer_to_head_has_no_body() -> None:
    assert read(HEAD, 65536, "HEAD") == (Answered(200, b""), True)


def test_an_api_servers_answer_is_a_short_one() -> None:
    assert head_of(HEAD + b"ab") == (200, {"audit-id": "a", "content-length": "3"}, 3, b"ab")
