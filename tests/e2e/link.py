"""A line between two programs, as bytes, on loopback: it passes them on, or does to them what networks and dead peers do.

A fault run has one on every line: extender to API server, kube-scheduler to extender, kube-scheduler to API server, API server to etcd.
TLS goes through as it is, or is spoken with the target by the line itself. What is HTTP in the clear can be read by a tap. Used by
fault runs and by test_startup.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from tests.e2e.processes import free_port

PIECE = 65536
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: a close sends RST


class Kind(Enum):
    """OUT is from the one that connects; BACK is to it."""

    PASS = "passes"
    REFUSE = "refuses connections, and has cut those that were there"
    RESET = "resets every connection"
    BLACKHOLE_OUT = "loses what goes out"
    BLACKHOLE_BACK = "loses what comes back"
    BLACKHOLE = "loses everything"
    HALF_CLOSE = "ends what comes back, and goes on listening"
    DELAY = "is late"
    THROTTLE = "is slow"
    TRUNCATE = "is cut after some bytes of what comes back"


@dataclass(frozen=True)
class Mode:
    """amount: seconds of a delay, bytes a second of a throttle, bytes until a truncation."""

    kind: Kind = Kind.PASS
    amount: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind.value}{f' ({self.amount:g})' if self.amount else ''}"


PASS, REFUSE = Mode(), Mode(Kind.REFUSE)
HOLDS = {  # of a direction: until the mode is another; then it is delivered, as TCP sends again what was lost
    "out": (Kind.BLACKHOLE_OUT, Kind.BLACKHOLE),
    "back": (Kind.BLACKHOLE_BACK, Kind.BLACKHOLE),
}


# Is done when the target has taken the connection.
Far = asyncio.Task[tuple[asyncio.StreamReader, asyncio.StreamWriter]]


class Tap(Protocol):
    """Reads along on one connection. Called in the link's thread."""

    def sent(self, piece: bytes) -> None: ...

    def answered(self, piece: bytes) -> None: ...

    def closed(self) -> None: ...


class Link:
    """Listens on a port that stays the same; its loop runs in a thread of its own from `start` to `stop`."""

    def __init__(
        self,
        target_port: int | Callable[[], int | None],
        *,
        tap: Callable[[], Tap] | None = None,
        tls: Callable[[], ssl.SSLContext | None] = lambda: None,
        mode: Mode = PASS,
    ) -> None:
        """target_port: or what says it for each new connection, in the link's thread; None of it: that one is reset. tap: makes that of
        a new connection; tls: the client's side of it towards the target, likewise; mode: the first."""
        self.port = free_port()
        self._target = target_port if callable(target_port) else lambda: target_port
        self._tap = tap
        self._tls = tls
        self._mode = mode  # all that follows is of the loop's thread
        self._changed = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="link", daemon=True)

    def start(self) -> Link:
        self._thread.start()
        self.set(self._mode)
        return self

    def stop(self) -> None:
        if self._thread.is_alive():
            self._do(self._end())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def set(self, mode: Mode) -> None:
        """Returns when it is in force, on the connections that are there too."""
        self._do(self._set(mode))

    def cut(self) -> None:
        """All connections at once; new ones are accepted."""
        self._do(self._cut())

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()

    def _do(self, act: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(30)

    async def _set(self, mode: Mode) -> None:
        self._mode = mode
        self._changed.set()
        self._changed = asyncio.Event()
        if mode.kind in (Kind.REFUSE, Kind.RESET):
            await self._cut()
        if mode.kind is Kind.REFUSE:
            await self._shut()
        elif self._server is None:
            self._server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port)

    async def _shut(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    async def _end(self) -> None:
        await self._shut()
        await self._cut()

    async def _cut(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            if self._mode.kind is Kind.RESET:
                _reset(writer)
            else:
                await self._connect(reader, writer)
        except OSError:  # the other end is not there
            _reset(writer)
        except asyncio.CancelledError:  # it is cut: the task is ours, and has nothing else to do
            _reset(writer)
        finally:
            await _close(writer)
            self._tasks.discard(task)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        port = self._target()
        if port is None:
            raise ConnectionRefusedError("there is no target")
        tap = self._tap() if self._tap is not None else None
        far = asyncio.create_task(asyncio.open_connection("127.0.0.1", port, ssl=self._tls()))
        out = asyncio.create_task(self._out(reader, far, tap))
        back = asyncio.create_task(self._back(far, writer, tap))
        try:
            await asyncio.gather(out, back)
        except BaseException:
            if (opened := _opened(far)) is not None:
                _reset(opened)
            raise
        finally:
            if (opened := _opened(far)) is not None:
                opened.close()  # before anything is awaited: a cut may come in the middle of it
            for each in (far, out, back):
                each.cancel()
            await asyncio.gather(far, out, back, return_exceptions=True)
            if tap is not None:
                tap.closed()
            if opened is not None:
                await _close(opened)

    async def _out(self, reader: asyncio.StreamReader, far: Far, tap: Tap | None) -> None:
        """Its tap reads what is sent also where the target does not take the connection: of a frozen one the kernel takes it, and TLS
        waits for an answer."""
        while piece := await reader.read(PIECE):
            await self._treat("out", len(piece))
            if tap is not None:
                tap.sent(piece)
            _, writer = await far
            writer.write(piece)
            await writer.drain()
        _half_close((await far)[1])

    async def _back(self, far: Far, writer: asyncio.StreamWriter, tap: Tap | None) -> None:
        reader, _ = await far
        passed = 0
        while piece := await reader.read(PIECE):
            await self._treat("back", len(piece))
            kind = self._mode.kind
            if kind is Kind.HALF_CLOSE:
                _half_close(writer)
                await self._changed.wait()
                raise ConnectionAbortedError
            if kind is Kind.TRUNCATE and passed + len(piece) > self._mode.amount:
                writer.write(piece[: max(0, int(self._mode.amount) - passed)])
                await writer.drain()
                _half_close(writer)
                raise ConnectionAbortedError
            passed = passed + len(piece) if kind is Kind.TRUNCATE else 0
            if tap is not None:
                tap.answered(piece)
            writer.write(piece)
            await writer.drain()
        _half_close(writer)

    async def _treat(self, direction: str, size: int) -> None:
        """Returns when a piece of this size may go on."""
        while self._mode.kind in HOLDS[direction]:
            await self._changed.wait()
        if self._mode.kind is Kind.DELAY:
            await self._rest(self._mode.amount)
        elif self._mode.kind is Kind.THROTTLE:
            await self._rest(size / self._mode.amount)

    async def _rest(self, seconds: float) -> None:
        """At most until the mode is another."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)


def _opened(far: Far) -> asyncio.StreamWriter | None:
    if not far.done() or far.cancelled() or far.exception() is not None:
        return None
    return far.result()[1]


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _half_close(writer: asyncio.StreamWriter) -> None:
    """Of TLS there is no half: all of it ends."""
    with suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()


def _reset(writer: asyncio.StreamWriter) -> None:
    """The peer hears RST, and what was on its way is lost."""
    with suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
