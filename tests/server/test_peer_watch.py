"""The watch over callers outlives whatever one of them, or one look, brings it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import gevent
import pytest
from gevent.event import Event

from extender.server import peer_watch
from extender.server.peer_watch import EpollPeerWatch

SECONDS = 5.0


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[EpollPeerWatch]:
    """Its greenlet ends with the test."""
    greenlets: list[Any] = []
    spawn = gevent.spawn
    monkeypatch.setattr(gevent, "spawn", lambda function: greenlets.append(spawn(function)))
    monkeypatch.setattr(peer_watch, "RETRY_SECONDS", 0.001)
    made = EpollPeerWatch()
    yield made
    assert not any(greenlet.dead for greenlet in greenlets)
    gevent.killall(greenlets)
    made._epoll.close()


def hang_up_is_noticed(watch: EpollPeerWatch) -> bool:
    here, there = socket.socketpair()
    with here, there:
        gone = Event()
        cancel = watch.watch(here.fileno(), gone.set)
        there.close()
        noticed = bool(gone.wait(SECONDS))
        cancel()
    return noticed


def test_a_caller_that_hangs_up_is_noticed(watch: EpollPeerWatch) -> None:
    assert hang_up_is_noticed(watch)


@pytest.mark.parametrize(
    ("by_now", "expected"),
    [
        pytest.param("there", 0, id="the caller waits"),
        pytest.param("gone", 1, id="the caller has gone, and the loop has not come to it"),
        pytest.param("noticed", 1, id="the loop has told it"),
    ],
)
def test_a_hang_up_is_told_once_by_the_end_of_the_watch(watch: EpollPeerWatch, by_now: str, expected: int) -> None:
    here, there = socket.socketpair()
    told: list[str] = []
    noticed = Event()

    def tell() -> None:
        told.append("gone")
        noticed.set()

    with here, there:
        cancel = watch.watch(here.fileno(), tell)
        if by_now != "there":
            there.close()
        if by_now == "noticed":
            assert noticed.wait(SECONDS)
        cancel()
        assert len(told) == expected


def test_whether_a_caller_has_hung_up_by_now(watch: EpollPeerWatch) -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"a further request")
        assert not watch.is_gone(here.fileno())
        there.close()
        assert watch.is_gone(here.fileno())


@pytest.mark.faults
def test_a_callback_that_raises_is_its_own_affair(watch: EpollPeerWatch, caplog: pytest.LogCaptureFixture) -> None:
    raised = Event()

    def broken() -> None:
        raised.set()
        raise KeyError("a fault of ours")

    here, there = socket.socketpair()
    with here, there:
        watch.watch(here.fileno(), broken)
        there.close()
        assert raised.wait(SECONDS)
        assert hang_up_is_noticed(watch)
    assert "unexpected error where=peer-watch" in caplog.text


@pytest.mark.faults
def test_a_look_that_raises_is_not_the_last(watch: EpollPeerWatch, caplog: pytest.LogCaptureFixture) -> None:
    """Its greenlet ended, and no caller that hung up was noticed any more."""
    epoll, faults = watch._epoll, iter([True])

    class Fragile:
        def __getattr__(self, name: str) -> Any:
            return getattr(epoll, name)

        def poll(self, timeout: float) -> Any:
            if next(faults, False):
                raise RuntimeError("a fault of ours")
            return epoll.poll(timeout)

    watch._epoll = Fragile()
    assert hang_up_is_noticed(watch)
    assert "unexpected error where=peer-watch" in caplog.text
