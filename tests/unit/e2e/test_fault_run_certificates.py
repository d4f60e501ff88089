"""The verbs' line of a fault run speaks TLS with the extender, and its certificates are renewed with their CA."""

from __future__ import annotations

import itertools
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from extender.server import tls
from tests.e2e.fault_run.certificates import Certificates
from tests.e2e.link import REFUSE, Kind, Link, Mode
from tests.unit.e2e.test_link import ANSWER, SOON, Echo, ask, connect, read


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


class Served:
    """Contexts of the extender, which looks at its files for each connection; or of one that never looks again."""

    def __init__(self, certificates: Certificates) -> None:
        cert, key, ca, _ = (flag.partition("=")[2] for flag in certificates.flags)
        self.looks = True
        self._seconds = itertools.count(0.0, tls.LOOK_SECONDS)
        self._certificates = tls.Certificates(cert, key, ca, lambda: next(self._seconds) if self.looks else 0.0)

    def __call__(self) -> ssl.SSLContext:
        return self._certificates.current()


@pytest.fixture
def served(certificates: Certificates) -> Served:
    return Served(certificates)


@pytest.fixture
def echo(served: Served) -> Iterator[Echo]:
    made = Echo(served)
    yield made
    made.stop()


class Heard:
    """What a tap reads."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.arrived, self.ended = threading.Event(), threading.Event()

    def sent(self, piece: bytes) -> None:
        self.pieces.append(piece)
        self.arrived.set()

    def answered(self, piece: bytes) -> None:
        self.pieces.append(piece)

    def closed(self) -> None:
        self.ended.set()


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def link(echo: Echo, certificates: Certificates, heard: Heard) -> Iterator[Link]:
    made = Link(echo.port, tap=lambda: heard, tls=lambda: certificates.caller).start()
    yield made
    made.stop()


def test_the_line_speaks_tls_and_its_tap_reads_in_the_clear(link: Link, echo: Echo, heard: Heard) -> None:
    assert ask(link) == ANSWER
    assert (echo.heard, b"".join(heard.pieces)) == ([b"a"], b"a" + ANSWER)


@pytest.mark.parametrize("mode", [REFUSE, Mode(Kind.RESET)], ids=["refused", "reset"])
def test_its_connections_end_as_any_others(link: Link, mode: Mode) -> None:
    with connect(link) as near:
        near.sendall(b"a")
        read(near)
        link.set(mode)
        with pytest.raises(ConnectionResetError):
            near.recv(1)


def test_the_end_of_what_is_sent_is_the_end_of_all(link: Link, caplog: pytest.LogCaptureFixture) -> None:
    """TLS has no half of a connection."""
    with connect(link) as near:
        near.sendall(b"a")
        read(near)
        near.shutdown(socket.SHUT_WR)
        assert near.recv(1) == b""
    link.stop()
    assert caplog.text == ""


def test_renewed_certificates_are_taken_up_at_each_step_and_the_old_ones_are_refused_then(
    link: Link, certificates: Certificates
) -> None:
    for _ in range(2):
        old = certificates.caller
        for step in (certificates.begin, certificates.finish):
            step()
            assert ask(link) == ANSWER
        new, certificates.caller = certificates.caller, old
        assert refused(link)
        certificates.caller = new


def test_an_extender_that_does_not_take_them_up_is_reached_no_more(
    link: Link, certificates: Certificates, served: Served
) -> None:
    served.looks = False
    certificates.begin()
    assert ask(link) == ANSWER
    certificates.finish()
    assert refused(link)


def test_a_call_of_an_extender_that_stands_still_is_read_along(certificates: Certificates, heard: Heard) -> None:
    """It takes connections, and answers no handshake."""
    with socket.create_server(("127.0.0.1", 0)) as frozen:
        link = Link(frozen.getsockname()[1], tap=lambda: heard, tls=lambda: certificates.caller).start()
        try:
            with connect(link) as near:
                near.sendall(b"a")
                assert heard.arrived.wait(SOON)
            link.cut()
            assert heard.ended.is_set()
        finally:
            link.stop()


def refused(link: Link) -> bool:
    try:
        return ask(link) == b""
    except ConnectionResetError:
        return True
