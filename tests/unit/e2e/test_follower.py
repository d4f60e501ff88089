"""What follows objects for the length of a test: over a server that goes away, and over holes in the history where it may."""

from __future__ import annotations

import json
import queue
from collections.abc import Iterator
from typing import Any

from tests.e2e.follower import Follower

WITHIN = 10


def pod(uid: str, version: int) -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": uid, "resourceVersion": str(version)}}


class Stream:
    status = 200

    def __init__(self, *events: dict[str, Any]) -> None:
        self._events = events

    def stream(self, size: int) -> Iterator[bytes]:
        for event in self._events:
            yield json.dumps(event).encode() + b"\n"

    def shutdown(self) -> None:
        """It has ended already."""

    close = shutdown


class Server:
    """Lists and streams in the order in which they are asked for; then streams without an event."""

    def __init__(self, lists: list[list[dict[str, Any]]], streams: list[Stream]) -> None:
        self._lists, self._streams = lists, streams
        self.asked_from: list[str] = []

    def get(self, path: str) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": "10"}, "items": self._lists.pop(0)}

    def watch(self, path: str, version: str) -> Stream:
        self.asked_from.append(version)
        return self._streams.pop(0) if self._streams else Stream()


def followed(server: Server, count: int, *, over_holes: bool = False) -> tuple[list[tuple[str, str]], list[str]]:
    """So many events, and why it broke."""
    events: queue.Queue[tuple[str, str]] = queue.Queue()
    broken: queue.Queue[str] = queue.Queue()

    def broke(why: str) -> None:
        broken.put(why)
        events.put(("BROKEN", ""))

    follower = Follower(
        server,  # type: ignore[arg-type]
        "/api/v1/pods",
        lambda kind, item: events.put((kind, item["metadata"]["uid"])),
        broke,
        over_holes=over_holes,
    )
    follower.start()
    found = [events.get(timeout=WITHIN) for _ in range(count)]
    follower.stop()
    return found, list(broken.queue)


GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}


def test_a_stream_that_ends_is_resumed_behind_its_last_event() -> None:
    streams = [
        Stream({"type": "MODIFIED", "object": pod("a", 11)}),
        Stream({"type": "DELETED", "object": pod("a", 12)}),
    ]
    server = Server([[pod("a", 9)]], streams)
    assert followed(server, 3) == ([("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")], [])
    assert server.asked_from[:2] == ["10", "11"]


def test_a_hole_in_the_history_breaks_it() -> None:
    found, broken = followed(Server([[]], [Stream(GONE)]), 1)
    assert found == [("BROKEN", "")]
    assert "the history has a hole: too old resource version" in broken[0]


def test_over_holes_it_lists_again_and_makes_up_what_happened() -> None:
    server = Server([[pod("a", 1), pod("b", 2), pod("c", 3)], [pod("b", 7), pod("c", 3), pod("d", 8)]], [Stream(GONE)])
    found, broken = followed(server, 6, over_holes=True)
    assert found[3:] == [("DELETED", "a"), ("MODIFIED", "b"), ("ADDED", "d")]
    assert broken == []


def test_bookmarks_move_the_version_and_are_no_events() -> None:
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "11"}}}
    server = Server([[]], [Stream(bookmark), Stream({"type": "ADDED", "object": pod("a", 12)})])
    assert followed(server, 1) == ([("ADDED", "a")], [])
    assert server.asked_from[1] == "11"
