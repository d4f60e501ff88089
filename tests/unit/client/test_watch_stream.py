"""Lines of a watch, as the connection hands them on in chunks of any size, and each way in which it ends."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import urllib3

from extender.api import corev1
from extender.client import watch_stream
from extender.client.errors import (
    ApiError,
    ConnectionFailedError,
    GoneError,
    TimedOutError,
    UnreadableError,
)
from extender.client.interface import EventType, Unreadable, WatchEvent
from extender.client.watch_stream import WatchStream

Chunk = bytes | Exception | Callable[[], None]


class Response:
    """Gives its chunks; raises one that is an error, calls one that can be called. Notes that it was closed."""

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks
        self.closed = 0
        self.asked: dict[str, Any] = {}

    def stream(self, amount: int, *, decode_content: bool) -> Iterator[bytes]:
        self.asked = {"amount": amount, "decode_content": decode_content}
        for chunk in self.chunks:
            if isinstance(chunk, Exception):
                raise chunk
            if isinstance(chunk, bytes):
                yield chunk
            else:
                chunk()

    def close(self) -> None:
        self.closed += 1


class Socket:
    """fails: it is gone already."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.shut: list[int] = []

    def shutdown(self, how: int) -> None:
        self.shut.append(how)
        if self.fails:
            raise OSError("not connected")


def line(type_: str, name: str = "a", version: str = "5", **of: Any) -> bytes:
    obj = of or {"metadata": {"name": name, "uid": name, "resourceVersion": version}}
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def watch(response: Response) -> tuple[WatchStream[corev1.Node], list[Any]]:
    ended: list[Any] = []
    return WatchStream(cast("urllib3.BaseHTTPResponse", response), corev1.Node, ended.append), ended


def told(events: Iterable[WatchEvent[Any]]) -> list[str]:
    story = []
    for each in events:
        assert isinstance(each.object, corev1.Node)
        story.append(f"{each.type.value} {each.object.metadata.name} {each.resource_version}")
    return story


TWO = line("ADDED", "a", "5") + line("MODIFIED", "b", "6")


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([TWO], id="in one piece"),
        pytest.param([TWO[:20], TWO[20:]], id="cut in the middle of a line"),
        pytest.param([TWO[:20], TWO[20:30], TWO[30:]], id="a line in three pieces"),
        pytest.param([bytes([each]) for each in TWO], id="byte by byte"),
        pytest.param([b"\n", TWO[: TWO.index(b"\n")], b"\n \n", TWO[TWO.index(b"\n") + 1 :]], id="with empty lines"),
    ],
)
def test_lines_are_put_together(chunks: list[Chunk]) -> None:
    response = Response(*chunks)
    stream, ended = watch(response)
    assert told(stream) == ["ADDED a 5", "MODIFIED b 6"]
    assert (response.closed, ended) == (1, [stream])
    assert response.asked == {"amount": 65536, "decode_content": True}, "compressed answers too"


def test_a_bookmark_has_its_version_alone() -> None:
    stream, _ = watch(Response(line("BOOKMARK", version="42")))
    assert list(stream) == [WatchEvent(EventType.BOOKMARK, None, "42")]


def test_an_object_that_cannot_be_read_is_an_event() -> None:
    stream, _ = watch(Response(line("ADDED", metadata={"name": "a", "resourceVersion": "7"}, spec="nonsense")))
    (event,) = stream
    assert isinstance(event.object, Unreadable)
    assert (event.object.metadata.name, event.resource_version) == ("a", "7")


def test_an_object_that_is_nested_deeper_than_python_goes_is_read_as_any_other() -> None:
    """A tenant may write 10,000 levels into the managedFields of a pod of its own."""
    deep = line("ADDED", metadata={"name": "deep", "resourceVersion": "6", "managedFields": "DEEP"})
    deep = deep.replace(b'"DEEP"', b'[{"fieldsV1":' + b'{"f:a":' * 9_990 + b"{}" + b"}" * 9_990 + b"}]")
    stream, _ = watch(Response(line("ADDED", "a", "5"), deep, line("ADDED", "b", "7")))
    assert told(stream) == ["ADDED a 5", "ADDED deep 6", "ADDED b 7"]


GONE: dict[str, Any] = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


