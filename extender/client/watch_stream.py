"""One watch of the real API server: lines of JSON, until the server, silence, a cut or `stop` ends it.

A line counts whole or not at all. kube-scheduler: k8s.io/apimachinery/pkg/watch/streamwatcher.go
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

import msgspec
import urllib3
from msgspec import Struct

from extender.api import codec
from extender.client.answers import Status, error_of_status
from extender.client.decoding import read_object
from extender.client.errors import ConnectionFailedError, TimedOutError, UnreadableError
from extender.client.interface import EventType, WatchEvent
from extender.client.short_steps import ShortSteps

T = TypeVar("T")

MAX_LINE = 32 * 1024 * 1024


class _Line(Struct, frozen=True):
    type: str
    object: msgspec.Raw = msgspec.Raw(b"{}")


class _VersionOnly(Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Bookmark(Struct, frozen=True):
    metadata: _VersionOnly = _VersionOnly()


class WatchStream(Generic[T]):
    """Fulfils interface.Watch."""

    def __init__(
        self, response: urllib3.BaseHTTPResponse, type_: type[T], ended: Callable[[WatchStream[Any]], None]
    ) -> None:
        self._response = response
        self._type = type_
        self._ended = ended
        self._stopping = threading.Event()
        self._reading = False

    def stop(self) -> None:
        """A shut socket wakes a reader at once; closing alone would not."""
        self._stopping.set()
        connection = getattr(self._response, "connection", None) or getattr(self._response, "_connection", None)
        sock = getattr(connection, "sock", None)
        if sock is not None:
            with contextlib.suppress(OSError):  # it is gone already
                sock.shutdown(socket.SHUT_RDWR)
        if not self._reading:
            self._end()

    def __iter__(self) -> Iterator[WatchEvent[T]]:
        self._reading = True
        try:
            yield from self._events()
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
            if not self._stopping.is_set():
                silent = isinstance(error, urllib3.exceptions.TimeoutError)
                raise (TimedOutError if silent else ConnectionFailedError)(f"watch: {error}") from error
        finally:
            self._end()

    def _end(self) -> None:
        self._response.close()
        self._ended(self)

    def _events(self) -> Iterator[WatchEvent[T]]:
        rest = b""
        steps = ShortSteps()
        for chunk in self._response.stream(65536, decode_content=True):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    yield self._event(line)
                    steps.pause_if_due()
                if self._stopping.is_set():
                    return
            if len(rest) > MAX_LINE:
                raise ConnectionFailedError("watch: a line without end")
        if rest.strip() and not self._stopping.is_set():
            raise ConnectionFailedError("watch: cut off in the middle of an event")

    def _event(self, line: bytes) -> WatchEvent[T]:
        try:
            head = codec.decode(line, _Line)
            if head.type == "ERROR":
                raise error_of_status(codec.decode(bytes(head.object), Status))
            if head.type == "BOOKMARK":
                version = codec.decode(bytes(head.object), _Bookmark).metadata.resource_version
                return WatchEvent(EventType.BOOKMARK, None, version)
            obj: Any = read_object(bytes(head.object), self._type)
            if not obj.metadata.name:
                raise UnreadableError("watch: an event of an object without a name")
            return WatchEvent(EventType(head.type), obj, obj.metadata.resource_version)
        except ValueError as error:
            raise UnreadableError(f"watch: an event could not be read: {error}") from error
