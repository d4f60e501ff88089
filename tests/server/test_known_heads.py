"""A head that came before means what gunicorn makes of it when it comes for the first time, or is refused as then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from gunicorn.config import Config
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.http.wsgi import create
from hypothesis import given
from hypothesis import strategies as st

from extender.server import known_heads
from extender.server.known_heads import KnownHeads, KnownRequest

CLIENT, SERVER = ("192.0.2.7", 4711), ("127.0.0.1", 8888)
HEAD = b"POST /bind HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
ODD = [
    pytest.param(HEAD + b"abc", id="a call"),
    pytest.param(b"\r\n" + HEAD + b"abc", id="an empty line before it"),
    pytest.param(b"\r\n\r\n" + HEAD + b"abc", id="two empty lines before it"),
    pytest.param(b"GET /livez HTTP/1.1\r\n\r\n", id="no header at all"),
    pytest.param(b"GET /livez HTTP/1.0\r\n\r\nGET /livez HTTP/1.0\r\n\r\n", id="two of HTTP/1.0 in one packet"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nHost: b\r\n") + b"abc", id="two hosts"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nContent-Length: 4\r\n") + b"abc", id="two lengths"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nX: 1\r\nX: 2\r\n") + b"abc", id="a header twice"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\n folded\r\n") + b"abc", id="a folded header"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nX_Y: 1\r\n") + b"abc", id="an underscore"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\nX: 1\r\n") + b"abc", id="a line that ends in LF alone"),
    pytest.param(HEAD.replace(b"Content-Length: 3", b"Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n", id="chunked"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nTransfer-Encoding: chunked\r\n") + b"abc", id="chunked, with a length"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nTransfer-Encoding: gzip, chunked\r\n"), id="compressed"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nConnection: close\r\n") + b"abc", id="the last of its connection"),
    pytest.param(HEAD.replace(b"/bind", b"/b%69nd?a=b#c") + b"abc", id="a path with all that it may have"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nScript-Name: /bind\r\n") + b"abc", id="a script name"),
    pytest.param(HEAD.replace(b"a\r\n", b"a\r\nX-Forwarded-Proto: https\r\n") + b"abc", id="a scheme from a stranger"),
    pytest.param(HEAD[:-2], id="a head without an end"),
    pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="HTTP/2"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> KnownHeads:
    fresh = KnownHeads()
    monkeypatch.setattr(known_heads, "KNOWN", fresh)
    return fresh


def configuration() -> Config:
    """Of what gunicorn's parser looks at as serve has it, whose import would patch this process."""
    found = Config()
    limits = {"limit_request_line": 1024, "limit_request_fields": 32, "limit_request_field_size": 4096}
    for name, value in {**limits, "forwarded_allow_ips": "", "errorlog": "-"}.items():
        found.set(name, value)
    return found


CONFIGURATION = configuration()


def read(class_: type[Request], packets: list[bytes]) -> Iterator[object]:
    """What each request comes to: what the application would be told and the body, or the error."""
    parser = RequestParser(CONFIGURATION, iter(packets), CLIENT)
    parser.mesg_class = class_
    make = known_heads.create if class_ is KnownRequest else create
    try:
        for request in parser:
            _, environ = make(request, _Socket(), CLIENT, SERVER, CONFIGURATION)
            told = {name: value for name, value in environ.items() if not callable(value) and name not in OF_ITS_OWN}
            yield told, request.body.read(), request.should_close()
    except Exception as error:
        yield type(error), str(error)


OF_ITS_OWN = ("wsgi.input", "wsgi.errors", "gunicorn.socket")


class _Socket:
    def send(self, data: bytes) -> None:
        """An interim answer: not looked at."""


@pytest.mark.parametrize("request_", ODD)
@pytest.mark.parametrize("size", [1, 7, 8192])
def test_the_second_time_is_as_the_first(request_: bytes, size: int) -> None:
    packets = [request_[start : start + size] for start in range(0, len(request_), size)]
    expected = list(read(Request, packets))
    for _ in range(3):
        assert list(read(KnownRequest, packets)) == expected


PIECES = st.sampled_from([
    b"POST ", b"GET ", b"/bind", b" HTTP/1.1", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b"Host: a", b"Content-Length: 3", b"abc",
    b"Content-Length: 0", b"Transfer-Encoding: chunked", b"0", b":", b" ", b"\t", b"Connection: close", b"\x00", b"\xff", HEAD,
])  # fmt: skip


@given(first=st.lists(PIECES, max_size=12).map(b"".join), second=st.lists(PIECES, max_size=12).map(b"".join))
def test_any_bytes_after_any_others_are_read_as_gunicorn_reads_them(first: bytes, second: bytes) -> None:
    for data in (first, second, first, second):
        assert list(read(KnownRequest, [data])) == list(read(Request, [data]))


@pytest.mark.parametrize(
    ("header", "kept"),
    [
        pytest.param(b"Accept: a", 1, id="a head is kept"),
        pytest.param(b"Authorization: Bearer abc", 0, id="not one with a token"),
        pytest.param(b"Cookie: abc", 0, id="not one with a cookie"),
        pytest.param(b"Expect: 100-continue", 0, id="not one that wants an interim answer"),
        pytest.param(b"X: " + b"x" * known_heads.MAX_HEAD_BYTES, 0, id="not a long one"),
        pytest.param(b"no header", 0, id="not one that is refused"),
    ],
)
def test_what_is_kept(header: bytes, kept: int, known: KnownHeads) -> None:
    list(read(KnownRequest, [HEAD.replace(b"Host: a", header) + b"abc"]))
    assert len(known) == kept


def test_ever_new_heads_take_no_more_room(known: KnownHeads) -> None:
    for number in range(2 * known_heads.MAX_HEADS):
        list(read(KnownRequest, [HEAD.replace(b"/bind", b"/%d" % number) + b"abc"]))
    assert len(known) == known_heads.MAX_HEADS


def test_two_callers_with_the_same_head_are_told_apart() -> None:
    found: list[Any] = []
    for client in (("192.0.2.1", 1), ("192.0.2.2", 2), ("192.0.2.3", 3)):
        parser = RequestParser(CONFIGURATION, iter([HEAD + b"abc"]), client)
        parser.mesg_class = KnownRequest
        request = next(parser)
        _, environ = known_heads.create(request, client, client, ("127.0.0.1", client[1]), CONFIGURATION)
        found.append([environ[name] for name in ("REMOTE_ADDR", "REMOTE_PORT", "SERVER_PORT", "gunicorn.socket")])
    assert found == [
        [f"192.0.2.{number}", str(number), str(number), (f"192.0.2.{number}", number)] for number in (1, 2, 3)
    ]