@pytest.mark.parametrize(
    ("chunks", "kind", "text"),
    [
        pytest.param([line("ERROR", **GONE)], GoneError, "too old", id="410 in the watch"),
        pytest.param(
            [line("OTHER")],
            UnreadableError,
            "watch: an event could not be read: 'OTHER' is not a valid EventType",
            id="a type unheard of",
        ),
        pytest.param([b"nonsense\n"], UnreadableError, "watch: an event could not be read: .*", id="no JSON"),
        pytest.param(
            [line("ADDED", metadata={})], UnreadableError, "watch: an event of an object without a name", id="no name"
        ),
        pytest.param([b'{"type":"ADD'], ConnectionFailedError, "watch: cut off in the middle of an event", id="cut"),
        pytest.param(
            [urllib3.exceptions.ReadTimeoutError(cast("Any", None), "/", "silence")],
            TimedOutError,
            "watch: .*silence",
            id="silence",
        ),
        pytest.param(
            [urllib3.exceptions.ProtocolError("reset")], ConnectionFailedError, "watch: reset", id="a cut connection"
        ),
        pytest.param([OSError("bad file")], ConnectionFailedError, "watch: bad file", id="a closed socket"),
        pytest.param([ValueError("closed")], ConnectionFailedError, "watch: closed", id="a closed file"),
        pytest.param([AttributeError("no fp")], ConnectionFailedError, "watch: no fp", id="a response that was closed"),
    ],
)
def test_each_end_that_is_none(chunks: list[Chunk], kind: type[ApiError], text: str) -> None:
    response = Response(line("ADDED"), *chunks)
    stream, ended = watch(response)
    events = iter(stream)
    assert told([next(events)]) == ["ADDED a 5"]
    with pytest.raises(kind, match=f"^{text}$") as raised:
        next(events)
    assert type(raised.value) is kind
    assert (response.closed, ended) == (1, [stream])


def test_a_line_that_does_not_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_stream, "MAX_LINE", 10)
    stream, _ = watch(Response(b"x" * 10, b"y", b"\n"))
    with pytest.raises(ConnectionFailedError, match=r"^watch: a line without end$"):
        list(stream)
    stream, _ = watch(Response(b" " * 10, b"\n"))
    assert list(stream) == [], "ten are no more than ten"


@pytest.mark.parametrize(
    "last",
    [
        pytest.param(OSError("shut"), id="by an error of the shut socket"),
        pytest.param(b'{"type":"ADD', id="in the middle of a line"),
        pytest.param(line("ADDED", "b"), id="before the next line"),
    ],
)
def test_a_watch_that_is_stopped_ends_without_a_word(last: Chunk) -> None:
    def stop() -> None:
        stream.stop()

    response = Response(line("ADDED", "a"), stop, last)
    stream, ended = watch(response)
    assert told(stream)[:1] == ["ADDED a 5"]
    assert (response.closed, ended) == (1, [stream])


def test_of_lines_that_are_there_already_none_is_told_after_a_stop() -> None:
    stream, _ = watch(Response(TWO + line("ADDED", "c")))
    seen = []
    for event in stream:
        seen += told([event])
        stream.stop()
    assert seen == ["ADDED a 5"]


@pytest.mark.parametrize("name", ["connection", "_connection"])
@pytest.mark.parametrize("fails", [False, True])
def test_stop_shuts_the_socket_so_that_a_reader_wakes(name: str, fails: bool) -> None:
    """Closing alone would leave it to wait for the server's next word."""
    response, sock = Response(), Socket(fails=fails)
    response.connection = None  # type: ignore[attr-defined]
    setattr(response, name, SimpleNamespace(sock=sock))
    stream, ended = watch(response)
    stream.stop()
    assert sock.shut == [socket.SHUT_RDWR]
    assert (response.closed, ended) == (1, [stream]), "it is not being read: this ends it"


@pytest.mark.parametrize("connection", [None, SimpleNamespace(), SimpleNamespace(sock=None)])
def test_stop_of_a_connection_that_is_gone(connection: Any) -> None:
    response = Response()
    response.connection = connection  # type: ignore[attr-defined]
    stream, ended = watch(response)
    stream.stop()
    assert (response.closed, ended) == (1, [stream])


def test_a_reader_ends_the_watch_itself() -> None:
    """Closing the response under it would be a race."""
    closed: list[int] = []

    def stop() -> None:
        stream.stop()
        closed.append(response.closed)

    response = Response(stop, line("ADDED"))
    stream, ended = watch(response)
    list(stream)
    assert closed == [0]
    assert (response.closed, ended) == (1, [stream])


def test_a_long_watch_lets_others_run_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []
    steps = SimpleNamespace(pause_if_due=lambda: pauses.append(1))
    monkeypatch.setattr(watch_stream, "ShortSteps", lambda: steps)
    stream, _ = watch(Response(TWO))
    list(stream)
    assert len(pauses) == 2
