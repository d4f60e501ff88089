"""The line of a fault run: what each of its modes does to a connection."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from tests.e2e.link import PASS, REFUSE, Kind, Link, Mode

ANSWER = b"x" * 1000
SOON, AT_ONCE = 10.0, 0.2


class Echo:
    """Answers every request with so many bytes, until it is told to stop. tls: the server's side of it for a new connection."""

    def __init__(self, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        self._tls = tls
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.heard: list[bytes] = []
        self.arrived = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(near,)))
            self._threads[-1].start()

    def _serve(self, near: socket.socket) -> None:
        with near, suppress(OSError):
            if self._tls is not None:
                near = self._tls().wrap_socket(near, server_side=True)
            with near:
                while piece := near.recv(100):
                    self.heard.append(piece)
                    self.arrived.set()
                    near.sendall(ANSWER)

    def stop(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for thread in self._threads:
            thread.join(SOON)


@pytest.fixture
def echo() -> Iterator[Echo]:
    made = Echo()
    yield made
    made.stop()


@pytest.fixture
def link(echo: Echo) -> Iterator[Link]:
    made = Link(echo.port).start()
    yield made
    made.stop()


def connect(link: Link) -> socket.socket:
    return socket.create_connection(("127.0.0.1", link.port), timeout=SOON)


def ask(link: Link) -> bytes:
    with connect(link) as near:
        near.sendall(b"a")
        return read(near)


def read(near: socket.socket, size: int = len(ANSWER)) -> bytes:
    """As much, or up to the end."""
    found = b""
    while len(found) < size and (piece := near.recv(size - len(found))):
        found += piece
    return found


def silent(near: socket.socket) -> bool:
    near.settimeout(AT_ONCE)
    try:
        near.recv(1)
    except TimeoutError:
        return True
    finally:
        near.settimeout(SOON)
    return False


def test_a_link_that_passes_everything_on_is_not_noticed(link: Link, echo: Echo) -> None:
    with connect(link) as near:
        near.sendall(b"a")
        assert read(near) == ANSWER
        near.shutdown(socket.SHUT_WR)
        assert near.recv(1) == b""
    assert echo.heard == [b"a"]


def test_a_link_that_refuses_cuts_what_is_there_and_takes_connections_again_on_its_port(link: Link) -> None:
    near = connect(link)
    near.sendall(b"a")
    read(near)
    link.set(REFUSE)
    with near, pytest.raises(ConnectionResetError):
        near.recv(1)
    with pytest.raises(ConnectionRefusedError):
        connect(link)
    link.set(PASS)
    assert ask(link) == ANSWER


def test_a_link_that_resets_takes_a_connection_and_answers_with_rst(link: Link, echo: Echo) -> None:
    link.set(Mode(Kind.RESET))
    with pytest.raises((ConnectionResetError, BrokenPipeError)):
        ask(link)
    assert echo.heard == []


@pytest.mark.parametrize(
    ("kind", "arrives"),
    [
        pytest.param(Kind.BLACKHOLE_OUT, False, id="what goes out is lost: the request does not arrive"),
        pytest.param(Kind.BLACKHOLE_BACK, True, id="what comes back is lost: the request arrives, and no answer"),
        pytest.param(Kind.BLACKHOLE, False, id="everything is lost"),
    ],
)
def test_a_blackhole_is_silent_and_what_was_lost_is_sent_again_after_it(
    kind: Kind, arrives: bool, link: Link, echo: Echo
) -> None:
    link.set(Mode(kind))
    with connect(link) as near:
        near.sendall(b"a")
        assert silent(near)
        assert echo.arrived.wait(SOON if arrives else 0) is arrives
        link.set(PASS)
        assert read(near) == ANSWER


def test_a_half_closed_connection_ends_for_the_caller_and_takes_more_from_it(link: Link, echo: Echo) -> None:
    link.set(Mode(Kind.HALF_CLOSE))
    with connect(link) as near:
        near.sendall(b"a")
        assert near.recv(1) == b""
        echo.arrived.clear()
        near.sendall(b"b")
        assert echo.arrived.wait(SOON)


def test_a_truncated_answer_ends_after_so_many_bytes(link: Link) -> None:
    link.set(Mode(Kind.TRUNCATE, 700))
    with connect(link) as near:
        near.sendall(b"a")
        assert read(near) == ANSWER[:700]


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param(Mode(Kind.DELAY, 1000), id="late"),
        pytest.param(Mode(Kind.THROTTLE, 0.001), id="slow"),
    ],
)
def test_what_is_late_or_slow_is_delivered_in_time_or_when_the_line_is_well_again(mode: Mode, link: Link) -> None:
    with connect(link) as near:
        link.set(Mode(mode.kind, 0.001 if mode.kind is Kind.DELAY else 1e6))
        near.sendall(b"a")
        assert read(near) == ANSWER
        link.set(mode)
        near.sendall(b"b")
        assert silent(near)
        link.set(PASS)
        assert read(near) == ANSWER


def test_a_cut_ends_connections_and_takes_new_ones(link: Link) -> None:
    with connect(link) as near:
        near.sendall(b"a")
        read(near)
        link.cut()
        with pytest.raises(ConnectionResetError):
            near.recv(1)
    with connect(link) as near:
        near.sendall(b"a")
        assert read(near) == ANSWER
