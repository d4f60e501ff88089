"""The guarded socket over a real pair: no server, no event loop."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from extender.server.deadline_socket import BIG_READ, DeadlineSocket, Limits
from tests.server.service import LONG

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.fixture
def gave_way() -> list[None]:
    return []


def guard(sock: socket.socket, gave_way: list[None] | None = None, **changes: float) -> DeadlineSocket:
    seconds = {"idle_seconds": 5.0, "request_seconds": 5.0, "send_seconds": 5.0, **changes}
    max_bytes = int(seconds.pop("max_bytes", 100_000))
    ways: list[None] = [] if gave_way is None else gave_way
    return DeadlineSocket(sock, Limits(**seconds, max_bytes=max_bytes, give_way=lambda: ways.append(None)))


def test_what_is_sent_is_received(pair: Pair) -> None:
    pair[1].sendall(b"abc")
    assert guard(pair[0]).recv(10) == b"abc"


def test_what_was_held_goes_out_at_once_in_one_piece(pair: Pair) -> None:
    guarded = guard(pair[0])
    guarded.hold()
    guarded.sendall(b"head")
    guarded.sendall(b"body")
    pair[1].setblocking(False)
    with pytest.raises(BlockingIOError):
        pair[1].recv(10)
    guarded.flush()
    assert pair[1].recv(10) == b"headbody"
    guarded.sendall(b"error")
    assert pair[1].recv(10) == b"error"


def test_what_was_held_is_gone_with_the_connection(pair: Pair) -> None:
    guarded = guard(pair[0])
    guarded.hold()
    guarded.sendall(b"head")
    guarded.close()
    guarded.flush()
    assert pair[1].recv(10) == b""


def test_silence_beyond_the_idle_time_reads_as_the_end(pair: Pair) -> None:
    guarded = guard(pair[0], idle_seconds=0.01)
    assert (guarded.recv(10), guarded.expired) == (b"", True)
    pair[1].sendall(b"too late")
    assert guarded.recv(10) == b""


def test_the_whole_request_has_one_deadline(pair: Pair) -> None:
    guarded = guard(pair[0], request_seconds=0.05)
    pair[1].sendall(b"a")
    assert guarded.recv(10) == b"a"
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        pair[1].sendall(b"a")
        if not guarded.recv(10):
            break
    assert guarded.expired


def test_the_next_request_starts_afresh(pair: Pair) -> None:
    guarded = guard(pair[0], request_seconds=0.02, max_bytes=3)
    for _ in range(3):
        pair[1].sendall(b"abc")
        assert guarded.recv(10) == b"abc"
        guarded.rearm()
    assert not guarded.expired


def test_a_request_has_no_more_bytes_than_it_may(pair: Pair) -> None:
    guarded = guard(pair[0], max_bytes=5)
    pair[1].sendall(b"abcdefgh")
    assert guarded.recv(6) == b"abcdef"
    assert (guarded.recv(6), guarded.expired) == (b"", True)


def test_a_big_read_lets_others_run(pair: Pair, gave_way: list[None]) -> None:
    guarded = guard(pair[0], gave_way)
    pair[1].sendall(b"a" * BIG_READ + b"b")
    guarded.recv(BIG_READ)
    assert gave_way == [None]
    guarded.recv(BIG_READ)
    assert gave_way == [None]


def test_a_peer_that_does_not_read_is_one_that_has_gone(pair: Pair) -> None:
    guarded = guard(pair[0], send_seconds=0.01)
    with pytest.raises(BrokenPipeError):
        guarded.sendall(b"a" * 10_000_000)
    assert guarded.expired


def test_hurry_leaves_little_time(pair: Pair) -> None:
    guarded = guard(pair[0], idle_seconds=LONG)
    guarded.hurry(0.01)
    assert guarded.recv(10) == b""


def test_hanging_up_ends_a_wait(pair: Pair) -> None:
    guarded = guard(pair[0])
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(guarded.recv(10)))
    reader.start()
    guarded.hang_up()
    reader.join(5)
    assert received == [b""]
